"""The data of an audit: what is learned from, the sets that are answered, and the names of the texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headscope.audit.add_negated import SUFFIX, add_negated
from headscope.audit.balance import balance
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import count_noun, join_words
from headscope.data.labels import match_train
from headscope.data.reading.read import read
from headscope.experiments.claims import FEWEST
from headscope.experiments.tasks import DEV_SHARE, split_by_text

TEST, DEV, HELD_OUT, ADVERSARIAL, BALANCED = "test", "dev", "held out", "adversarial", "balanced"
ARCT, ARCT_TEXTS, ARCT_CHOICE = "ARCT", ("reason", "claim"), "warrant"
COPY = SUFFIX  # without it, the id of an adversarial copy is that of the point it is a copy of


@dataclass(frozen=True)
class AuditData:
    """Labelled examples with named texts; `choice` is the name of what is chosen, empty for a classification."""

    name: str
    train: Sequence[Example]
    sets: Mapping[str, Sequence[Example]]  # the last that is neither adversarial nor balanced is judged
    texts: tuple[str, ...]
    choice: str
    source: str
    balanced: Sequence[Example] = field(default_factory=list)  # to learn from where no single cue tells the label

    @property
    def judged(self) -> str:
        """The set that claims are judged on."""
        return [name for name in self.sets if name not in (ADVERSARIAL, BALANCED)][-1]

    @property
    def fair(self) -> str:
        """The set in which no single cue tells the label; empty where there is none."""
        return next((name for name in self.sets if name in (ADVERSARIAL, BALANCED)), "")

    def limit(self, sample: Any) -> "AuditData":
        """Return the data with every set sampled by a function; copies stay with the points they are copies of."""
        sets = {}
        for name, examples in self.sets.items():
            originals = [example for example in examples if not example.id.endswith(COPY)]
            chosen = {example.id for example in sample(originals)}
            sets[name] = [example for example in examples if example.id.removesuffix(COPY) in chosen]
        return replace(self, sets=sets)


def read_arct(folder: str | None = None, negations: Any = None) -> AuditData:
    """Read ARCT: the bundled original, or a folder of it, with the adversarial sets where it has them.

    `negations` is a table of negated claims, from which the adversarial sets are built otherwise.
    """
    where = "" if folder is None else f"@{folder}"
    splits = {split: _name_texts(read(f"arct:{split}{where}"), ARCT_TEXTS) for split in ("train", "dev", "test")}
    source = "ARCT (Habernal et al., 2018): its train set to learn from, dev and test to answer"
    balanced: Sequence[Example] = ()
    sets = {DEV: splits["dev"], TEST: splits["test"]}
    files = [] if folder is None else list(Path(folder).glob("**/*-adv-negated.csv"))
    if negations is not None:
        balanced, fair = (add_negated(splits[split], negations) for split in ("train", "test"))
        sets[ADVERSARIAL] = fair
    elif files:
        balanced, fair = (read(f"arct:{split}-adv-negated{where}") for split in ("train", "test"))
        sets[ADVERSARIAL] = fair
    if ADVERSARIAL in sets:
        source += "; the adversarial set has every point twice, once with a negated claim and the other answer"
    return AuditData(ARCT, splits["train"], sets, ARCT_TEXTS, ARCT_CHOICE, source, balanced)


def read_audit_data(
    data: Any, dev: Any = None, *, text: Sequence[str], choice: Sequence[str], label: str | None, **options: Any
) -> AuditData:
    """Read the user's own data: a table with named texts, and with choices or classes.

    Without `dev` the data are divided, no text in both parts.
    """
    seed = options.pop("seed", 0)
    columns = _name_columns(text, choice, label)
    train, texts = _read_named(data, columns, text, options)
    if dev is None:
        train, held = split_by_text(train, DEV_SHARE, seed)
        if not train or not held:
            raise InputError(
                f"All {count_noun(len(train) + len(held), 'example')} have the same text, so that they cannot be "
                "divided into some to learn from and others to answer. Give both, data=FILE and dev=FILE."
            )
        sets = {HELD_OUT: held}
        source = f"divided: {len(train):,} to learn from, {len(held):,} to answer, and no text in both"
    else:
        sets = {DEV: match_train(_read_named(dev, columns, text, options)[0], train, "dev")}
        source = "train to learn from, dev to answer"
    return AuditData(_name_source(data), train, sets, texts, "choice" if "choices" in train[0].columns else "", source)


def add_balanced(data: AuditData, *, train: bool = False, seed: int = 0) -> AuditData:
    """Return the data with a balanced subset of the judged set, and with `train` also one to learn from.

    Where no such subset exists, or one too small to judge by, `source` says so.
    """
    options: dict[str, Any] = {"parts": None if data.choice else list(data.texts), "seed": seed}
    try:
        fair = balance(list(data.sets[data.judged]), **options)
        learned = balance(list(data.train), **options) if train else []
    except InputError as error:
        return replace(data, source=f"{data.source}; no balanced set: {error}")
    if len(fair) < FEWEST:
        few = f"{count_noun(len(fair), 'point')} of {len(data.sets[data.judged]):,} would be left, fewer than {FEWEST}"
        return replace(data, balanced=learned, source=f"{data.source}; no balanced set: {few}")
    source = f"{data.source}; the balanced set has {len(fair):,} of {len(data.sets[data.judged]):,} points"
    return replace(data, balanced=learned, sets={**data.sets, BALANCED: fair}, source=source)


def _name_source(data: Any) -> str:
    """Return the name of a file, or of the task in a source such as glue:rte:train@GLUE.

    >>> _name_source("texts/my.tsv"), _name_source("glue:rte:train@GLUE"), _name_source([])
    ('my', 'rte', 'data')
    """
    if not isinstance(data, str | Path):
        return "data"
    spec, _, path = str(data).rpartition("@")
    return (spec.split(":")[1:] or [Path(path).stem])[0] or "data"


def _name_columns(text: Sequence[str], choice: Sequence[str], label: str | None) -> dict[str, Any]:
    if len(choice) == 1:
        raise InputError(f"choice={choice[0]!r} is one column, but there is nothing to choose from one. Name several.")
    columns: dict[str, Any] = {"label": label}
    if choice:
        return columns | {"text": text[0] if text else "", "choices": tuple(choice)}
    return columns | ({"text": text[0]} if text else {}) | ({"pair": text[1]} if len(text) > 1 else {})


def _read_named(
    source: Any, columns: Mapping[str, Any], text: Sequence[str], options: Mapping[str, Any]
) -> tuple[list[Example], tuple[str, ...]]:
    """Return the examples with their texts as columns, and the names of these."""
    examples = read(source, **{name: value for name, value in columns.items() if value is not None}, **options)
    names = tuple(text)
    if not names and "choices" not in examples[0].columns:
        names = ("text", "pair") if examples[0].pair is not None else ("text",)
    if not names and examples[0].text:
        names = ("text",)
    for name in names[2:] if "choices" not in examples[0].columns else names[1:]:
        if not isinstance(examples[0].columns.get(name), str):
            known = join_words(examples[0].columns)
            raise InputError(f"The column '{name}' is no text. Name others as text; there are: {known}.")
    return _name_texts(examples, names), names


def _name_texts(examples: Sequence[Example], names: Sequence[str]) -> list[Example]:
    """Return the examples with every text in a column of its own, under its name."""
    named = []
    for example in examples:
        known = dict(zip(names, (example.text, example.pair), strict=False))
        texts = {name: example.columns.get(name, known.get(name)) for name in names}
        if missing := [name for name, value in texts.items() if value is None]:
            raise InputError(f"Example '{example.id}' has no text '{missing[0]}'. Give it one, or leave it out.")
        named.append(replace(example, columns={**example.columns, **texts}))
    return named

"""What the results of the effective-attention study come to: numbers and sentences of its page, note and objections."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.core.document import Document
from headscope.core.prose import count_noun, format_signed, join_words
from headscope.experiments.claims import MOOT, REFUTED, Claim, JudgedClaim, TaskVerdict
from headscope.experiments.judging import count_tests, judge_all
from headscope.experiments.pages.facts import StudyFacts, list_claims
from headscope.experiments.rendering.report import describe_unlearned
from headscope.experiments.rendering.sentences import compare_verdicts, conjugate, list_ranges
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.summary import list_tasks, relative_changes
from headscope.experiments.template import format_range
from headscope.reporting.frames import ENDS
from headscope.results.store import open_result
from headscope_studies.effective_attention import paper, report
from headscope_studies.effective_attention.claims import (
    CLAIMS,
    EARLIER,
    LOSES,
    SEVERAL,
    SPREAD,
    find_twins,
    judge_models,
)

RESULTS = Path(__file__).parents[1] / "results"

STEM = "effective_attention_"
SHAPE = "bert-base-shape_cpu"
BIN = 8  # tokens of a range of `distance_by_tokens`
OTHERS = ("_times", "_maps")
DISPERSED = EARLIER[0]


@dataclass(frozen=True)
class Facts(StudyFacts):
    """The numbers of every model as they were measured, and times of BERT-base's shape where there are some.

    `ends` are the first and the last token of an input of each model.
    """

    times: xr.Dataset | None = None
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    stem = STEM
    claims = CLAIMS
    contrast = "padding"

    def judge(self, measured: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model, and that on time where it was measured."""
        return judge_models(measured, self.times)

    @cached_property
    def tuned(self) -> dict[str, xr.Dataset]:
        """The numbers of every tuned model over all inputs."""
        return {label: data.sel(role="tuned", length="all") for label, data in self.models.items()}

    @cached_property
    def versions(self) -> dict[str, Counter[str]]:
        """How many verdicts on a claim change if of several tokens of a type not the largest weight counts."""
        found = {}
        for several in SEVERAL[1:]:
            frames = [compare_verdicts({"max": self.judged[label], several: claims})
                      for label, claims in judge_models(self.measured, self.times, several=several).items()
                      if label in self.models]  # fmt: skip
            found[several] = Counter(str(claim) for frame in frames for claim, _ in frame.index)
        return found

    def count(self, claim: Claim, *kinds: str) -> str:
        """Return for how many pairs a claim has one of these verdicts, such as 3 of 15 pairs; pairs it applies to."""
        return count_pairs(self.cells(claim), *kinds)

    def judge_length(
        self, claims: Sequence[Claim], length: str, tests: int
    ) -> list[dict[tuple[str, str], TaskVerdict]]:
        """Return the verdicts on each claim for inputs of one length, by model and task."""
        models = {label: judge_all(claims, data.sel(role="tuned", length=length), tests)
                  for label, data in self.measured.items()}  # fmt: skip
        return [
            {(label, task.task): task for label, judged in models.items() for task in judged[at].tasks}
            for at in range(len(claims))
        ]

    def change(self, name: str, lens: str, length: str = "all", **where: str) -> np.ndarray:
        """Return the changes of a weight in per cent of the raw one, of all pairs with such inputs."""
        changes = [
            self.relative(label, name, length, **where)["value"].sel(lens=lens).where(data["n"].sel(length=length) > 1)
            for label, data in self.models.items()
        ]
        whole = np.concatenate([each.values.ravel() for each in changes])
        return whole[np.isfinite(whole)]

    def relative(self, label: str, name: str, length: str = "all", **where: str) -> xr.Dataset:
        """Return the change of a weight in per cent of the raw one: `value`, `low` and `high`, by task and lens.

        Of several seeds each has its own ratio; the value is their mean, and the interval holds those of all.
        """
        data = self.measured[label]
        part = data[[each for each in data if str(each).startswith(name)]].sel(role="tuned", length=length, **where)
        relative = 100 * combine_seeds(relative_changes(part, name))
        names = {f"{name}_relative{end}": each for end, each in zip(ENDS, ("value", "low", "high"), strict=True)}
        return relative.rename(names)


@cache
def read_facts(folder: Path = RESULTS) -> Facts:
    """Return the facts of all models in a folder of results."""
    paths = [path for path in sorted(folder.glob(f"{STEM}*.nc")) if not path.stem.endswith(OTHERS)]
    paths.sort(key=lambda path: ("mpnet" in path.stem, path.stem))
    shape = folder / f"{STEM}{SHAPE}_times.nc"
    models = {path.stem.removeprefix(STEM): open_result(path) for path in paths}
    maps = {label: folder / f"{STEM}{label}_maps.nc" for label in models}
    tokens = {label: open_result(path)["key_token"].values for label, path in maps.items() if path.is_file()}
    ends = {label: (str(row[0]), str(row[-1])) for label, row in tokens.items()}
    return Facts(models, open_result(shape) if shape.is_file() else None, ends)


def list_reports(folder: Path = RESULTS) -> list[tuple[str, Document]]:
    """Return the study's own report on every model, by the name of its folder."""
    reports = []
    for label, data in read_facts(folder).measured.items():
        paths = {name: folder / f"{STEM}{label}_{name}.nc" for name in ("maps", "times")}
        others = {name: open_result(path) for name, path in paths.items() if path.is_file()}
        reports.append((f"{STEM}{label}", report.document({"numbers": data, **others})))
    return reports


def describe_holding(facts: Facts) -> str:
    """Return which claims hold for most pairs, and which of these says nothing, as random values show it too."""
    found = list_claims(facts, *facts.exact, least=0.5)
    text = DISPERSED.text.rstrip(".")
    chance = [each for each in found if text in each] if is_dispersed_by_chance() else []
    others = [each for each in found if each not in chance]
    said = f"For more than half of their pairs these hold: {join_words(others)}." if others else ""
    also = f"{chance[0]} holds too, but is no finding: random values come within {SPREAD.text}." if chance else ""
    return " ".join(filter(None, (said, also))) or "No claim holds for more than half of its pairs."


def is_dispersed_by_chance() -> bool:
    """Return whether the model's values disperse attention notably more than random values do, for no pair."""
    beyond = open_result(RESULTS / "null_values.nc")
    ends = [abs(beyond[f"dispersion_beyond{end}"].sel(length="all")) for end in ENDS]
    return bool(all((end < SPREAD.value).all() for end in ends))


def count_pairs(cells: Mapping[tuple[str, str], TaskVerdict], *kinds: str) -> str:
    """Return how many of the pairs that a claim applies to have one of these verdicts, and of which model if of one.

    >>> cells = {("a", "RTE"): TaskVerdict("RTE", "holds", ""), ("b", "RTE"): TaskVerdict("RTE", "undecided", "")}
    >>> count_pairs(cells, "holds"), count_pairs(cells, "holds", "undecided")
    ('1 of 2 pairs, all of a', '2 of 2 pairs')
    """
    known = {pair: task.verdict for pair, task in cells.items() if task.verdict != MOOT}
    found = [label for (label, _), verdict in known.items() if verdict in kinds]
    only = f", all of {found[0]}" if len(set(found)) == 1 and len({label for label, _ in known}) > 1 else ""
    return f"{len(found)} of {len(known)} pairs{only}"


def count_losses(facts: Facts, name: str) -> str:
    """Return for how many pairs a token loses weight exactly, corrected as the verdicts are."""
    (cells,) = facts.judge_length([LOSES[name]], "all", facts.tests)
    return count_pairs(cells, *facts.exact)


def describe_by_size(facts: Facts) -> str:
    """Return what becomes of the losses of weight on inputs of at most d tokens, and of more, judged apart."""
    lengths, names = ("at most d", "more than d"), ("the sink", "[CLS]", "[SEP]")
    claims = [LOSES[name] for name in names]
    tests = sum(count_tests(claims, data.sel(role="tuned", length=length))
                for data in facts.models.values() for length in lengths)  # fmt: skip
    short, long = (dict(zip(names, facts.judge_length(claims, length, tests), strict=True)) for length in lengths)
    refuted = join_words(f"{name} ({count_pairs(cells, REFUTED)})" for name, cells in short.items())
    holding = join_words(f"{name} ({count_pairs(cells, *facts.exact)})" for name, cells in long.items())
    return (
        "That is over inputs of all lengths, which hides what exactness does. Judged apart, exactness refutes on "
        f"inputs of at most d tokens that weight is lost by {refuted}; on longer ones it is lost by {holding}."
    )


def describe_change(facts: Facts, name: str, lens: str, length: str = "all", **where: str) -> str:
    """Return the range of a change in per cent of the raw weight over all pairs, where there are such inputs."""
    return format_range(facts.change(name, lens, length, **where))


def distances(facts: Facts, lens: str, *, short: bool) -> dict[str, list[float]]:
    """Return the relative changes of attention by ranges of 8 tokens, of at most d tokens or of more, by model.

    Only ranges of at least two inputs of a task count.
    """
    found = {}
    for label, data in facts.models.items():
        part = data.sel(role="tuned", lens=lens)
        size = int(data["value_size"].values[0])
        ends = part["tokens"] + (BIN - 1) / 2  # the greatest number of tokens of each range
        chosen = part.sel(tokens=ends <= size) if short else part.sel(tokens=ends > size)
        known = chosen["distance_by_tokens"].where(chosen["count_by_tokens"] > 1).values
        found[label] = known[np.isfinite(known)].tolist()
    return found


def describe_short(facts: Facts) -> str:
    """Return what happens to inputs of at most d tokens, exactly and with the paper's code."""
    exact, published = ([value for values in distances(facts, lens, short=True).values() for value in values]
                        for lens in ("effective", "paper"))  # fmt: skip
    count, total = (sum(int(data["n"].sel(length=length).sum()) for data in facts.models.values())
                    for length in ("at most d", "all"))  # fmt: skip
    if not exact:
        return "No input has at most d tokens, so `effective` differs from `raw` in all of them."
    return (
        f"{format_signed(100 * count / total, '.0f')} % of the inputs have at most d tokens. For these `effective` "
        f"differs from `raw` by at most {_round_up(max(exact))} of its norm, and `paper` by "
        f"{format_range(published, '.2f', '')} (means over the inputs of a task of {BIN} neighbouring lengths)."
    )


def _round_up(value: float) -> str:
    """Return a bound on a number: its first digit, rounded up, such as 0.0002 for 0.00013."""
    if value <= 0:
        return "0"
    unit = 10.0 ** np.floor(np.log10(value))
    return f"{np.ceil(value / unit) * unit:.1g}"


def describe_long(facts: Facts) -> str:
    """Return what happens to inputs of more than d tokens, exactly and with the paper's code."""
    exact, published = ([value for values in distances(facts, lens, short=False).values() for value in values]
                        for lens in ("effective", "paper"))  # fmt: skip
    if not exact:
        return "No input is longer."
    ranges = [format_range(values, ".2f", "") for values in (exact, published)]
    return f"For longer ones `effective` differs by {ranges[0]} and `paper` by {ranges[1]}."


def describe_lengths(facts: Facts, size: int) -> str:
    """Return how many inputs of each task have more than `size` tokens, where a range of lengths ends."""
    data = next(iter(facts.models.values()))
    longer = [length for length in list_ranges(data) if int(length.partition("–")[0]) > size]
    counts = data["n"].sel(length=longer).sum("length")
    parts = [f"{int(counts.sel(task=task)):,} of {int(data['n'].sel(task=task, length='all')):,} on {task}"
             for task in list_tasks(data)]  # fmt: skip
    return f"Of the inputs that we studied, so many have more than {size} tokens: {join_words(parts)}."


def describe_sinks(facts: Facts) -> str:
    """Return which tokens are sinks, as shares of the layers and inputs of each model."""
    names = {"cls": "[CLS]", "sep": "[SEP]", "special": "another special token", "word": "a word"}
    parts = []
    for label, data in facts.tuned.items():
        shares = data["sink_kind"].mean(("task", "layer")).to_series().sort_values(ascending=False)
        largest = [f"{names.get(str(kind), kind)} in {100 * share:.0f} %"
                   for kind, share in shares.items() if share >= 0.1]  # fmt: skip
        parts.append(f"{join_words(largest)} with {label}")
    return f"In per cent of layers and inputs, the sink is {'; '.join(parts)}."


def describe_versions(facts: Facts, *, listed: bool = False) -> str:
    """Return how many verdicts change if of several tokens of a type the mean or the sum counts; listed by claims."""
    groups: dict[frozenset[tuple[str, int]], list[str]] = {}
    for several, texts in facts.versions.items():
        groups.setdefault(frozenset(texts.items()), []).append(several)
    parts = []
    for counts, names in groups.items():
        ordered = sorted(counts, key=lambda pair: (-pair[1], pair[0]))
        texts = join_words(f"“{text.rstrip('.')}” {count}" for text, count in ordered)
        number = sum(count for _, count in counts)
        alike = f"{number} each" if len(names) > 1 else str(number)
        words = " and ".join(f"with the {name}" for name in names)
        parts.append(f"{words} {alike} change" + (f" ({texts})" if listed and counts else ""))
    weights = [claim for claim in CLAIMS if "several" in claim.where]
    return f"of {len(weights) * facts.pairs} verdicts on weights, {' and '.join(parts)}."


def describe_published(facts: Facts) -> str:
    """Return how the paper's own averages differ from ours, for the weights on [SEP] and [CLS]."""
    parts = []
    for token, name in (("sep", "[SEP]"), ("cls", "[CLS]")):
        ours = facts.change("weight", "paper", token=token, size="signed", several="max")
        theirs = []
        for data in facts.measured.values():
            weights = data["published_weight"].sel(token=token, role="tuned", length="all")
            ratio = weights.sel(lens="paper") / weights.sel(lens="raw")
            theirs += (100 * (ratio.mean(set(ratio.dims) - {"task"}) - 1)).values.tolist()
        parts.append(f"{name} changes by {format_range(theirs)} instead of {format_range(ours)}")
    return f"Averaged as the published code does, from `raw` to `paper` {' and '.join(parts)}."


def describe_patterns(facts: Facts) -> str:
    """Return how far the shares of patterns of raw maps are from the paper's, before any projection."""
    ours = {label: 100 * data["share"].sel(lens="raw", pattern="heterogeneous") for label, data in facts.tuned.items()}
    gaps = [abs(100 * float(data["share"].sel(lens="raw", task=task, pattern=pattern)) - paper.SHARES[task][0][at])
            for data in facts.tuned.values() for task in list_tasks(data) if task in paper.SHARES
            for at, pattern in enumerate(paper.LETTERS)]  # fmt: skip
    values = [float(value) for shares in ours.values() for value in shares]
    theirs = [raw[list(paper.LETTERS).index("heterogeneous")] for raw, _ in paper.SHARES.values()]
    largest = f", and the largest difference of any class is {max(gaps):.0f} points" if gaps else ""
    return (
        f"Before any projection, {format_range(values)} of our raw maps are heterogeneous and "
        f"{format_range(theirs)} of the paper's{largest}."
    )


def describe_scores(facts: Facts) -> str:
    """Return what happens to predictions with effective attention in place, and with the paper's."""
    tables = [data.sel(lens=["raw", "effective", "paper"]) for data in facts.measured.values()]
    changed = {
        lens: max(int(data["changed"].sel(lens=lens).max()) for data in tables) for lens in ("effective", "paper")
    }
    moved = max(float(data["output_change"].sel(lens="effective").max()) for data in tables)
    moves = [data["score"].sel(lens="paper") - data["score"].sel(lens="raw") for data in tables]
    scores = [100 * value for move in moves for value in move.values.ravel()]
    return (
        f"With `effective` in place of A, no output moves by more than {moved:.0e}, and "
        f"{_count_changed(changed['effective'])}; with `paper` in place {_count_changed(changed['paper'])}, and scores "
        f"move by {format_range(scores, '.1f', ' points')}."
    )


def _count_changed(count: int) -> str:
    return f"up to {count_noun(count, 'prediction')} of a task change" if count else "no prediction changes"


def describe_twins(facts: Facts) -> str:
    """Return for how many pairs [CLS] and [SEP] cannot be told apart, or nothing."""
    found = {label: [task for task in list_tasks(data) if find_twins(data.sel(task=task))]
             for label, data in facts.tuned.items()}  # fmt: skip
    parts = [f"{label} ({'all tasks' if len(tasks) == facts.tuned[label].sizes['task'] else join_words(tasks)})"
             for label, tasks in found.items() if tasks]  # fmt: skip
    if not parts:
        return "In no pair does [CLS] give itself and [SEP] the same weight in the last layer."
    return f"In the last layer of {join_words(parts)} [CLS] gives itself and [SEP] the same weight."


def describe_time(facts: Facts) -> str:
    """Return the verdict on evaluation time."""
    if "time" not in facts.judged_all:
        return "Evaluation time was not measured."
    (claim,) = facts.judged_all["time"]
    (task,) = claim.tasks[:1]
    text = f"“{claim.text.rstrip('.')}” {conjugate(task.verdict)}"
    if not task.intervals:
        return f"{text}: {task.figures}."
    value, low, high = (f"{end:.2f}" for end in (task.interval.value, task.interval.low, task.interval.high))
    reach = claim.claim.threshold.value
    bounds = [bound + sign * reach for sign, bound in zip((-1, 1), claim.claim.bounds, strict=True)]
    return (
        f"{text}: {value}× [{low}, {high}], where the paper has {claim.claim.theirs[task.task]}. What counts as twice, "
        f"{bounds[0]:g} to {bounds[1]:g}×, was set after these times had been seen."
    )


def describe_reduced(facts: Facts) -> str:
    """Return which tasks were cut to fewer inputs than their dev set has, or nothing."""
    data = next(iter(facts.models.values()))
    whole, studied = data["whole_dev"], data["n"].sel(length="all")
    cut = [task for task in list_tasks(data) if int(studied.sel(task=task)) < int(whole.sel(task=task))]
    parts = [f"{int(studied.sel(task=task)):,} of {int(whole.sel(task=task)):,} inputs of {task}" for task in cut]
    count = count_noun(len(cut), "task")
    return f" Of {count} only a part of dev was studied, drawn at random: {join_words(parts)}." if cut else ""


def describe_learning(facts: Facts) -> str:
    """Return which models are not shown to have learned which tasks."""
    texts = {label: describe_unlearned(data) for label, data in facts.models.items()}
    parts = [text.replace("The tuned model", label, 1) for label, text in texts.items() if text]
    return " ".join(parts) or "All models learned their tasks better than the most common label."


def describe_missing(facts: Facts) -> str:
    """Return that no model has as many value dimensions as BERT-base's heads, where none has."""
    known = {int(data["value_size"].values[0]) for data in facts.models.values()}
    size = paper.VALUE_SIZE
    return "BERT-base was not at hand" + ("" if size in known else f", nor any model with its d of {size}")


def name_sizes(facts: Facts) -> str:
    """Return the value dimensions of every model."""
    sizes: dict[int, list[str]] = {}
    for label, data in facts.models.items():
        sizes.setdefault(int(data["value_size"].values[0]), []).append(label)
    if len(sizes) == 1:
        every = {1: "", 2: " in both"}.get(len(facts.models), " in all")
        return f"{next(iter(sizes))}{every}"
    return join_words(f"{size} in {join_words(labels)}" for size, labels in sizes.items())


def describe_specials(facts: Facts) -> str:
    """Return what [CLS] and [SEP] are called in models that have other names for them, or nothing."""
    others = {label: ends for label, ends in facts.ends.items() if ends != ("[CLS]", "[SEP]")}
    parts = (f"`{first}` and `{last}` in {label}" for label, (first, last) in others.items())
    return f" [CLS] and [SEP] stand for {join_words(parts)}." if others else ""

"""`hs.add_negated`: adversarial copies of a multiple choice, with negated claims (Niven & Kao, 2019)."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from headscope.audit.options import AddNegatedOptions
from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.options import takes_options
from headscope.core.prose import count_noun, join_words
from headscope.core.reader import Malformed
from headscope.data.reading.read import find_table, read

COLUMNS = ("original", "negated")
SUFFIX = "-adversarial"


@takes_options(AddNegatedOptions)
def add_negated(options: AddNegatedOptions) -> list[Example]:
    """Return the examples and, after each, a copy with the negated claim and the other of its two choices as the label.

    Every single cue in the choices is then right in one half of the examples to which it applies, as `hs.cues` of the
    result shows; a model that needs the claim can still tell the label, and so may pairs of cues, one in the claim and
    one in a choice (`pairs`). `column="text"` says that the text is the claim. The column `adversarial` says which
    examples are copies.

    >>> rows = [{"reason": "It rains.", "claim": "Stay in.", "choices": ["I get wet", "I stay dry"], "label": 0}]
    >>> rows[0]["text"] = "It rains. Stay in."
    >>> copies = hs.add_negated(hs.read(rows, choices="choices"), {"Stay in.": "Go out."})
    >>> [(example.text, example.label) for example in copies]
    [('It rains. Stay in.', 0), ('It rains. Go out.', 1)]
    """
    negations, column = options.negations, options.column
    table = dict(negations) if isinstance(negations, Mapping) else _read_negations(os.fspath(negations))
    examples = read(options.data)
    claims = [_find_claim(example, column) for example in examples]
    if missing := [claim for claim in dict.fromkeys(claims) if claim not in table]:
        raise InputError(
            f"{count_noun(len(missing), 'claim')} of {len(set(claims)):,} {'has' if len(missing) == 1 else 'have'} no "
            f"negation in the table, the first is {missing[0]!r}. Add a row for each, or leave these examples out."
        )
    _check_copies(examples, claims, table)
    names = {example.label: example.columns["label_name"] for example in examples if "label_name" in example.columns}
    both = []
    for example, claim in zip(examples, claims, strict=True):
        columns = MappingProxyType({**example.columns, "adversarial": False})
        copy = _negate(example, claim, table[claim], column)
        if "label_name" in copy.columns:
            name = names.get(copy.label, str(copy.label))
            copy = replace(copy, columns=MappingProxyType({**copy.columns, "label_name": name}))
        both += [replace(example, columns=columns), copy]
    return both


def _negate(example: Example, claim: str, negated: str, column: str) -> Example:
    """Return the copy of one example."""
    choices = example.columns.get("choices", ())
    if len(choices) != 2 or example.label not in (0, 1):
        raise InputError(
            f"A negated claim turns the label to the other of two choices, but example '{example.id}' has "
            f"{count_noun(len(choices), 'choice')} and the label {example.label}."
        )
    before, match, after = example.text.rpartition(claim)
    if not match:
        raise InputError(
            f"The text of example '{example.id}' does not hold its {column}, {claim!r}, so that it cannot be negated "
            "there. Give a text with the claim in it."
        )
    columns = {**example.columns, "adversarial": True, **({} if column == "text" else {column: negated})}
    return replace(
        example,
        id=f"{example.id}{SUFFIX}",
        text=f"{before}{negated}{after}",
        words=None,
        label=1 - int(example.label),
        columns=MappingProxyType(columns),
    )


def _check_copies(examples: Sequence[Example], claims: Sequence[str], table: Mapping[str, str]) -> None:
    """Raise InputError for data that have copies already, and count claims that are their own negations."""
    if again := [example.id for example in examples if example.columns.get("adversarial") is True]:
        raise InputError(f"Example '{again[0]}' is an adversarial copy already. Give the original examples alone.")
    same = [claim for claim in claims if table[claim].split() == claim.split()]
    if same:
        warnings.warn(
            f"{count_noun(len(same), 'example')} of {len(examples):,} {'has' if len(same) == 1 else 'have'} a claim "
            f"whose negation is the same, the first is {same[0]!r}: their copies have the same text and the other "
            "label. Correct the table, or leave these examples out.",
            DataWarning,
            stacklevel=4,
        )


def _find_claim(example: Example, column: str) -> str:
    claim = example.text if column == "text" else example.columns.get(column)
    if not isinstance(claim, str) or not claim:
        text_columns = ["text", *(name for name, value in example.columns.items() if isinstance(value, str))]
        raise InputError(
            f"Example '{example.id}' has no text in the column '{column}'. Name the column with the claim; it has: "
            f"{join_words(text_columns)}."
        )
    return claim


def _read_negations(path: str) -> dict[str, str]:
    """Return the negated claims of a table."""
    table = find_table(path)
    negations: dict[str, str] = {}
    for row in table.rows:
        where = f"{table.name}, {table.unit} {row.number}"
        if isinstance(row, Malformed):
            raise InputError(f"{where}: {row.problem}.")
        original, negated = (row.values.get(name) for name in COLUMNS)
        if not (isinstance(original, str) and isinstance(negated, str) and original and negated):
            raise InputError(
                f"{where}: a table of negations has the columns original and negated, each with a text, but this row "
                f"has {join_words(f'{name}={value!r}' for name, value in row.values.items())}."
            )
        if negations.setdefault(original, negated) != negated:
            raise InputError(f"{where}: {original!r} has another negation already, {negations[original]!r}.")
    return negations

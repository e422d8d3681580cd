"""Options of `hs.cues`, `hs.balance` and `hs.add_negated`."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from headscope.core.options import describe, option

LABELED = "Labeled examples: anything that `hs.read` reads."


@dataclass(frozen=True, kw_only=True)
class CueOptions:
    """Which cues are looked for."""

    ngrams: Sequence[int] | int = option((1, 2), "Numbers of words of a cue.")
    patterns: Sequence[str] | Mapping[str, str] = option(
        (), "Regular expressions for lower-case text, each alone or as NAME=EXPRESSION."
    )
    parts: Sequence[str] | str | None = option(
        None, "Where to look: text, pair, choices or a column. Default: the choices, else text and pair."
    )
    pairs: Sequence[str] | None = option(
        None, "Two parts, such as claim and choices: look for pairs of cues, one in each, in place of single ones."
    )


@dataclass(frozen=True)
class CuesOptions(CueOptions):
    """What `hs.cues` takes."""

    data: Any = field(metadata=describe(LABELED))
    _: KW_ONLY
    variant: str = option(
        "exclusive", "When a cue applies to choices: exclusive (in one of them) or either (in at least one)."
    )
    min_count: int = option(1, "Leave out cues that apply to fewer examples.")
    smoothing: float = option(100.0, "Added to the counts of PMI.")  # as in the code of the paper


@dataclass(frozen=True)
class BalanceOptions(CueOptions):
    """What `hs.balance` takes."""

    data: Any = field(metadata=describe(LABELED))
    _: KW_ONLY
    seed: int = option(0, "Random seed that decides between equals.")


@dataclass(frozen=True)
class AddNegatedOptions:
    """What `hs.add_negated` takes."""

    data: Any = field(metadata=describe("Examples with two choices each: anything that `hs.read` reads."))
    negations: Mapping[str, str] | str | os.PathLike[str] = field(
        metadata=describe(
            "The negated claims by claim, or a table (.csv .tsv .jsonl) with columns original and negated."
        )
    )
    _: KW_ONLY
    column: str = option("claim", "Column with the claim, which is part of the text.")

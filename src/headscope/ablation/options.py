"""Options of ablations, of the importance of heads and of pruning curves."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from headscope.core.options import SITE, option
from headscope.engine.options import EditOptions
from headscope.training.options import ScoringOptions


@dataclass(frozen=True)
class AblateOptions(ScoringOptions):
    """What `hs.ablate` takes."""

    _: KW_ONLY
    edit: str | Any = option(
        "zero_heads",
        "An edit of heads without its heads: zero_heads, uniform_heads, mean_heads:means=FILE.",
        catalog="edits",
    )
    sets: Sequence[str] | str = option(
        "heads", "Sets of heads: heads, layers or all_but_one; or selections such as L3H7+L0H1, one for each set."
    )
    site: str | None = option(None, SITE)


@dataclass(frozen=True)
class HeadImportanceOptions(ScoringOptions, EditOptions):
    """What `hs.head_importance` takes."""

    _: KW_ONLY
    reduction: str = option("example", "Where absolute values are taken: example, token or batch.")
    normalize: str | None = option(None, "layer: divide the values of each layer by their L2 norm.")
    site: str | None = option(None, SITE)


@dataclass(frozen=True)
class PruningCurveOptions(ScoringOptions):
    """What `hs.pruning_curve` takes."""

    _: KW_ONLY
    by: str = option("importance", "The order in which heads are pruned: importance or random.")
    steps: float | int = option(10, "Heads per step, in percent of all.")
    recompute: bool = option(False, "Compute importance before each step.")
    keep: int = option(0, "Number of heads that each layer keeps.")
    seeds: int | Sequence[int] = option(3, "Number of random orders.")
    site: str | None = option(None, "Attention site of an encoder-decoder model: encoder, decoder, cross or all.")
    importance_data: Any = option(None, "Other data for the importance.")

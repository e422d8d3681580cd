"""Options of `hs.faithfulness`."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.options import DATA, LAYERS, MAX_LENGTH, MODEL, OVERWRITE, PAD_TO, PROGRESS, SITE, describe, option
from headscope.data.reading.options import SampleOptions

if TYPE_CHECKING:
    from headscope.engine.model import Model

LENSES = ("raw", "effective", "norm")
"""The lenses that are judged where none is named."""


@dataclass(frozen=True, kw_only=True)
class EdgeOptions:
    """Which edges are removed, and what of it is read."""

    heads: str = option("each", "An edge is removed in one head (each), or in all heads of its layer (all).")
    remove: str = option(
        "zero", "The rest of the row stays as it is (zero), or is divided so that its sum stays (renormalize)."
    )
    read: str = option(
        "auto",
        "The token whose last hidden state is compared: first, last or mean (of all tokens). auto: the one that the "
        "model's head reads; without such a head, mean.",
    )
    rows: int = option(2, "Number of rows sampled in each layer of each example: a query, and a head.")
    keys: int = option(8, "Number of keys sampled in each row, of all sizes of raw attention.")
    min_keys: int = option(4, "The fewest keys of a row that is sampled.")
    top: int = option(2, "Number of sampled keys of a row in the share of the effect that the largest have.")
    threshold: float = option(
        1e-3, "Removal changes nothing if less: a share of the hidden state's norm, or of the score's range of 1."
    )
    layers: Sequence[int] | int | None = option(None, LAYERS)


@dataclass(frozen=True, kw_only=True)
class TokenOptions:
    """Which tokens are replaced, and by what."""

    replace: str = option("mask", "What tokens are replaced by: mask or unk.")
    order: str = option("absolute", "Tokens are ordered by the size of a lens's weights (absolute) or signed.")
    shares: Sequence[float] = option(
        (0.1, 0.2, 0.5), "Shares of tokens at which comprehensiveness and sufficiency are averaged."
    )
    random_orders: int = option(3, "Number of random orders.")


@dataclass(frozen=True)
class FaithfulnessOptions(SampleOptions, EdgeOptions, TokenOptions):
    """What `hs.faithfulness` takes."""

    model: "Model" = field(metadata=describe(MODEL))
    data: Any = field(metadata=describe(DATA))
    _: KW_ONLY
    lenses: Sequence[str] | Any = option(
        LENSES, "Lenses to judge, see `headscope list lenses`.", flag="lens", catalog="lenses"
    )
    judge: Sequence[str] | str = option(
        "edges", "edges, pictures or tokens; edges and pictures can be judged together."
    )
    target: str | Any = option(
        None,
        "The prediction whose score is read: predicted, label, loss, class=NAME, mask:word=his or next:word=mat. "
        "Default: none.",
    )
    seed: int = option(0, "Random seed of `limit`, of edges and of random orders.")
    site: str | None = option(None, SITE)
    max_length: int | None = option(None, MAX_LENGTH)
    pad_to: int | None = option(None, PAD_TO)
    batch_size: int | None = option(
        None, "Maximum number of examples per batch. Default: 4,096 tokens, 16,384 on a GPU."
    )
    keep_edges: bool = option(False, "Keep every sampled edge with its effects.")
    out: Path | str | None = option(None, "Output file: .nc .zarr .csv .parquet; a checkpoint is written beside it.")
    resume: bool = option(False, "Resume an interrupted run.")
    overwrite: bool = option(False, OVERWRITE)
    progress: bool = option(True, PROGRESS, shell=False)

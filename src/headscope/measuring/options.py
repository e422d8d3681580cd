"""Options of `hs.measure` and `hs.probe`."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.lens import DEFAULT_LENS, DEFAULT_LENSES
from headscope.core.options import (
    DATA,
    HEADS,
    LAYERS,
    LIMIT,
    MAX_LENGTH,
    MODEL,
    OVERWRITE,
    PAD_POSITIONS,
    PAD_TO,
    PROGRESS,
    SITE,
    TARGET,
    describe,
    option,
)
from headscope.data.reading.options import SampleOptions
from headscope.engine.options import EditOptions

if TYPE_CHECKING:
    from headscope.engine.model import Model


WINDOW = 10_000
"""Examples that are sorted by length together. A batch is of one window, and no more than a window is in memory."""


@dataclass(frozen=True, kw_only=True)
class MeasuredInputs(SampleOptions):
    """What is measured of which examples."""

    shard: str | tuple[int, int] | None = option(None, "Measure one part of the examples, such as 3/16.")
    rows: bool = option(False, "Keep the value of every example.")
    units: str = option("tokens", "tokens, words or words_first.")
    target: str | Any = option(None, TARGET)
    site: str | None = option(None, SITE)
    layers: Sequence[int] | int | None = option(None, LAYERS)
    heads: Sequence[int] | int | None = option(None, HEADS)
    max_length: int | None = option(None, MAX_LENGTH)
    pad_to: int | None = option(None, PAD_TO)
    pad_positions: str = option("model", PAD_POSITIONS)
    batch_size: int | None = option(
        None, "Maximum number of examples per batch. Default: 4,096 tokens, 16,384 on a GPU."
    )
    window: int = option(WINDOW, "Number of examples that are read and sorted by length at a time.")
    block: int | None = option(
        None, "Number of queries whose maps are in memory at a time. Default: all, or fewer where maps would not fit."
    )
    tagger: str = option("auto", "auto (the tags of the data, else english), english, gold or spacy:MODEL.")


@dataclass(frozen=True)
class MeasureOptions(MeasuredInputs, EditOptions):
    """What `hs.measure` takes."""

    model: "Model" = field(metadata=describe(MODEL))
    data: Any = field(metadata=describe(f"{DATA} For a vision model a list of images or a folder."))
    _: KW_ONLY
    statistics: Sequence[str] | Any = field(
        metadata=describe("Statistics, see `headscope list statistics`.", flag="stat", catalog="statistics")
    )
    lens: Sequence[str] | Any = option(DEFAULT_LENSES, "Lenses, see `headscope list lenses`.", catalog="lenses")
    against: "Model | None" = option(None, "A second model, for statistics that compare two.")
    engine: str = option("local", "local or ray.")
    workers: int | None = option(None, "Number of processes of the engine ray.")
    out: Path | str | None = option(None, "Output file: .nc .zarr .csv .parquet, or .state for a shard to merge.")
    resume: bool = option(False, "Resume an interrupted run.")
    overwrite: bool = option(False, OVERWRITE)
    progress: bool = option(True, PROGRESS, shell=False)


@dataclass(frozen=True, kw_only=True)
class ProbedInputs:
    """What a probe reads of which examples."""

    query: str = option("mean", "Attention from a split word: mean of its tokens, or first.")
    site: str | None = option(None, "Attention site of an encoder-decoder model: encoder or decoder.")
    limit: int | None = option(None, LIMIT)
    seed: int = option(0, "Random seed of `limit`, the halves and `random_weights`.")
    max_length: int | None = option(None, MAX_LENGTH)
    batch_size: int | None = option(None, "Number of texts per batch. Default: 4,096 tokens.")


@dataclass(frozen=True)
class ProbeOptions(ProbedInputs, EditOptions):
    """What `hs.probe` takes."""

    model: "Model" = field(metadata=describe(MODEL))
    data: Any = field(
        metadata=describe(
            "Anything that `hs.read` reads, with the columns that the probe needs: a treebank for syntax."
        )
    )
    probe: str | Any = option("dependency", "A probe, see `headscope list probes`.", catalog="probes")
    _: KW_ONLY
    train: Any = option(None, "Data to choose or train on. Default: half of the documents.")
    lens: str | Any = option(DEFAULT_LENS, "The attention that the probe reads.", catalog="lenses")
    random_weights: bool = option(False, "Fit it also to the model with random weights.")
    progress: bool = option(True, PROGRESS, shell=False)

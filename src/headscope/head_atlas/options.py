"""Options of `hs.atlas`."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.lens import DEFAULT_LENSES
from headscope.core.options import (
    DATA,
    HEADS,
    LAYERS,
    MAX_LENGTH,
    MODEL,
    OVERWRITE,
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

DEFAULT_STATISTICS = ("activity", "entropy", "peak", "distance", "offsets:reach=1", "effective_share")
"""What an atlas measures of every head, where nothing else is named."""


@dataclass(frozen=True)
class AtlasOptions(SampleOptions, EditOptions):
    """What `hs.atlas` takes."""

    model: "Model" = field(metadata=describe(MODEL))
    data: Any = field(metadata=describe(f"{DATA} For a vision model a list of images or a folder."))
    _: KW_ONLY
    out: Path | str = field(metadata=describe("Output folder."))
    statistics: Sequence[str] | Any = option(
        DEFAULT_STATISTICS, "Statistics, see `headscope list statistics`.", flag="stat", catalog="statistics"
    )
    lens: Sequence[str] | Any = option(DEFAULT_LENSES, "Lenses, see `headscope list lenses`.", catalog="lenses")
    activity: str | Any = option(
        "activity", "The statistic by which examples are sorted, of the first lens.", catalog="statistics"
    )
    examples: int = option(5, "Number of strongest, of median and of weakest examples of a head.")
    keys: int = option(8, "Largest weights of a row that are kept.")
    threshold: float = option(0.005, "Smallest absolute weight that is kept.")
    headvis: Path | str | None = option(None, "Also write a folder in the layout of HeadVis, of the first lens.")
    target: str | Any = option(None, TARGET)
    site: str | None = option(None, SITE)
    layers: Sequence[int] | int | None = option(None, LAYERS)
    heads: Sequence[int] | int | None = option(None, HEADS)
    max_length: int | None = option(None, MAX_LENGTH)
    batch_size: int | None = option(None, "Maximum number of examples per batch. Default: 4,096 tokens.")
    tagger: str = option("auto", "auto (the tags of the data, else english), english, gold or spacy:MODEL.")
    engine: str = option("local", "local or ray.")
    workers: int | None = option(None, "Number of processes of the engine ray.")
    overwrite: bool = option(False, OVERWRITE)
    progress: bool = option(True, PROGRESS, shell=False)

"""Options of `hs.score`, shared with what scores a model without heads."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from headscope.core.options import ANY_MODEL, PAD_TO, PROGRESS, describe, option
from headscope.engine.options import EditOptions


@dataclass(frozen=True)
class ScoringOptions:
    """The model and the examples that it is scored on."""

    model: Any = field(metadata=describe(ANY_MODEL))
    data: Any = field(metadata=describe("Labeled examples: anything that `hs.read` reads."))
    _: KW_ONLY
    task: str = option("auto", "classification, regression, choice, translation, mlm or causal. auto: from the model.")
    batch_size: int = option(32, "Number of examples per batch.")
    max_length: int | None = option(None, "Truncate texts to this number of tokens. Default: as tuned.")
    progress: bool = option(True, PROGRESS, shell=False)


@dataclass(frozen=True)
class ScoreOptions(ScoringOptions, EditOptions):
    """What `hs.score` takes."""

    _: KW_ONLY
    pad_to: int | None = option(None, PAD_TO)

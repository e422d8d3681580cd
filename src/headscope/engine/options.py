"""Options of loading a model, of captures and of importances."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from headscope.core.options import (
    DEVICE,
    EDIT,
    HEADS,
    LAYERS,
    MAX_LENGTH,
    MODEL,
    PAD_POSITIONS,
    PAD_TO,
    PROGRESS,
    SITE,
    TARGET,
    describe,
    option,
)

if TYPE_CHECKING:
    from headscope.engine.model import Model


@dataclass(frozen=True)
class LoadOptions:
    """What `hs.load` takes."""

    model: Any = option(None, "A hub id, a folder, or a network already loaded. Default: a small BERT.")
    _: KW_ONLY
    tokenizer: Any = option(None, "The tokenizer of a network already loaded.", shell=False)
    processor: Any = option(None, "The image processor or feature extractor of a network already loaded.", shell=False)
    device: Any = option(None, DEVICE)
    dtype: str | Any = option(None, "float32, bfloat16, float16 or float64. Default: the checkpoint's own.")


@dataclass(frozen=True, kw_only=True)
class EditOptions:
    """Edits of a model."""

    edit: Sequence[str] | Any = option(None, EDIT, catalog="edits")


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """What of a forward pass is recorded."""

    site: str | None = option(None, SITE)
    layers: Sequence[int] | int | None = option(None, LAYERS)
    heads: Sequence[int] | int | None = option(None, HEADS)
    keep: Sequence[str] = option(
        (),
        "What to keep: attention, values, output, model_output (the default), pads, residual, readout, unembedding and "
        "blocks.",
        shell=False,
    )
    target: str | Any = option(None, TARGET)
    max_length: int | None = option(None, MAX_LENGTH)
    pad_to: int | None = option(None, PAD_TO)
    pad_positions: str = option("model", PAD_POSITIONS)
    gather: Any = option(
        None,
        "The device that all tensors of the trace are moved to, such as 'cpu'. Default: each stays where it was "
        "computed; layers on several devices are moved to that of the inputs.",
        shell=False,
    )


@dataclass(frozen=True)
class CaptureOptions(RecordOptions):
    """What `hs.capture` takes."""

    model: "Model" = field(metadata=describe(MODEL))
    text: Any = field(
        metadata=describe(
            "A text, a pair of texts as a tuple, anything that `hs.read` reads, or a processed batch; for a vision "
            "model a path, a PIL image, or a list of either; for a model of sounds the path of a WAV file, samples at "
            "the model's rate, (samples, rate), or a list of these. All of it is one batch."
        )
    )
    pair: Any = option(None, "The second text of each; for an encoder-decoder model what the decoder reads.")
    _: KW_ONLY
    rows: Sequence[int] | int | None = option(
        None,
        "Queries to keep, such as range(100, 200) or -1 for the last: of texts whose whole maps do not fit in memory. "
        "Default: all.",
        shell=False,
    )


@dataclass(frozen=True)
class StreamOptions(RecordOptions):
    """What `hs.stream` takes."""

    model: "Model" = field(metadata=describe(MODEL))
    data: Any = field(
        metadata=describe("Anything that `hs.read` reads; for a model of images or sounds a list of them or a folder.")
    )
    _: KW_ONLY
    batch_size: int = option(8, "Number of examples per batch.")


@dataclass(frozen=True)
class ImportancesOptions:
    """What `hs.importances` takes."""

    model: "Model" = field(metadata=describe(MODEL))
    data: Any = field(metadata=describe("A text, or anything that `hs.read` reads."))
    method: str | Any = option(
        "blank_out", "A method, see `headscope list importance_methods`.", catalog="importance_methods"
    )
    _: KW_ONLY
    target: str | Any = option("predicted", TARGET)
    batch_size: int = option(16, "Number of texts per batch.")
    max_length: int | None = option(None, MAX_LENGTH)
    progress: bool = option(False, PROGRESS, shell=False)


@dataclass(frozen=True)
class RepeatTokensOptions:
    """What `hs.repeat_tokens` takes."""

    model: "Model" = field(metadata=describe(MODEL))
    tokens: int = option(32, "Number of different tokens in each half of a text.")
    _: KW_ONLY
    count: int = option(64, "Number of texts.")
    seed: int = option(0, "Seed of the random tokens.")

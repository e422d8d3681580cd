"""Whether a model can do what the form asks of it; the answers name fields of the form."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headscope.core.errors import InputError

if TYPE_CHECKING:
    from headscope.engine.model import Model

UNREADABLE = "function of its output"
"""What the library offers where a model's output has no score of one class or word; a page can give no function."""


def check_reads(model: "Model") -> None:
    """Raise InputError for a model that does not read a text as it is typed."""
    from headscope.engine.images import reads_images

    name, config = type(model.network).__name__, model.network.config
    if reads_images(model):
        raise InputError(f"{name} reads images, and the studio looks at texts. Choose another model.")
    if config.is_encoder_decoder and name.endswith("ForSequenceClassification"):
        raise InputError(
            f"{name} reads each text in its encoder and again in its decoder, and the studio gives its decoder the "
            "second text. Choose the model without this head."
        )


def check_generates(model: "Model", tokens: int, count: int) -> None:
    """Raise InputError for a model that cannot go on with a text of so many tokens by so many."""
    from headscope.engine.batch import max_input_length

    network, limit = model.network, max_input_length(model)
    name = type(network).__name__
    if not getattr(network, "can_generate", lambda: False)():
        raise InputError(
            f"{name} cannot generate tokens. Set 'Generate tokens' to 0, or choose a model that writes, such as gpt2."
        )
    if network.config.is_encoder_decoder:
        raise InputError(
            f"{name} reads one text and writes another, and the studio generates with models that go on with their "
            "text. Set 'Generate tokens' to 0, and type what it may have written as second text."
        )
    if limit is not None and tokens + count > limit:
        raise InputError(
            f"The text has {tokens:,} tokens, and with {count:,} generated ones it is longer than the {limit:,} that "
            f"{name} reads. Shorten the text, or generate fewer."
        )


@contextmanager
def explain_output(model: "Model", purpose: str) -> Iterator[None]:
    """Say in this block what an output without classes or words cannot be used for."""
    try:
        yield
    except InputError as error:
        if UNREADABLE not in str(error):
            raise
        name = type(model.network).__name__
        raise InputError(f"{name} predicts no class, word or number for a text as a whole, {purpose}") from error

"""What a model reads: which of its inputs holds the examples, and sentences for what it cannot read."""

import inspect
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.engine.images import is_picture
from headscope.engine.model import Model
from headscope.engine.sound import is_sound, reads_sounds


def forward_parameters(network: Any) -> frozenset[str]:
    """Return the names of what the network's forward takes."""
    return _parameter_names(inspect.unwrap(getattr(network.forward, "__func__", network.forward)))


@lru_cache(maxsize=64)
def _parameter_names(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def takes_decoder_ids(model: Model) -> bool:
    """Whether a model writes words: encoder-decoders of objects in pictures and of series take no decoder ids."""
    return bool(model.network.config.is_encoder_decoder) and "decoder_input_ids" in forward_parameters(model.network)


def check_is_text(model: Model, data: Any) -> None:
    """Raise InputError for pictures and sounds that a model of texts is given."""
    items = list(data) if isinstance(data, list | tuple) and not is_sound(data) else [data]
    class_name = type(model.network).__name__
    for item in items:
        what = "sound" if is_sound(item) else "picture" if is_picture(item) else None
        if what is not None:
            shown = f"'{item}'" if isinstance(item, str | os.PathLike) else f"this {type(item).__name__}"
            raise InputError(
                f"{class_name} reads texts, but {shown} is a {what}. Give texts, or what its processor makes of the "
                f"{what}, as a processed batch: hs.capture(model, {{'input_ids': …}})."
            )


def to_tensor(name: str, values: Any) -> Tensor:
    """Return an item of a processed batch as a tensor."""
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"'{name}' of the batch is a {type(values).__name__}, which is no tensor: {error}. Ask the processor for "
            "tensors with return_tensors='pt' and padding=True, and leave out what the forward does not take."
        ) from error


def find_main_input(model: Model, tensors: Mapping[str, Tensor]) -> str:
    """Return which tensor has a row for each example: ids, else pixel values, else what the network's forward reads."""
    main: str = model.network.main_input_name
    takes = forward_parameters(model.network)
    others = [
        name
        for name, tensor in tensors.items()
        if name in takes and tensor.ndim and tensor.is_floating_point() and not name.endswith("mask")
    ]
    known = ["input_ids", "pixel_values", main, "inputs_embeds", *others]
    found = next((name for name in known if name in tensors), None)
    if found is None:
        wanted = "input_ids or pixel_values" if main in ("input_ids", "pixel_values") else main
        raise InputError(
            f"A {'tokenized' if main == 'input_ids' else 'processed'} batch holds {wanted}, but this one holds "
            f"{', '.join(map(str, tensors))}. Give {_say_inputs(model)}."
        )
    return found


def _say_inputs(model: Model) -> str:
    """Say what a model can be given instead of a processed batch."""
    if reads_sounds(model):
        return "the path of a WAV file, an array of samples, or a list of either"
    if model.network.main_input_name in ("input_ids", "pixel_values"):
        return "texts as a list, a DataFrame, a dataset or a path: whatever hs.read takes"
    return f"what {type(model.network).__name__} reads: hs.capture(model, {{'{model.network.main_input_name}': …}})"


def check_main_input(model: Model) -> None:
    """Raise InputError for a model that reads neither texts nor pictures nor sounds, and was not given a batch."""
    main = model.network.main_input_name
    if main != "input_ids" and model.tokenizer is None:
        raise InputError(
            f"{type(model.network).__name__} reads {main}, not texts. Give them as a processed batch, which is passed "
            f"to the model unchanged: hs.capture(model, {{'{main}': …}})."
        )


def count_channels(model: Model, tensors: Mapping[str, Tensor]) -> int:
    """Return how many channels of a series the model reads as rows of their own (PatchTST)."""
    series = tensors.get("past_values")
    channels = getattr(model.network.config, "num_input_channels", 1)
    return int(channels) if series is not None and series.ndim == 3 and series.shape[2] == channels else 1

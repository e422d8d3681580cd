"""Batches of model inputs, with the tokens on both axes of the attention maps."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import compress
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.prose import count_noun, join_words
from headscope.core.tokens import ROLES, Tokens
from headscope.core.transfer import copy_to_host_async
from headscope.data.reading.read import read
from headscope.data.tokenizing.encode import Encoded, encode, pad_sequences, special_roles
from headscope.data.tokenizing.readable import make_readable
from headscope.engine.image_tokens import ImageTokens, find_image_tokens
from headscope.engine.images import image_examples, process_images, read_images, reads_images
from headscope.engine.main_input import (
    check_is_text,
    check_main_input,
    count_channels,
    find_main_input,
    forward_parameters,
    takes_decoder_ids,
    to_tensor,
)
from headscope.engine.model import Model
from headscope.engine.positions import Positions, find_positions
from headscope.engine.recording.layout import Layout
from headscope.engine.sound import name_examples, process_sounds, read_sounds, reads_sounds
from headscope.engine.windows import find_windows


@dataclass(frozen=True)
class Inputs:
    """One batch: the arguments of the network's forward, its examples and their tokens."""

    tensors: Mapping[str, Any]
    examples: tuple[Example, ...]
    source: Tokens | None  # None: no words, so that positions are counted in the attention maps
    target: Tokens | None = None  # what the decoder of an encoder-decoder model reads
    positions: Positions = field(default_factory=Positions)  # what is known of positions that are no words
    images: Callable[[], tuple[Example, ...]] | None = None  # the examples of a tower that reads images
    token_labels: Tensor | None = None  # the ids of tokens that were masked, -100 elsewhere
    channels: int = 1  # of a series: the model reads each by itself, as a row of its own

    def tokens_at(
        self,
        site: str,
        sides: tuple[str | None, str | None],
        shape: tuple[int, int, int],
        seen: Bool[Tensor, "#batch key"] | None = None,
        layout: Layout | None = None,
    ) -> tuple[tuple[Example, ...], Tokens, Tokens]:
        """Return the examples, the query tokens and the key tokens of a site with maps of batch × queries × keys.

        `sides` says which axes are the model's inputs. Rows that are windows of pictures are examples with the tokens
        that the `layout` says. Other positions, such as patches of an image, are numbered, as are all rows and
        positions where the model regroups them; of these, keys that no query has `seen` are padding.
        """
        batch, *widths = shape
        side_tokens = [None if side is None else self.source if side == "source" else self.target for side in sides]
        placed = None if layout is None or any(side_tokens) else self._place_windows(layout, widths)
        if placed is not None:
            return placed
        examples = self._examples_of(batch, sides)
        queries, keys = (
            tokens or self.positions.tokens(batch, width) for tokens, width in zip(side_tokens, widths, strict=True)
        )
        if batch == len(examples) and [queries.real.shape[1], keys.real.shape[1]] == widths:
            return examples, queries, keys
        lengths = [tokens.real.shape[1] for tokens in side_tokens if tokens is not None]
        size = f" of {join_words(dict.fromkeys(lengths))} tokens" if lengths else ""
        warnings.warn(
            f"The model was given {len(examples)} example(s){size}, but its {site} maps are {batch} × {widths[0]} × "
            f"{widths[1]} (batch × queries × keys): it adds, drops or regroups tokens inside, such as in windows of a "
            "picture, so what the maps hold is numbered instead of named.",
            DataWarning,
            stacklevel=2,
        )
        if batch != len(examples):
            examples = tuple(Example(id=f"row {row}", text="") for row in range(batch))
        queries, keys = (_number_tokens(batch, width, seen) for width in widths)
        return examples, queries, keys

    def _place_windows(
        self, layout: Layout, widths: Sequence[int]
    ) -> tuple[tuple[Example, ...], Tokens, Tokens] | None:
        """Return the examples and tokens of windows of pictures; None where nothing says what the rows hold."""
        pictures = self.examples if self.images is None else self.images()
        pixels = self.tensors.get("pixel_values")
        grids = self.tensors.get("grid_thw", self.tensors.get("image_grid_thw"))
        counts = None if grids is None else grids.prod(-1).tolist()
        size = None if pixels is None or pixels.ndim < 4 else (pixels.shape[-2], pixels.shape[-1])
        windows = find_windows(layout, len(pictures), counts, size)
        if windows is None:
            return None
        tokens = windows.name_tokens()
        rows, width = tokens.real.shape
        queries, keys = (tokens if side == width else Positions().tokens(rows, side) for side in widths)
        return windows.make_examples(pictures), queries, keys

    def _examples_of(self, batch: int, sides: tuple[str | None, str | None]) -> tuple[Example, ...]:
        """Return the examples of a site with this many rows: those of the batch, its pictures, or its channels."""
        if self.images is not None and sides == (None, None) and batch == len(images := self.images()):
            return images
        if self.channels > 1 and batch == len(self.examples) * self.channels:
            return tuple(
                replace(example, id=f"{example.id}.{channel}", text=f"{example.text}, channel {channel}")
                for example in self.examples
                for channel in range(self.channels)
            )
        return self.examples


def _number_tokens(batch: int, width: int, seen: Bool[Tensor, "#batch key"] | None) -> Tokens:
    """Return numbers as tokens; those that no query sees are padding, where that is known."""
    tokens = Positions().tokens(batch, width)
    if seen is None or seen.shape[-1] != width:
        return tokens
    real = seen.expand(batch, width).cpu()
    text = [list(compress(row, keep)) for row, keep in zip(tokens.text, real.tolist(), strict=True)]
    return replace(tokens, text=text, real=real, special=tokens.special & real, segment=torch.where(real, 0, -1))


def read_inputs(model: Model, data: Any) -> list[Example]:
    """Return what `hs.read` reads; for a model of images or sounds an example for each of them."""
    if reads_images(model):
        return read_images(data)
    if reads_sounds(model):
        return read_sounds(data)
    check_is_text(model, data)
    return read(data)


def make_batches(
    model: Model,
    examples: Sequence[Example],
    size: int,
    *,
    max_length: int | None = None,
    pad_to: int | None = None,
    pad_positions: str = "model",
) -> Iterator[Inputs]:
    """Tokenize all examples at once, so that truncation is reported once, and split them into batches."""
    if reads_images(model) or reads_sounds(model):
        if max_length is not None or pad_to is not None or pad_positions != "model":
            what = "picture" if reads_images(model) else "sound"
            raise InputError(f"A {what} goes in whole: leave out max_length, pad_to and pad_positions.")
        make = _make_image_batches if reads_images(model) else _make_sound_batches
        return make(model, read_inputs(model, examples), size)
    check_main_input(model)
    _check_towers(model)
    is_encoder_decoder = model.network.config.is_encoder_decoder
    _check_decoder(model)
    longest = check_max_length(model, examples, max_length)
    sources = encode(model.tokenizer, examples, max_length=longest, use_pair=not is_encoder_decoder)
    targets = _encode_targets(model, examples, longest) if is_encoder_decoder else None

    def batches() -> Iterator[Inputs]:
        for start in range(0, len(examples), size):
            rows = slice(start, start + size)
            fill = {"input_ids": model.tokenizer.pad_token_id or 0}
            tensors, source = pad_sequences(sources[rows], fill, width=pad_to, device=model.device)
            target = None
            if targets is not None:
                target_tensors, target = pad_sequences(targets[rows], fill, device=model.device)
                tensors |= {f"decoder_{name}": tensor for name, tensor in target_tensors.items()}
            if pad_positions != "model":
                tensors |= {"position_ids": number_positions(model, tensors["input_ids"], pad_positions)}
            arguments = forward_arguments(model, tensors, drop_unknown=True)
            yield Inputs(arguments, tuple(examples[rows]), source, target)

    return batches()


def number_positions(model: Model, ids: Int[Tensor, "batch token"], pad_positions: str) -> Int[Tensor, "batch token"]:
    """Return the position of each token, also of padding, which stands on the right.

    Models that count positions from the padding index (RoBERTa, MPNet) give all padding one position. Those of other
    tokens stay as they are, and so do the outputs on them.
    """
    if pad_positions != "distinct":
        raise InputError(f"pad_positions={pad_positions!r} is none of model, distinct.")
    if "position_ids" not in forward_parameters(model.network) or model.network.config.is_encoder_decoder:
        raise InputError(
            f"pad_positions='distinct' gives each token of padding its position, but {type(model.network).__name__} "
            "takes no position_ids. Leave it out."
        )
    batch, width = ids.shape
    positions = _count_positions(model)
    if positions is not None and width > positions:
        raise InputError(
            f"pad_positions='distinct' needs {width} positions, but {model.spec} has {positions}. Give "
            f"pad_to={positions} or less."
        )
    first = model.family.unused_positions
    return torch.arange(first, first + width, device=ids.device).expand(batch, width)


def _make_image_batches(model: Model, examples: Sequence[Example], size: int) -> Iterator[Inputs]:
    for start in range(0, len(examples), size):
        rows = examples[start : start + size]
        tensors, names = process_images(model, rows)
        inputs = inputs_from_tensors(model, tensors)
        ids = [example.id for example in rows]
        yield replace(inputs, examples=image_examples(model, tensors["pixel_values"], names, ids))


def _make_sound_batches(model: Model, examples: Sequence[Example], size: int) -> Iterator[Inputs]:
    for start in range(0, len(examples), size):
        rows = examples[start : start + size]
        tensors, names = process_sounds(model, rows)
        inputs = inputs_from_tensors(model, tensors)
        yield replace(inputs, examples=name_examples(len(rows), names, [example.id for example in rows]))


def inputs_from_tensors(model: Model, batch: Mapping[str, Any], names: Sequence[str] = ()) -> Inputs:
    """Prepare a batch that is tokenized already, or images, sounds or series that are processed already.

    `names` are those of the images or sounds.
    """
    tensors = {name: to_tensor(name, values) for name, values in batch.items()}
    main = tensors[find_main_input(model, tensors)]
    if 0 in main.shape or (main.ndim != 2 and "input_ids" in tensors):
        raise InputError(f"input_ids must have shape [batch, token] with at least one token, not {list(main.shape)}.")
    if takes_decoder_ids(model) and not {"decoder_input_ids", "decoder_inputs_embeds"} & set(tensors):
        _check_decoder(model)
        tensors["decoder_input_ids"] = torch.full((len(main), 1), decoder_start_id(model))
    on_device = {name: tensor.to(model.device, non_blocking=True) for name, tensor in tensors.items()}
    arguments, host = forward_arguments(model, on_device), copy_ids_to_host(tensors)
    images = _list_images(model, tensors)
    source = tokens_from_ids(model, host) if "input_ids" in tensors else None
    if source is not None:
        pictures = find_image_tokens(model, tensors)
        examples = tuple(_example_from_tokens(source, row, pictures) for row in range(len(main)))
    elif "grid_thw" in tensors:  # pictures as one list of patches
        examples = name_examples(len(tensors["grid_thw"]), ["image"] * len(tensors["grid_thw"]))
    elif images is not None:
        examples = image_examples(model, main, names)
    else:
        name = "sound" if reads_sounds(model) else find_main_input(model, tensors)
        examples = name_examples(len(main), names or [name] * len(main))
    return Inputs(
        arguments,
        examples,
        source,
        tokens_from_ids(model, host, "decoder_") if _holds_words(tensors.get("decoder_input_ids")) else None,
        find_positions(model, tensors),
        images if source is not None else None,
        channels=count_channels(model, tensors),
    )


def _list_images(model: Model, tensors: Mapping[str, Tensor]) -> Callable[[], tuple[Example, ...]] | None:
    """Return what makes the examples of a tower that reads the pictures of a batch; None without pictures."""
    pixels, grids = tensors.get("pixel_values"), tensors.get("image_grid_thw")
    if pixels is None:
        return None
    if grids is not None:  # one list of patches
        return partial(name_examples, len(grids), ["image"] * len(grids))
    return partial(image_examples, model, pixels.flatten(0, 1) if pixels.ndim == 5 else pixels)


def _holds_words(ids: Tensor | None) -> bool:
    """Whether a decoder reads one id at each position; some of sounds read several (Dia), which are no words."""
    return ids is not None and ids.ndim == 2


def copy_ids_to_host(tensors: Mapping[str, Tensor]) -> Callable[[], Mapping[str, Tensor]]:
    """Start copying ids and masks to the host; the returned function waits for the copies.

    The host waits only if it asks before the GPU has reached the copy. Changes to the tensors after this call have no
    effect on the copies.
    """
    names = [f"{side}{name}" for side in ("", "decoder_") for name in ("input_ids", "attention_mask", "token_type_ids")]
    small = {name: tensors[name].detach() for name in names if name in tensors}
    on_gpu = {name: tensor for name, tensor in small.items() if tensor.is_cuda}
    on_host = {name: tensor.to("cpu", copy=True) for name, tensor in small.items() if name not in on_gpu}
    wait = copy_to_host_async(on_gpu.values())
    return cache(lambda: on_host | dict(zip(on_gpu, wait(), strict=True)))


def tokens_from_ids(model: Model, host: Callable[[], Mapping[str, Tensor]], side: str = "") -> Tokens:
    """Return the tokens of ids: as the tokenizer spells them, or as numbers without a tokenizer.

    Every field is computed on first access, on the host: decoding a batch takes as long as a forward pass on a GPU.
    """
    tokenizer = model.tokenizer

    def ids() -> Int[Tensor, "batch token"]:
        return host()[f"{side}input_ids"]

    def text(tokens: Tokens) -> list[list[str]]:
        rows = (list(compress(row, real)) for row, real in zip(ids().tolist(), tokens.real.tolist(), strict=True))
        return [list(map(str, row)) if tokenizer is None else make_readable(tokenizer, row) for row in rows]

    def real(_: Tokens) -> Tensor:
        mask = host().get(f"{side}attention_mask")
        return torch.ones_like(ids(), dtype=torch.bool) if mask is None else mask.bool()

    def role(tokens: Tokens) -> Tensor:
        roles = {} if tokenizer is None else special_roles(tokenizer)
        table = torch.zeros(1 + max([int(ids().max()), *roles]), dtype=ids().dtype)
        table[list(roles)] = torch.tensor(list(roles.values()), dtype=table.dtype)
        return table[ids().clamp(min=0)] * tokens.real

    def segment(tokens: Tokens) -> Tensor:
        types = None if side else host().get("token_type_ids")
        return torch.where(tokens.real, torch.zeros_like(ids()) if types is None else types, -1)

    return Tokens.lazy(
        text=text,
        real=real,
        special=lambda tokens: tokens.role > 0,
        segment=segment,
        word=lambda _: torch.full_like(ids(), -1),
        role=role,
    )


def _example_from_tokens(tokens: Tokens, row: int, pictures: ImageTokens | None) -> Example:
    columns: Any = {} if pictures is None else lambda _: pictures.columns(row)
    return Example.lazy(id=str(row), text=lambda _: " ".join(tokens.text[row]), columns=columns, part_of=None)


def max_input_length(model: Model) -> int | None:
    """Return how many tokens the model can read, or None if nothing limits it."""
    limits = (getattr(model.tokenizer, "model_max_length", None), _count_positions(model))
    return min((limit for limit in limits if limit and limit > 0), default=None)


def check_max_length(model: Model, examples: Sequence[Example], max_length: int | None) -> int | None:
    """Return the number of tokens to truncate examples to; by default what the model can read.

    Raise InputError if special tokens leave no room for a token of each text, or if the model lacks positions.
    """
    if max_length is None or model.tokenizer is None:
        return max_input_length(model)
    two = any(example.pair is not None for example in examples)
    pairs = two and not model.network.config.is_encoder_decoder  # whose decoder reads the pair, after a start token
    special = model.tokenizer.num_special_tokens_to_add(pair=pairs)
    least = special + (2 if two else 1)
    if max_length < least:
        input_form = "pair" if pairs else "text"
        raise InputError(
            f"max_length={max_length} leaves no room for the texts: the tokenizer adds "
            f"{count_noun(special, 'special token')} to each {input_form}. Give at least {least}."
        )
    positions, rotary = _count_positions(model), hasattr(model.network.config, "rope_parameters")
    if positions is not None and max_length > positions and not rotary:  # rotary positions have no end
        raise InputError(
            f"max_length={max_length} is more than the {positions} tokens that {model.spec} can read. Give {positions} "
            "or less."
        )
    return max_length


def _count_positions(model: Model) -> int | None:
    """Return the number of positions that tokens can use, or None if the config gives none."""
    positions = getattr(model.network.config, "max_position_embeddings", None)
    if positions is None or positions <= 0:  # XLNet's config says -1
        return None
    return int(positions) - model.family.unused_positions


def _encode_targets(model: Model, examples: Sequence[Example], longest: int | None) -> list[Encoded]:
    """Encode what the decoder reads: its start token, then the second text without its end token."""
    start_id = decoder_start_id(model)
    role = special_roles(model.tokenizer).get(start_id, ROLES.index("other"))
    start = Encoded.lazy(
        inputs={"input_ids": [start_id], "attention_mask": [1]},
        text=lambda _: make_readable(model.tokenizer, [start_id]),
        special=[True],
        segment=[0],
        word=[-1],
        role=[role],
    )
    targets = [
        Example(example.id, example.pair, columns=_pair_columns(example))
        for example in examples
        if example.pair is not None
    ]
    if not targets:
        return [start] * len(examples)
    if len(targets) != len(examples):
        raise InputError(f"{len(targets)} of {len(examples)} examples have a second text. Give one to all or to none.")
    encoded = encode(model.tokenizer, targets, max_length=longest - 1 if longest else None)
    word_counts = [len(example.columns.get("spans", ())) for example in examples]  # words of the first text come first
    return [_shift_right(start, row, count) for row, count in zip(encoded, word_counts, strict=True)]


def _pair_columns(example: Example) -> dict[str, Any]:
    """Return the word spans of the second text, if they are known."""
    return {"spans": example.columns["pair_spans"]} if "pair_spans" in example.columns else {}


def _shift_right(start: Encoded, row: Encoded, first_word: int) -> Encoded:
    end = -1 if row.special[-1] else len(row.special)
    return Encoded.lazy(
        inputs={name: [*start.inputs[name], *row.inputs[name][:end]] for name in start.inputs},
        text=lambda _: [*start.text, *row.text[:end]],
        special=[True, *row.special[:end]],
        segment=[0, *row.segment[:end]],
        word=[-1, *(word + first_word if word >= 0 else -1 for word in row.word[:end])],
        role=[*start.role, *row.role[:end]],
    )


def _check_towers(model: Model) -> None:
    """Raise InputError for a model of texts and images together (CLIP); a SmolVLM reads texts alone, too."""
    towers = all(hasattr(model.network, name) for name in ("text_model", "vision_model"))
    if towers and hasattr(model.network.config, "projection_dim"):
        raise InputError(
            f"A {type(model.network).__name__} reads texts and images together. Give both as a tokenized batch, as its "
            "processor makes it: hs.capture(model, {'input_ids': …, 'pixel_values': …})."
        )


def _check_decoder(model: Model) -> None:
    """Raise InputError for an encoder-decoder classifier, whose decoder reads the whole text again."""
    class_name = type(model.network).__name__
    if model.network.config.is_encoder_decoder and class_name.endswith("ForSequenceClassification"):
        raise InputError(
            f"{class_name} reads each text in its encoder and again in its decoder, but headscope gives its decoder a "
            "second text. Load the model without this head, or give a tokenized batch with decoder_input_ids to "
            "hs.capture."
        )


def decoder_start_id(model: Model) -> int:
    """Return the id of the token with which a decoder starts."""
    config = model.network.config
    start = getattr(config, "decoder_start_token_id", None)
    start = config.pad_token_id if start is None else start
    if start is None:
        raise InputError("The model's config has no decoder_start_token_id, so its decoder cannot start. Set it there.")
    return int(start)


def forward_arguments(model: Model, tensors: dict[str, Tensor], *, drop_unknown: bool = False) -> dict[str, Any]:
    """Switch the cache off; drop what the network's forward does not take, such as token types for DistilBERT."""
    names = forward_parameters(model.network)
    if drop_unknown and "input_ids" in names:
        tensors = {name: tensor for name, tensor in tensors.items() if name in names}
    return {**tensors, "use_cache": False} if "use_cache" in names else tensors

"""Batches as a model takes them, with the tokens on both sides of its maps."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import compress
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import CaptureError, InputError
from headscope.core.example import Example
from headscope.core.tokens import ROLES, Tokens
from headscope.data.tokenizing.encode import Encoded, encode, pad_sequences, special_roles
from headscope.data.tokenizing.readable import make_readable
from headscope.engine.images import patch_grid, patches, pictures
from headscope.engine.model import Model


@dataclass(frozen=True)
class Names:
    """What one batch is about: its examples, and the tokens that the model reads and writes."""

    examples: tuple[Example, ...]
    reads: Tokens | None  # None: an image, whose patches are counted when they are seen
    writes: Tokens | None = None
    grid: tuple[int, int] | None = None  # rows and columns of an image's patches

    def sides(self, site: str, queries: int, keys: int) -> tuple[Tokens, Tokens]:
        """The tokens that ask and the tokens that are asked, at a site whose maps are queries × keys."""
        asking = self.writes if site in ("decoder", "cross") else self.reads
        asked = self.writes if site == "decoder" else self.reads
        found = []
        for tokens, width in ((asking, queries), (asked, keys)):
            tokens = tokens or patches(len(self.examples), width, self.grid)
            if tokens.real.shape[1] != width:
                raise CaptureError(
                    f"The model was given {tokens.real.shape[1]} tokens, but its {site} maps are {queries} × {keys}: "
                    "it adds or drops tokens inside, and headscope would name them wrongly."
                )
            found.append(tokens)
        return found[0], found[1]


@dataclass(frozen=True)
class Inputs:
    """One batch: what goes into the network, and a way to name it, which can wait until the network is at work."""

    tensors: dict[str, Any]
    names: Callable[[], Names]


def make_batches(
    model: Model, examples: Sequence[Example], size: int, *, max_length: int | None = None, pad_to: int | None = None
) -> Iterator[Inputs]:
    """Tokenise all examples at once, so that whatever is cut is said once, and cut them into batches."""
    two = model.network.config.is_encoder_decoder
    longest = max_length or max_input_length(model)
    reads = encode(model.tokenizer, examples, longest=longest, paired=not two)
    writes = _written(model, examples, longest) if two else None

    def made() -> Iterator[Inputs]:
        for start in range(0, len(examples), size):
            some = slice(start, start + size)
            fill = {"input_ids": model.tokenizer.pad_token_id or 0}
            tensors, reading = pad_sequences(reads[some], fill, width=pad_to, device=model.device)
            writing = None
            if writes is not None:
                targets, writing = pad_sequences(writes[some], fill, device=model.device)
                tensors |= {f"decoder_{name}": each for name, each in targets.items()}
            names = Names(tuple(examples[some]), reading, writing)
            yield Inputs(_accepted(model, tensors), partial(_same, names))

    return made()


def tokenised(model: Model, given: Mapping[str, Any], names: Sequence[str] = ()) -> Inputs:
    """A batch that was tokenised already, or images that were processed already, with a name each if they have one."""
    device = model.device
    here = {name: torch.as_tensor(each) for name, each in given.items()}
    tensors = {name: each.to(device, non_blocking=True) for name, each in here.items()}
    if not {"input_ids", "pixel_values"} & set(tensors):
        raise InputError(f"A tokenised batch holds input_ids or pixel_values, but this one holds {', '.join(tensors)}.")
    main = tensors.get("input_ids", tensors.get("pixel_values"))
    assert main is not None
    if 0 in main.shape or (main.ndim != 2 and "input_ids" in tensors):
        raise InputError(f"input_ids must have shape [batch, token] with at least one token, not {list(main.shape)}.")
    if model.network.config.is_encoder_decoder and "decoder_input_ids" not in here:
        here["decoder_input_ids"] = torch.full((len(main), 1), _start(model))
        tensors["decoder_input_ids"] = here["decoder_input_ids"].to(device)
    return Inputs(_without_cache(model, tensors), cache(partial(_named_batch, model, here, names)))


def _named_batch(model: Model, given: Mapping[str, Tensor], names: Sequence[str]) -> Names:
    """The names of a batch that came without a text: from its ids, or from its patches."""
    if "input_ids" in given:
        reads = named(model, given, "")
        writes = named(model, given, "decoder_") if model.network.config.is_encoder_decoder else None
        texts = enumerate(" ".join(row) for row in reads.text)
        return Names(tuple(Example(str(place), text) for place, text in texts), reads, writes)
    pixels = given["pixel_values"]
    grid = patch_grid(model, pixels)
    rows = zip(names or ["image"] * len(pixels), pictures(model, pixels, grid), strict=True)
    examples = tuple(Example(str(place), text, columns=each) for place, (text, each) in enumerate(rows))
    return Names(examples, None, grid=grid)


def _same(names: Names) -> Names:
    return names


def max_input_length(model: Model) -> int | None:
    """How many tokens the model can read, or None where nothing limits it."""
    positions = getattr(model.network.config, "max_position_embeddings", None)
    limits = [getattr(model.tokenizer, "model_max_length", None)]
    limits += [positions - model.family.unused_positions if positions else None]
    return min((limit for limit in limits if limit and limit > 0), default=None)


def named(model: Model, tensors: Mapping[str, Tensor], side: str) -> Tokens:
    """Tokens from ids: as the tokenizer spells them, or by number where there is none. They stay with the host."""
    ids = tensors[f"{side}input_ids"].cpu()
    mask = tensors.get(f"{side}attention_mask")
    real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.cpu().bool()
    rows = [list(compress(row, kept)) for row, kept in zip(ids.tolist(), real.tolist(), strict=True)]
    known = model.tokenizer is not None
    text = [make_readable(model.tokenizer, row) if known else list(map(str, row)) for row in rows]
    roles = special_roles(model.tokenizer) if known else {}
    role = torch.zeros_like(ids)
    if roles:
        role = torch.tensor([[roles.get(each, 0) for each in row] for row in ids.tolist()]) * real
    types = tensors.get("token_type_ids") if not side else None
    segment = torch.where(real, torch.zeros_like(ids) if types is None else types.cpu(), -1)
    return Tokens(text, real, role > 0, segment, torch.full_like(ids, -1), role)


def _written(model: Model, examples: Sequence[Example], longest: int | None) -> list[Encoded]:
    """What the decoder reads: its start token, then the second text without the end."""
    start = _start(model)
    (name,) = make_readable(model.tokenizer, [start])
    role = special_roles(model.tokenizer).get(start, ROLES.index("other"))
    first = Encoded({"input_ids": [start], "attention_mask": [1]}, [name], [True], [0], [-1], [role])
    targets = [Example(each.id, each.pair, columns=_own_words(each)) for each in examples if each.pair is not None]
    if not targets:
        return [first] * len(examples)
    if len(targets) != len(examples):
        raise InputError(f"{len(targets)} of {len(examples)} examples have a second text. Give one to all or to none.")
    room = longest - 1 if longest else None
    encoded = encode(model.tokenizer, targets, longest=room)
    words = [len(each.columns.get("spans", ())) for each in examples]  # those of the text come first
    return [_shifted(first, row, before) for row, before in zip(encoded, words, strict=True)]


def _own_words(example: Example) -> dict[str, Any]:
    """The words of the second text, where they are known."""
    return {"spans": example.columns["pair_spans"]} if "pair_spans" in example.columns else {}


def _shifted(first: Encoded, row: Encoded, before: int) -> Encoded:
    end = -1 if row.special[-1] else len(row.text)
    return Encoded(
        {name: [*first.inputs[name], *row.inputs[name][:end]] for name in first.inputs},
        [*first.text, *row.text[:end]],
        [True, *row.special[:end]],
        [0, *row.segment[:end]],
        [-1, *(word + before if word >= 0 else -1 for word in row.word[:end])],
        [*first.role, *row.role[:end]],
    )


def _start(model: Model) -> int:
    config = model.network.config
    start = getattr(config, "decoder_start_token_id", None)
    start = config.pad_token_id if start is None else start
    if start is None:
        raise InputError("The model's config has no decoder_start_token_id, so its decoder cannot start. Set it there.")
    return int(start)


def _accepted(model: Model, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Only what the network's forward takes: a tokenizer may offer more (token types for DistilBERT)."""
    names = inspect.signature(model.network.forward).parameters
    kept = {name: each for name, each in tensors.items() if name in names or "input_ids" not in names}
    return _without_cache(model, kept)


def _without_cache(model: Model, tensors: dict[str, Any]) -> dict[str, Any]:
    takes = "use_cache" in inspect.signature(model.network.forward).parameters
    return {**tensors, "use_cache": False} if takes else tensors

"""Convert maps between tokens to maps between words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.maps import Maps
from headscope.core.maps.factored import Factored
from headscope.core.tokens import Tokens
from headscope.core.trace import Visible


def to_words(maps: Maps, query: str = "mean") -> Maps:
    """Return the maps between words: the weight *to* a word is summed over its tokens, the weight *from* it averaged.

    This is the definition of Clark et al. (2019); their code uses the row of a word's first token (`query="first"`).
    Rows that sum to one still do. Special tokens, and tokens of no word, stay as they are. A word sees a word if one
    of its tokens (with "first": its first) sees one of the other's. Diagnostics remain those of the token maps.

    Parameters
    ----------
    maps
        Maps between tokens.
    query
        The weight from a split word: "mean" of its tokens, or that of its "first" token.

    >>> words = hs.to_words(hs.view(hs.capture(model, "Unbelievable tokenizers."), "raw"))
    >>> words.keys.text[0]
    ['[CLS]', 'unbelievable', 'tokenizers', '.', '[SEP]']
    """
    if query not in ("mean", "first"):
        raise InputError(f"query must be 'mean' or 'first', but got {query!r}. Leave it out for the mean.")
    queries = group_tokens(maps.queries)
    keys = queries if maps.keys is maps.queries else group_tokens(maps.keys)
    device = maps.visible[0].device
    rows, columns = queries.row_shares(query).to(device), keys.member.to(device)
    masks: dict[int, Visible] = {}  # layers often share one mask
    for mask in maps.visible:
        if id(mask) not in masks:
            masks[id(mask)] = merge_mask(mask, rows, columns)
    return replace(
        maps,
        parts=[merge_layer(layer, rows, columns) for layer in maps.parts],
        queries=queries.words,
        keys=keys.words,
        visible=[masks[id(mask)] for mask in maps.visible],
        graph=None,  # its paths pass through tokens
    )


def merge_layer(
    layer: Float[Tensor, "batch head query key"] | Factored,
    rows: Float[Tensor, "batch word query"],
    columns: Bool[Tensor, "batch other key"],
) -> Float[Tensor, "batch head word other"] | Factored:
    """Average the rows and sum the columns of each word of one layer; a factored map stays factored."""
    if not isinstance(layer, Factored):
        dtype = torch.promote_types(layer.dtype, torch.float32)  # half precision is added in float32
        merged = rows[:, None].to(dtype) @ layer.to(dtype) @ columns[:, None].to(dtype).mT
        return merged.to(layer.dtype)
    left, right = rows[:, None].to(layer.left.dtype), columns[:, None].to(layer.right.dtype)
    return Factored(left @ layer.left, right @ layer.right)


def merge_mask(
    visible: Visible, rows: Float[Tensor, "batch word query"], columns: Bool[Tensor, "batch other key"]
) -> Bool[Tensor, "batch word other"]:
    """Return which words see which: those with a token in `rows` that sees a token of the other."""
    return ((rows > 0).float() @ visible.float() @ columns.float().mT) > 0


@dataclass(frozen=True)
class WordGroups:
    """The words of one side, and the tokens of each."""

    words: Tokens
    member: Bool[Tensor, "batch word token"]

    def row_shares(self, query: str) -> Float[Tensor, "batch word token"]:
        """Return the share of each token's row in the row of its word."""
        selected = self.member if query == "mean" else self.member & (self.member.cumsum(-1) == 1)
        return selected.double() / selected.sum(-1, keepdim=True).clamp(min=1)


def group_tokens(tokens: Tokens) -> WordGroups:
    """Group tokens into words, in the order of their first tokens, padded on the right."""
    rows = zip(tokens.word.tolist(), tokens.real.tolist(), strict=True)
    indices = [_word_indices(words, real) for words, real in rows]
    width = 1 + max(max(row) for row in indices)
    member = torch.tensor(indices)[:, None] == torch.arange(width)[:, None]  # batch word token
    real, first = member.any(-1), member.int().argmax(-1)  # batch word

    def take_first(table: Tensor, padding: int) -> Tensor:
        return table.cpu().gather(1, first).masked_fill(~real, padding)

    words = Tokens(
        text=[_spell_words(text, row) for text, row in zip(tokens.text, indices, strict=True)],
        real=real,
        special=take_first(tokens.special, 0),
        segment=take_first(tokens.segment, -1),
        word=take_first(tokens.word, -1),
        role=None if tokens.role is None else take_first(tokens.role, 0),
    )
    return WordGroups(words, member)


def _word_indices(words: Sequence[int], real: Sequence[bool]) -> list[int]:
    """Return the index of each token's word among the words of its row, -1 for padding."""
    indices_by_word: dict[tuple[str, int], int] = {}
    indices = []
    for token, (word, is_real) in enumerate(zip(words, real, strict=True)):
        key = ("word", word) if word >= 0 else ("token", token)
        indices.append(indices_by_word.setdefault(key, len(indices_by_word)) if is_real else -1)
    return indices


def _spell_words(pieces: Sequence[str], indices: Sequence[int]) -> list[str]:
    """Return the words as their tokens spell them, without the markers of word starts and continuations."""
    words: dict[int, list[str]] = {}
    for piece, index in zip(pieces, (index for index in indices if index >= 0), strict=True):
        words.setdefault(index, []).append(piece)
    return [_join_pieces(word) for _, word in sorted(words.items())]


def _join_pieces(pieces: Sequence[str]) -> str:
    """Join the tokens of one word; a character split over several tokens is shown once."""
    if len(pieces) == 1:
        return pieces[0].lstrip("·") or pieces[0]
    text = "".join([pieces[0], *(piece.removeprefix("##") for piece in pieces[1:])])
    return re.sub(r"(.)\(1/(\d)\)(?:\1\(\d/\2\))*", r"\1", text).lstrip("·")

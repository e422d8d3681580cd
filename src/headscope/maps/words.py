"""From maps between tokens to maps between words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.maps import Factored, Maps
from headscope.core.tokens import Tokens
from headscope.core.trace import Visible


def to_words(maps: Maps, query: str = "mean") -> Maps:
    """The same maps between words: weight *to* a split word is summed over its tokens, weight *from* it is averaged.

    That is what Clark et al. (2019) write; their code takes the row of a word's first token (`query="first"`). Rows
    that sum to one still do. Special tokens, and tokens of no word, stay as they are. A word sees a word if one of its
    tokens (with "first": its first) sees one of the other's. Diagnostics remain those of the maps between tokens.
    """
    if query not in ("mean", "first"):
        raise InputError(f"query must be 'mean' or 'first', but got {query!r}. Leave it out for the mean.")
    asking = _units(maps.queries)
    asked = asking if maps.keys is maps.queries else _units(maps.keys)
    device = maps.visible[0].device
    rows, columns = asking.rows(query).to(device), asked.member.to(device)
    seen: dict[int, Visible] = {}  # layers often share one mask
    for each in maps.visible:
        if id(each) not in seen:
            seen[id(each)] = merged_mask(each, rows > 0, columns)
    return replace(
        maps,
        parts=[_merged_part(part, rows, columns) for part in maps.parts],
        queries=asking.tokens,
        keys=asked.tokens,
        visible=[seen[id(each)] for each in maps.visible],
    )


def merged(
    weights: Float[Tensor, "batch head query key"],
    rows: Float[Tensor, "batch unit query"],
    columns: Bool[Tensor, "batch other key"],
) -> Float[Tensor, "batch head unit other"]:
    """Rows of a unit taken together by their shares, columns of a unit added up; half precision is added in single."""
    wide = torch.promote_types(weights.dtype, torch.float32)
    found = rows[:, None].to(wide) @ weights.to(wide) @ columns[:, None].to(wide).mT
    return found.to(weights.dtype)


def merged_mask(
    visible: Visible, rows: Bool[Tensor, "batch unit query"], columns: Bool[Tensor, "batch other key"]
) -> Bool[Tensor, "batch unit other"]:
    """Whether any token of the one sees any token of the other."""
    return (rows.float() @ visible.float() @ columns.float().mT) > 0


def _merged_part(part: Tensor | Factored, rows: Tensor, columns: Tensor) -> Tensor | Factored:
    """The two factors of a map stay apart: rows of the left are averaged, rows of the right are added up."""
    if not isinstance(part, Factored):
        return merged(part, rows, columns)
    left, right = rows[:, None].to(part.left.dtype), columns[:, None].to(part.right.dtype)
    return Factored(left @ part.left, right @ part.right)


@dataclass(frozen=True)
class _Units:
    """The words of one side, and which tokens make up each."""

    tokens: Tokens
    member: Bool[Tensor, "batch unit token"]

    def rows(self, query: str) -> Float[Tensor, "batch unit token"]:
        """How much of each token's row goes into its word's."""
        chosen = self.member if query == "mean" else self.member & (self.member.cumsum(-1) == 1)
        return chosen.double() / chosen.sum(-1, keepdim=True).clamp(min=1)


def _units(tokens: Tokens) -> _Units:
    """The words in the order of their first tokens, filled up on the right to the widest row."""
    rows = zip(tokens.word.tolist(), tokens.real.tolist(), strict=True)
    number = [_numbered(words, real) for words, real in rows]
    width = 1 + max(max(row) for row in number)
    member = torch.tensor(number)[:, None] == torch.arange(width)[:, None]  # batch unit token
    there, first = member.any(-1), member.int().argmax(-1)  # batch unit

    def led(table: Tensor, empty: int) -> Tensor:
        """What is said of the first token of each word."""
        return table.cpu().gather(1, first).masked_fill(~there, empty)

    named = Tokens(
        text=[_spelled(text, row) for text, row in zip(tokens.text, number, strict=True)],
        real=there,
        special=led(tokens.special, 0),
        segment=led(tokens.segment, -1),
        word=led(tokens.word, -1),
        role=None if tokens.role is None else led(tokens.role, 0),
    )
    return _Units(named, member)


def _numbered(words: Sequence[int], real: Sequence[bool]) -> list[int]:
    """The place of each token's word among the words of its row, -1 for padding."""
    places: dict[tuple[str, int], int] = {}
    found = []
    for token, (word, kept) in enumerate(zip(words, real, strict=True)):
        key = ("word", word) if word >= 0 else ("token", token)
        found.append(places.setdefault(key, len(places)) if kept else -1)
    return found


def _spelled(pieces: Sequence[str], number: Sequence[int]) -> list[str]:
    """The words as their tokens spell them, without the marks of where a word starts or goes on."""
    words: dict[int, list[str]] = {}
    for piece, place in zip(pieces, (each for each in number if each >= 0), strict=True):
        words.setdefault(place, []).append(piece)
    return [_joined(each) for _, each in sorted(words.items())]


def _joined(pieces: Sequence[str]) -> str:
    """One word from its pieces; a character spread over several tokens is shown once."""
    if len(pieces) == 1:
        return pieces[0].lstrip("·") or pieces[0]
    rest = [piece.removeprefix("##") for piece in pieces[1:]]
    text = "".join([pieces[0], *rest])
    return re.sub(r"(.)\(1/(\d)\)(?:\1\(\d/\2\))*", r"\1", text).lstrip("·")

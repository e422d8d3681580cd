"""The tokens along one axis of an attention map."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.lazy import LazyFields

ROLES = ("", "cls", "sep", "mask", "other")
"""Roles of special tokens: class token, separator, mask, any other; "" means that a token is not special."""


@dataclass(frozen=True)
class Tokens(LazyFields):
    """The tokens of every row of a batch, in readable form.

    Rows are as wide as the longest example; `real` is False for padding.

    >>> trace.keys.text[0][:7]
    ['[CLS]', 'ben', 'se', '##vers', '##on', 'is', 'a']
    """

    text: Sequence[Sequence[str]]  # the real tokens of each row, in order
    real: Bool[Tensor, "batch token"]
    special: Bool[Tensor, "batch token"]
    segment: Int[Tensor, "batch token"]  # 0 or 1 in a pair, -1 = padding
    word: Int[Tensor, "batch token"]  # index of the word, -1 = none
    role: Int[Tensor, "batch token"] | None = field(default_factory=lambda: None)  # index in ROLES, if known
    position: Int[Tensor, "batch token"] | None = None  # of some of the tokens, among the real tokens of all; else None

    @property
    def positions(self) -> Int[Tensor, "batch token"]:
        """Position of each token among the real tokens of its row, whichever side is padded."""
        return self.real.cumsum(-1) - 1 if self.position is None else self.position

    @property
    def counts(self) -> Int[Tensor, " batch"]:
        """Number of tokens in each row, without padding."""
        return self.real.sum(-1)

    @property
    def roles(self) -> Int[Tensor, "batch token"]:
        """Role of each token, as an index in ROLES; from its spelling if no tokenizer gave it."""
        if self.role is not None:
            return self.role
        roles = torch.zeros_like(self.segment)
        for row, text in enumerate(self.text):
            roles[row, self.real[row]] = torch.tensor([_role_from_spelling(token) for token in text]).to(roles)
        return roles * self.special

    def take(self, index: Sequence[int]) -> "Tokens":
        """Return some of the tokens of every row, which keep their positions.

        Parameters
        ----------
        index
            Which tokens, counted with padding.

        >>> some = Tokens.of(["[CLS]", "the", "cat", "sat"]).take([1, 3])
        >>> some.text, some.positions.tolist()
        ([['the', 'sat']], [[1, 3]])
        """
        columns = torch.as_tensor(list(index), dtype=torch.long, device=self.real.device)

        def select(name: str) -> Any:
            return lambda _: None if (table := getattr(self, name)) is None else table[:, columns]

        def text(_: Tokens) -> list[list[str]]:
            places = (self.real.cumsum(-1) - 1)[:, columns].tolist()
            rows = zip(self.text, places, self.real[:, columns].tolist(), strict=True)
            return [[tokens[place] for place, real in zip(at, keep, strict=True) if real] for tokens, at, keep in rows]

        tables = {name: select(name) for name in ("real", "special", "segment", "word", "role")}
        return Tokens.lazy(text=text, position=self.positions[:, columns], **tables)

    @classmethod
    def of(cls, text: Sequence[str] | Sequence[Sequence[str]], *, width: int | None = None) -> "Tokens":
        """Build tokens from strings: one list, or one list per row of the batch.

        Parameters
        ----------
        text
            Tokens, or a list of tokens for each row of the batch.
        width
            The number of tokens of each row, with padding. Default: that of the longest.

        >>> Tokens.of(["[CLS]", "hello", "[SEP]"]).special.tolist()
        [[True, False, True]]
        """
        is_flat = len(text) == 0 or isinstance(text[0], str)
        rows = [[str(token) for token in row] for row in ([text] if is_flat else text)]
        if not rows or not all(rows):
            raise InputError(f"tokens must not be empty, but got {rows!r}. Give one string per position of the map.")
        width = width or max(map(len, rows))
        real = torch.tensor([[column < len(row) for column in range(width)] for row in rows])
        special = torch.zeros_like(real)
        for index, row in enumerate(rows):
            special[index, : len(row)] = torch.tensor([_looks_special(token) for token in row[:width]])
        word = torch.full(real.shape, -1)
        return cls(rows, real, special, torch.where(real, 0, -1), word)


def token_labels(tokens: Sequence[str]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return tokens as coordinates of a Dataset; lone surrogates, which no file can hold, become U+FFFD."""
    labels = [token.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for token in tokens]
    return np.array(labels, dtype=object)


def _role_from_spelling(token: str) -> int:
    roles = {"[CLS]": 1, "<s>": 1, "<cls>": 1, "[SEP]": 2, "</s>": 2, "<sep>": 2, "[MASK]": 3, "<mask>": 3}
    return roles.get(token, ROLES.index("other"))


def _looks_special(token: str) -> bool:
    """Return True for the usual spellings of special tokens: [SEP], <s>, <|endoftext|>."""
    return len(token) > 2 and (token[0], token[-1]) in {("[", "]"), ("<", ">")}

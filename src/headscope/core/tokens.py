"""One side of an attention map: its tokens."""

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
"""What a special token is there for: to stand for the text, to close it, to be guessed; "" is no special token."""


@dataclass(frozen=True)
class Tokens(LazyFields):
    """The tokens of every row of a batch, as a person reads them.

    Rows are as wide as the widest example; `real` says which places hold a token and which are padding.
    """

    text: Sequence[Sequence[str]]  # the real tokens of each row, in order
    real: Bool[Tensor, "batch token"]
    special: Bool[Tensor, "batch token"]
    segment: Int[Tensor, "batch token"]  # 0 or 1 in a pair, -1 = padding
    word: Int[Tensor, "batch token"]  # index of the word, -1 = none
    role: Int[Tensor, "batch token"] | None = field(default_factory=lambda: None)  # index in ROLES, if known

    @property
    def counts(self) -> Int[Tensor, " batch"]:
        """How many real tokens each row has."""
        return self.real.sum(-1)

    @property
    def roles(self) -> Int[Tensor, "batch token"]:
        """What each token is there for, as a place in ROLES; from its spelling where no tokenizer said so."""
        if self.role is not None:
            return self.role
        spelled = torch.zeros_like(self.segment)
        for row, text in enumerate(self.text):
            places = self.real[row].nonzero()[:, 0].cpu()
            spelled[row, places.to(spelled.device)] = torch.tensor([_spelled(each) for each in text]).to(spelled)
        return spelled * self.special

    @classmethod
    def of(cls, text: Sequence[str] | Sequence[Sequence[str]], *, width: int | None = None) -> "Tokens":
        """Tokens from bare strings: one list, or one list per row of the batch.

        >>> Tokens.of(["[CLS]", "hello", "[SEP]"]).special.tolist()
        [[True, False, True]]
        """
        rows = [[str(piece) for piece in row] for row in ([text] if _flat(text) else text)]
        if not rows or not all(rows):
            raise InputError(f"tokens must not be empty, but got {rows!r}. Give one string per position of the map.")
        width = width or max(map(len, rows))
        real = torch.tensor([[place < len(row) for place in range(width)] for row in rows])
        special = torch.tensor([[_looks_special(row, place) for place in range(width)] for row in rows])
        nothing = torch.full(real.shape, -1)
        return cls(rows, real, special, torch.where(real, 0, nothing), nothing)


def token_labels(pieces: Sequence[str]) -> np.ndarray[Any, np.dtype[Any]]:
    """Tokens as labels of a Dataset; half a surrogate pair, which no table or file can hold, becomes U+FFFD."""
    whole = [each.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for each in pieces]
    return np.array(whole, dtype=object)


def _flat(text: Sequence[str] | Sequence[Sequence[str]]) -> bool:
    return len(text) == 0 or isinstance(text[0], str)


def _spelled(piece: str) -> int:
    known = {"[CLS]": 1, "<s>": 1, "<cls>": 1, "[SEP]": 2, "</s>": 2, "<sep>": 2, "[MASK]": 3, "<mask>": 3}
    return known.get(piece, ROLES.index("other"))


def _looks_special(row: Sequence[str], place: int) -> bool:
    """Bare strings carry no role, so only the usual spellings are recognised: [SEP], <s>, <|endoftext|>."""
    if place >= len(row) or len(row[place]) < 3:
        return False
    return (row[place][0], row[place][-1]) in {("[", "]"), ("<", ">")}

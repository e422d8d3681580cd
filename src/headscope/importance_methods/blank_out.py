"""Change of a prediction when a token is replaced."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.importance import Importance, Scorer


@dataclass(frozen=True)
class BlankOut(Importance):
    """The score before minus the score after a token is replaced by [MASK] or by the unknown token, one at a time.

    Positive scores speak for the target. `change=absolute` gives their absolute value. `units=words` replaces all
    tokens of a word together and gives each of them the same score. Special tokens are not replaced, and theirs is NaN,
    but with `special=replace` each is replaced like any other token.
    Abnar & Zuidema (2020) replace by the unknown token and read the right class: `blank_out:replace=unk`, target
    "label".
    """

    replace: Literal["mask", "unk"] = "mask"
    change: Literal["signed", "absolute"] = "signed"
    units: Literal["tokens", "words"] = "tokens"
    special: Literal["keep", "replace"] = "keep"

    cites = ("abnar2020",)
    quantity = "change of the score"

    @property
    def signed(self) -> bool:
        """Whether scores can be negative."""
        return self.change == "signed"

    def __call__(self, scorer: Scorer) -> Float[Tensor, "batch token"]:
        """Return the changes, from one forward pass over all texts with a replaced token."""
        token = scorer.find_id(self.replace)
        groups = group_tokens(scorer, by_word=self.units == "words", special=self.special == "replace")
        rows = [row for row, _ in groups]
        ids = scorer.ids[rows]  # a copy, one row for each text with something replaced
        for index, (_, columns) in enumerate(groups):
            ids[index, columns] = token
        changes = scorer.scores[rows] - scorer.score(rows, ids)
        changes = changes.abs() if self.change == "absolute" else changes
        scores = torch.full(scorer.ids.shape, torch.nan, dtype=torch.float64)
        for (row, columns), change in zip(groups, changes.tolist(), strict=True):
            scores[row, columns] = change
        return scores


def group_tokens(scorer: Scorer, *, by_word: bool, special: bool = False) -> list[tuple[int, list[int]]]:
    """Return the row and the columns of tokens that are replaced together, without padding; `special` ones, too."""
    replaced = (scorer.tokens.real if special else scorer.tokens.real & ~scorer.tokens.special).cpu()
    groups: dict[tuple[int, int], tuple[int, list[int]]] = {}
    for row, column in replaced.nonzero().tolist():
        word = int(scorer.tokens.word[row, column]) if by_word else -1
        group = groups.setdefault((row, word if word >= 0 else -1 - column), (row, []))
        group[1].append(column)
    return list(groups.values())

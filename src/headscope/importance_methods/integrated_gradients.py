"""Gradients integrated along the way from a baseline to the text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import InputError, require_package
from headscope.core.importance import Importance, Scorer

TOKENS_PER_PASS = 4_096
"""Tokens of the copies of a text, along the way, that one forward pass reads."""


@dataclass(frozen=True)
class IntegratedGradients(Importance):
    """Gradient × (embedding − baseline), averaged along the straight line between both (Sundararajan et al., 2017).

    The scores of a text sum to its score minus that of the baseline, up to `gap`, which the diagnostics hold for each
    example: more `steps` make it smaller. `baseline=zero` is a vector of zeros for every token; `mask`, `unk` and `pad`
    are the embedding of that token, and special tokens, which then stay, have NaN. Captum computes it
    (`headscope[captum]`).
    """

    steps: int = 50
    baseline: Literal["zero", "mask", "unk", "pad"] = "zero"

    cites = ("sundararajan2017",)
    quantity = "part of the score"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps < 1:
            raise InputError(f"steps={self.steps} must be at least 1.")

    def __call__(self, scorer: Scorer) -> tuple[Float[Tensor, "batch token"], Mapping[str, Float[Tensor, " batch"]]]:
        """Return the scores of each text, and what they lack of the whole difference."""
        attr = require_package("captum.attr", "captum", "The method 'integrated_gradients'")
        baselines, changed = self._find_baselines(scorer)
        scores = torch.full(scorer.ids.shape, torch.nan, dtype=torch.float64)
        gaps = torch.zeros(len(scorer.ids), dtype=torch.float64)
        copies = max(1, TOKENS_PER_PASS // scorer.ids.shape[1])
        for row, text in enumerate(scorer.embed()):
            ways = attr.IntegratedGradients(lambda vectors, row=row: scorer.score_embeddings(row, vectors))
            start = baselines[row : row + 1]
            options = {"n_steps": self.steps, "internal_batch_size": copies}
            attributions, gap = ways.attribute(text[None], start, return_convergence_delta=True, **options)
            columns = changed[row].cpu()
            scores[row, columns] = attributions[0].detach().double().sum(-1).cpu()[columns]
            gaps[row] = float(gap.detach())
        return scores, {"gap": gaps}

    def _find_baselines(self, scorer: Scorer) -> tuple[Tensor, Tensor]:
        """Return the embeddings of the baseline, and which tokens differ from it; padding stays."""
        real = scorer.tokens.real.to(scorer.ids.device)
        if self.baseline == "zero":
            return torch.where(real[..., None], 0, scorer.embed()), real
        ordinary = real & ~scorer.tokens.special.to(scorer.ids.device)
        token = scorer.embed(torch.full_like(scorer.ids[:1, :1], scorer.find_id(self.baseline, "baseline")))
        return torch.where(ordinary[..., None], token, scorer.embed()), ordinary

"""Deletion and insertion: the score when tokens are replaced, or kept, from the most to the least important."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from headscope.core.catalog import importance_methods
from headscope.core.target import PredictionTarget
from headscope.core.trace import Trace
from headscope.engine.batch import Inputs
from headscope.engine.recording.sites import find_sites
from headscope.engine.scorer import BatchScorer, open_scorer
from headscope.judging.interventions import Interventions
from headscope.judging.lenses import JudgedLens, read_tokens, view_all
from headscope.judging.tables import Variables, compare_lenses, summarize

CURVES = ("deletion", "insertion")
REFERENCES = ("blank_out", "random")
"""What lenses are compared with: tokens in the order of their own blank-out, and in random orders."""

STEPS = 10
"""Steps of a curve."""

Order = Int[np.ndarray, " token"]
"""Positions of ordinary tokens, the most important first."""


@dataclass(frozen=True)
class TokenJudge:
    """Replaces the tokens of every batch in the order of each lens, and keeps the scores."""

    interventions: Interventions
    lenses: Sequence[JudgedLens]
    target: PredictionTarget
    replace: str
    signed: bool
    shares: tuple[float, ...]
    random_orders: int
    seed: int

    @property
    def names(self) -> list[str]:
        """The lenses and what they are compared with."""
        return [*(lens.name for lens in self.lenses), *REFERENCES]

    @property
    def grid(self) -> list[float]:
        """The shares of tokens at which scores are read."""
        return sorted({step / STEPS for step in range(STEPS + 1)} | set(self.shares))

    def __call__(self, inputs: Inputs, trace: Trace) -> Float[np.ndarray, "example lens curve share"]:
        """Return the curves of each example."""
        maps = view_all(trace, self.lenses)
        queries = self._find_queries(inputs, trace)
        weights = {lens.name: read_tokens(maps[lens.name], lens, queries) for lens in self.lenses}
        with open_scorer(self.interventions.model, inputs, self.target) as scorer:
            curves = _Curves(scorer, scorer.find_id(self.replace), self.grid)
            blank_out = importance_methods.make(f"blank_out:replace={self.replace}")(scorer)
            ordinary = (scorer.tokens.real & ~scorer.tokens.special).cpu().numpy()
            self.interventions.forwards += float(ordinary.sum())
            for row, example in enumerate(inputs.examples):
                random = np.random.default_rng((self.seed, zlib.crc32(example.id.encode(errors="surrogatepass"))))
                places = ordinary[row].nonzero()[0]
                ties = random.random(len(places))
                for name in weights:
                    values = weights[name][row].cpu().numpy()[places]
                    curves.ask(row, [_rank(places, values if self.signed else np.abs(values), ties)])
                curves.ask(row, [_rank(places, blank_out[row].cpu().numpy()[places], ties)])
                curves.ask(row, [random.permutation(places) for _ in range(self.random_orders)])
            scores = curves.compute(len(self.names))
        self.interventions.forwards += len(curves.rows)
        return scores

    def count(self, inputs: Inputs) -> Int[np.ndarray, " example"]:
        """Return the number of ordinary tokens of each example."""
        assert inputs.source is not None
        counts: Any = (inputs.source.real & ~inputs.source.special).sum(-1).cpu().numpy()
        return np.asarray(counts)

    def _find_queries(self, inputs: Inputs, trace: Trace) -> Tensor | None:
        """Return the token that is read of each example, where it is a query of this site."""
        sides = find_sites(self.interventions.model).sides_of(trace.site)
        with self.interventions.open(inputs, trace) as passes:
            return passes.token if sides[0] == ("source" if inputs.target is None else "target") else None

    def summarize(self, curves: Float[np.ndarray, "example lens curve share"], counts: Any) -> xr.Dataset:
        """Return areas under the curves, comprehensiveness and sufficiency; `counts` are ordinary tokens by example."""
        grid = np.array(self.grid)
        taken = np.array([[_count(share, int(count)) for share in grid] for count in counts]).reshape(-1, len(grid))
        with np.errstate(invalid="ignore", divide="ignore"):
            x = taken / np.asarray(counts)[:, None]
        areas = np.trapezoid(curves, x[:, None, None], axis=-1)
        before = curves[:, :, :1, 0]  # nothing is deleted
        at = np.isin(grid, self.shares)
        drops = (before[..., None] - curves[..., at]).mean(-1)
        variables: Variables = {}
        for place, name in enumerate(CURVES):
            curve = curves[:, :, place]
            about = {"deletion": "without", "insertion": "with only"}[name]
            variables |= summarize(name, curve, ("lens", "share"), long_name=f"score {about} the most important tokens")
        quantities = {
            "deletion_area": (areas[:, :, 0], "area under the deletion curve"),
            "insertion_area": (areas[:, :, 1], "area under the insertion curve"),
            "comprehensiveness": (drops[:, :, 0], "comprehensiveness"),
            "sufficiency": (drops[:, :, 1], "sufficiency"),
        }
        for name, (values, title) in quantities.items():
            variables |= summarize(name, values, ("lens",), long_name=title)
            variables |= compare_lenses(name, values, ("lens",))
            variables[f"{name}_rows"] = (("example", "lens"), values)
        variables["score"] = ("example", before[:, 0, 0])
        variables["ordinary_tokens"] = ("example", np.asarray(counts).astype(int))
        return xr.Dataset(variables, {"lens": self.names, "other_lens": self.names, "share": grid})


def _rank(places: Order, values: Float[np.ndarray, " token"], ties: Float[np.ndarray, " token"]) -> Order:
    """Return the places by descending value; ties in random order, NaN last."""
    return places[np.lexsort((ties, np.where(np.isnan(values), np.inf, -values)))]


def _count(share: float, tokens: int) -> int:
    """Return how many tokens a share is: all parts of a token count as one."""
    return ceil(share * tokens - 1e-9)


@dataclass
class _Curves:
    """Texts with replaced tokens, each scored once."""

    scorer: BatchScorer
    token: int  # what is put in place of others
    grid: Sequence[float]
    rows: list[int] = field(default_factory=list)  # the example of each text
    texts: list[Tensor] = field(default_factory=list)
    known: dict[tuple[int, bytes], int] = field(default_factory=dict)
    asked: list[list[list[list[int]]]] = field(default_factory=list)  # by lens, order, curve and share

    def ask(self, row: int, orders: Sequence[Order]) -> None:
        """Add the texts of the next lens of an example; of several orders the mean counts."""
        self.asked.append([[self._list(row, order, keep=keep) for keep in (False, True)] for order in orders])

    def _list(self, row: int, order: Order, *, keep: bool) -> list[int]:
        """Return the numbers of the texts without, or with only, the first tokens of an order."""
        numbers = []
        for share in self.grid:
            count = _count(share, len(order))
            replaced = order[count:] if keep else order[:count]
            ids = self.scorer.ids[row].clone()
            ids[torch.from_numpy(replaced.copy())] = self.token
            key = (row, np.sort(replaced).tobytes())
            if key not in self.known:
                self.known[key] = len(self.texts)
                self.rows.append(row)
                self.texts.append(ids)
            numbers.append(self.known[key])
        return numbers

    def compute(self, lenses: int) -> Float[np.ndarray, "example lens curve share"]:
        """Return the scores of all texts, in the order in which they were asked for."""
        scores = self.scorer.score(self.rows, torch.stack(self.texts)).double().cpu().numpy()
        examples = len(self.scorer.ids)
        curves = [np.mean([scores[np.array(numbers)] for numbers in orders], axis=0) for orders in self.asked]
        return np.stack(curves).reshape(examples, lenses, len(CURVES), len(self.grid))

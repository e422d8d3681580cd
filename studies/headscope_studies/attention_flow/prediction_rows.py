"""What the token attends to that a prediction is read from, beside how important the other tokens are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from headscope.core.example import Example
from headscope.core.lens import view
from headscope.core.maps import Maps
from headscope.core.progress import show_progress
from headscope.core.tokens import ROLES, Tokens
from headscope.engine.capture import stream
from headscope.engine.model import Model
from headscope.uncertainty.correlation import spearman
from headscope.uncertainty.intervals import Array

FEWEST = 3
"""Tokens that a correlation needs: of two it is 1 or -1."""

TIE = 9
"""Decimals, as a part of the largest weight, to which weights are equal: a maximum flow is exact to 1e-9."""

DIAGNOSTICS = ("at_bound", "same_for_sources")
KEPT = ("attention", "values", "output")


def find_prediction_tokens(tokens: Tokens) -> Int[Tensor, " batch"]:
    """Return the position of the class token of each row, or of its last token where there is none.

    >>> find_prediction_tokens(Tokens.of([["[CLS]", "a", "[SEP]"], ["a", "cat", "sat"]])).tolist()
    [0, 2]
    """
    is_cls = tokens.roles.cpu() == ROLES.index("cls")
    positions = torch.arange(is_cls.shape[1])
    last = torch.where(tokens.real.cpu(), positions, -1).amax(-1)
    return torch.where(is_cls.any(-1), is_cls.int().argmax(-1), last)


def average_heads(maps: Maps) -> Float[Tensor, "batch layer query key"]:
    """Return the mean over heads, in float64 on the CPU."""
    return torch.stack([maps.layer(label).detach().double().mean(1).cpu() for label in maps.layers], 1)


def select_rows(maps: Maps) -> list[Float[np.ndarray, "layer token"]]:
    """Return the row of the prediction token of each example, over its real tokens, head by head averaged."""
    return _split(average_heads(maps), maps.keys)


def round_ties(rows: Float[np.ndarray, "*lenses token"]) -> Float[np.ndarray, "*lenses token"]:
    """Return each row as parts of its largest weight, rounded so that weights that differ by rounding are equal."""
    largest = np.abs(rows).max(-1, keepdims=True)
    return np.round(rows / np.where(largest > 0, largest, 1), TIE)


def correlate(
    rows: Float[np.ndarray, "*lenses token"], scores: Float[np.ndarray, " token"]
) -> Float[np.ndarray, "*lenses"]:
    """Return Spearman's correlation of each row with the scores, over tokens that have a score.

    >>> correlate(np.array([[0.5, 0.1, 0.2, 0.2]]), np.array([np.nan, 0.0, 0.3, 0.1])).round(3)
    array([0.866])
    """
    known = np.isfinite(scores)
    if known.sum() < FEWEST:
        return np.full(rows.shape[:-1], np.nan)
    weights = round_ties(rows)[..., known]
    return spearman(weights, np.broadcast_to(scores[known], weights.shape))


@dataclass(frozen=True)
class RowComparison:
    """Lenses by the labels that they get, scores of tokens by theirs, and words whose share of a row is measured.

    A kind of word has the column of the examples that holds its position, or several; it may be missing.
    """

    lenses: Mapping[str, str]
    scores: Mapping[str, Sequence[Array]]  # for each example one value for each of its tokens, or NaN
    words: Mapping[str, str]
    target: str = "label"

    def measure(
        self, model: Model, examples: Sequence[Example], *, max_length: int | None, batch_size: int = 16, quiet: bool
    ) -> xr.Dataset:
        """Return the values of every example, with the dimensions `example … lens layer`.

        `correlation` has one value for each importance; `spread` is exp(entropy) of the prediction token's
        row as a share of its tokens, 1 where it is uniform; `diagonal` the mean weight of tokens on themselves; `lift`
        the weight of a token of a word over an equal share. In all but the correlation weights count by their size.
        """
        options: dict[str, Any] = {"keep": KEPT, "target": self.target, "max_length": max_length}
        parts, done = [], 0
        with show_progress(len(examples), quiet=quiet) as advance:
            for trace in stream(model, list(examples), batch_size=batch_size, **options):
                scores = {name: values[done : done + len(trace.examples)] for name, values in self.scores.items()}
                seen = [self._observe(view(trace, lens), scores) for lens in self.lenses.values()]
                parts.append(xr.concat(seen, "lens", coords="minimal", compat="override", join="override"))
                done += len(trace.examples)
                advance(len(trace.examples))
        whole = xr.concat(parts, "example", coords="minimal", compat="override", join="override")
        return whole.assign_coords(example=[example.id for example in examples], lens=list(self.lenses))

    def _observe(self, maps: Maps, scores: Mapping[str, Sequence[Array]]) -> xr.Dataset:
        weights, tokens = average_heads(maps), maps.keys
        rows = _split(weights, tokens)
        sizes = weights.abs()
        shares = sizes / sizes.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
        cells = zip(rows, zip(*scores.values(), strict=True), strict=True)
        correlation = [[correlate(row, score) for score in importances] for row, importances in cells]
        marked = _split(shares, tokens)
        lift = [
            [_lift(row, tokens, at, _find_words(example, column)) for column in self.words.values()]
            for at, (row, example) in enumerate(zip(marked, maps.examples, strict=True))
        ]
        real = tokens.real.cpu().double()[:, None]
        diagonal = (shares.diagonal(dim1=-2, dim2=-1) * real).sum(-1) / real.sum(-1)
        empty = np.full(diagonal.shape, np.nan)
        about = {
            name: maps.diagnostics[name].double().mean(-1).cpu().numpy() if name in maps.diagnostics else empty
            for name in DIAGNOSTICS
        }
        layers = ("example", "layer")
        return xr.Dataset(
            {
                "correlation": (("example", "importance", "layer"), np.array(correlation)),
                "spread": (layers, np.array([_measure_spread(row) for row in marked])),
                "diagonal": (layers, diagonal.numpy()),
                "lift": (("example", "word", "layer"), np.array(lift)),
                **{name: (layers, values) for name, values in about.items()},
            },
            coords={
                "importance": list(scores),
                "word": list(self.words),
                "layer": [label + 1 for label in maps.layers],  # counted as in papers
            },
        )


def _split(weights: Float[Tensor, "batch layer query key"], tokens: Tokens) -> list[Float[np.ndarray, "layer token"]]:
    """Return the row of the prediction token of each example without padding."""
    places, real = find_prediction_tokens(tokens).tolist(), tokens.real.cpu()
    return [weights[at, :, position][:, real[at]].numpy() for at, position in enumerate(places)]


def _measure_spread(shares: Float[np.ndarray, "layer token"]) -> Float[np.ndarray, " layer"]:
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(-1)
    return np.where(shares.sum(-1) > 0, np.exp(entropy) / shares.shape[-1], np.nan)


def _find_words(example: Example, column: str) -> list[int]:
    """Return the positions that a column holds; none where it is missing."""
    positions = example.columns.get(column)
    if positions is None:
        return []
    return [int(positions)] if isinstance(positions, int | float | str) else [int(position) for position in positions]


def _lift(
    shares: Float[np.ndarray, "layer token"], tokens: Tokens, at: int, words: Sequence[int]
) -> Float[np.ndarray, " layer"]:
    """Return the mean share of the tokens of some words, times the number of tokens; NaN without such words."""
    chosen = torch.isin(tokens.word[at].cpu(), torch.tensor(list(words), dtype=tokens.word.dtype))
    member = chosen[tokens.real[at].cpu()].numpy()
    return shares[:, member].mean(-1) * shares.shape[-1] if member.any() else np.full(len(shares), np.nan)

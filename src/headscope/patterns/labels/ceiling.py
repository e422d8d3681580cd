"""How far two passes of labels agree: what no classifier can be expected to exceed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.patterns.classes import CLASSES
from headscope.patterns.labels.labelled import Labelled, Source
from headscope.patterns.train import scores

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Twice:
    """The classes of maps that were labelled twice, and what a classifier that had not seen them says."""

    first: Array
    second: Array
    said: Array

    def scored(self, weights: Array) -> dict[str, Array]:
        """Agreement of the passes, and of the classifier with each of them; a value for each row of weights."""
        between, *against = (
            _table(one, other, weights)
            for one, other in ((self.first, self.second), (self.first, self.said), (self.second, self.said))
        )
        f1, ours = scores.macro_f1(between), np.stack([scores.macro_f1(each) for each in against])
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = ours / f1
        return {"passes_f1": f1, "passes_kappa": scores.kappa(between), "cnn_f1": ours, "cnn_ratio": ratio}


def ceiling(
    labelled: Labelled, sources: Sequence[Source], which: str, said: Array, drawn: Sequence[Array]
) -> xr.Dataset:
    """F1 and kappa between a pass and the next, and the cnn's F1 against each; nothing where there is one pass.

    All are over the maps that both passes have. `cnn_ratio` is the cnn's F1 over that between the passes.
    """
    other = next((name for name in labelled.passes if name != which), None)
    twice = [place for place, each in enumerate(sources) if other and each.id in labelled.passes[other]]
    if other is None or not twice:
        return xr.Dataset()
    first, second = (
        np.array([CLASSES.index(labelled.passes[name][sources[each].id]) for each in twice]) for name in (which, other)
    )
    maps = Twice(first, second, said[twice])
    plain = maps.scored(np.ones((1, len(twice))))
    again = [maps.scored(each[:, twice]) for each in drawn]
    found: dict[str, Any] = {"passes_maps": len(twice)}
    for name, each in plain.items():
        ends = _ends([one[name] for one in again])
        dims = ("labels",) if each.ndim > 1 else ()
        values = zip(("", "_low", "_high"), (each[..., 0], *ends), strict=True)
        found |= {f"{name}{ending}": (dims, value) for ending, value in values}
    return xr.Dataset(found, coords={"labels": np.array([which, other], dtype=object)})


def _ends(values: Sequence[Array]) -> tuple[Array, Array]:
    """The interval of every row of drawn values."""
    rows = [scores.interval(each) for each in zip(*(np.atleast_2d(one) for one in values), strict=True)]
    low, high = (np.array(each).squeeze() for each in zip(*rows, strict=True))
    return low, high


def _table(truth: Array, said: Array, weights: Array) -> Array:
    return scores.confusion(truth, said, (len(CLASSES), len(CLASSES)), weights)

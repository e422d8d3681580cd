"""From one value per example to a mean with its interval."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from headscope.core.spec import to_spec
from headscope.core.state import Array, Labels, Leaf, Moments, Rows, State

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.core.statistic import PerExample

CONFIDENCE = 0.95


def make_state(
    statistic: "PerExample",
    values: Mapping[str, "Tensor | Array"],
    ids: Sequence[str],
    labels: Labels,
    *,
    rows: bool = False,
) -> State:
    """The state of some examples: the moments of every variable, and with `rows` every value too."""
    leaves: dict[str, Leaf] = {}
    for name, each in values.items():
        table = np.asarray(each.cpu() if hasattr(each, "cpu") else each, dtype=np.float64)
        leaves[name] = Moments.of(table)
        if rows:
            leaves[f"{name}_rows"] = Rows.of(np.array(ids, dtype=np.str_), table)
    return State(to_spec(statistic), leaves, {name: list(each) for name, each in labels.items()})


def summarize_state(state: State, *, units: str = "") -> xr.Dataset:
    """For each variable x its mean, x_sd, x_n and the ends of its 95 % interval, and x_rows where they were kept."""
    counted = {"units": units} if units else {}
    dims = tuple(state.labels)
    found: dict[str, Any] = {}
    coords: dict[str, Any] = {name: list(each) for name, each in state.labels.items()}
    for name, leaf in state.leaves.items():
        if isinstance(leaf, Moments):
            summary = _summary(name, leaf)
            found |= {key: (dims, each, {} if key == f"{name}_n" else counted) for key, each in summary.items()}
        elif isinstance(leaf, Rows):
            coords["example"] = leaf.ids.astype(object)
            found[name] = (("example", *dims), leaf.values, counted)
    return xr.Dataset(found, coords=coords)


def _summary(name: str, leaf: Moments) -> dict[str, Array]:
    """Student's interval; with one example there is a mean but no spread, and with none there is neither."""
    from scipy.special import stdtrit

    n = leaf.n
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(n > 0, leaf.mean, np.nan)
        sd = np.where(n > 1, np.sqrt(leaf.square / (n - 1)), np.nan)
        reach = np.where(n > 1, stdtrit(np.maximum(n - 1, 1), (1 + CONFIDENCE) / 2) * sd / np.sqrt(n), np.nan)
    return {name: mean, f"{name}_sd": sd, f"{name}_n": n, f"{name}_low": mean - reach, f"{name}_high": mean + reach}

"""What padding does in MPNet, with its own positions of padding and with distinct ones; and the release's path."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.estimate import interval_names
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import TaskVerdict
from headscope.experiments.pages.tables import format_cell
from headscope.experiments.summary import list_tasks, relative_changes
from headscope.experiments.verdicts import judge_all
from headscope.results.store import open_result
from headscope_studies.effective_attention.claims import LOSES

RESULT = Path(__file__).parents[1] / "results" / "pad_positions.nc"
LENSES = {"effective": "exact", "paper": "own padding", "paper, distinct": "BERT-like"}
OWN, DISTINCT = "paper", "paper, distinct"
TITLES = {"effective": "exact", OWN: "published code", DISTINCT: "published code, padding as in BERT"}
QUANTITIES = {"the sink": "sink", "[SEP]": "sep", "[CLS]": "cls"}


@dataclass(frozen=True)
class PadPositions:
    """The measured quantities by task, length and attention."""

    results: xr.Dataset

    @property
    def whole(self) -> xr.Dataset:
        """The results over inputs of all lengths."""
        return self.results.sel(length="all")

    @property
    def tasks(self) -> list[str]:
        """The tasks."""
        return list_tasks(self.results)

    @property
    def provenance(self) -> dict[str, Any]:
        """What was run."""
        return read_provenance(self.results)

    @property
    def inputs(self) -> int:
        """The number of inputs of each task."""
        return int(self.whole["n"].max())

    def distances(self, lens: str) -> list[float]:
        """Return the relative change of attention of each task."""
        return [float(value) for value in self.whole["distance"].sel(lens=lens)]

    def changes(self, name: str, task: str, lens: str) -> list[float]:
        """Return the change of a weight in per cent of the raw one, with its interval."""
        relative = 100 * relative_changes(self.whole[self._variables(name)], name)
        return [float(relative[end].sel(task=task, lens=lens)) for end in interval_names(f"{name}_relative")]

    def _variables(self, name: str) -> list[str]:
        return [*interval_names(name), *interval_names(f"{name}_change")]

    @cached_property
    def verdicts(self) -> dict[str, dict[tuple[str, str], TaskVerdict]]:
        """The verdicts on losses of weight, by whose positions padding has, and by claim and task."""
        found = {}
        for lens in (OWN, DISTINCT):
            claims = [
                replace(LOSES[name], quantity=quantity, where={}, applies=None, published=(lens,))
                for name, quantity in QUANTITIES.items()
            ]
            pairs = zip(QUANTITIES, judge_all(claims, self.whole), strict=True)
            found[lens] = {(name, task.task): task for name, claim in pairs for task in claim.tasks}
        return found

    def tabulate_distances(self) -> pd.DataFrame:
        """Return the relative change of attention by attention and task."""
        rows = {
            TITLES[lens]: dict(zip(self.tasks, (f"{value:.2f}" for value in self.distances(lens)), strict=True))
            for lens in TITLES
        }
        return pd.DataFrame.from_dict(rows, "index").rename_axis("relative change")

    def table(self) -> pd.DataFrame:
        """Return the relative change of attention and the change of the sink, by task."""
        rows = {}
        for task in self.tasks:
            at = self.whole.sel(task=task)
            cells = {f"‖ΔA‖, {name}": f"{float(at['distance'].sel(lens=lens)):.2f}" for lens, name in LENSES.items()}
            sink = {
                f"sink, {name} (%)": format_cell(".0f", *self.changes("sink", task, lens))
                for lens, name in LENSES.items()
            }
            rows[task] = {"n": int(at["n"]), **cells, **sink}
        return pd.DataFrame.from_dict(rows, "index").rename_axis("task")

    def tabulate_verdicts(self) -> pd.DataFrame:
        """Return the verdicts on losses of weight by token, padding and task."""
        rows = {
            f"{name}, {TITLES[lens]}": {task: self.verdicts[lens][name, task].verdict for task in self.tasks}
            for name in QUANTITIES
            for lens in (OWN, DISTINCT)
        }
        return pd.DataFrame.from_dict(rows, "index").rename_axis("weight is lost")


def read_pad_positions() -> PadPositions:
    """Return the committed results."""
    return PadPositions(open_result(RESULT))


@dataclass(frozen=True)
class Release:
    """How far maps of the release's path are from those of `paper`, by model, task and layer."""

    results: xr.Dataset

    @property
    def inputs(self) -> int:
        """The number of inputs of all tasks."""
        return int(read_provenance(self.results)["n"])

    @property
    def distances(self) -> list[float]:
        """The distances after the first layer in per cent, means over tasks, of every model and layer."""
        apart = 100 * self.results["apart"].mean("task").isel(layer=slice(1, None)).values.ravel()
        return [float(value) for value in apart[np.isfinite(apart)]]


def read_release() -> Release:
    """Return the committed results."""
    return Release(open_result(RESULT.with_name("release.nc")))

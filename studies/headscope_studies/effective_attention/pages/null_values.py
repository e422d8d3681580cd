"""What a projection on values that are not the model's does, from results/null_values.nc."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.provenance import read_provenance
from headscope.experiments.template import format_interval
from headscope.results.store import open_result

RESULT = Path(__file__).parents[1] / "results" / "null_values.nc"
TITLES = {
    "dispersion": "dispersion (nats)",
    "sink": "weight on the sink",
    "sep": "weight on [SEP]",
    "cls": "weight on [CLS]",
    "distance": "relative change of attention",
}


@dataclass(frozen=True)
class NullValues:
    """Attention with the model's values, and with random ones in their place."""

    results: xr.Dataset

    @property
    def whole(self) -> xr.Dataset:
        """The results over inputs of all lengths."""
        return self.results.sel(length="all")

    @property
    def models(self) -> list[str]:
        """The models."""
        return [str(model) for model in self.results["model"].values]

    @property
    def tasks(self) -> list[str]:
        """The tasks."""
        return [str(task) for task in self.results["task"].values]

    @property
    def provenance(self) -> dict[str, Any]:
        """What was run."""
        return read_provenance(self.results)

    def changes(self, name: str, lens: str, length: str = "all") -> list[float]:
        """Return the changes from raw attention of all pairs; of weights in per cent of the raw one."""
        chosen = self.results.sel(length=length)
        change = chosen[f"{name}_change"].sel(lens=lens)
        if name != "dispersion":
            change = 100 * change / abs(chosen[name].sel(lens="raw"))
        return [float(value) for value in np.ravel(change.values)]

    def count_inputs(self, task: str, length: str) -> list[int]:
        """Return the number of inputs of a task and a length, of every model."""
        counts: list[int] = self.results["n"].sel(task=task, length=length).values.ravel().tolist()
        return counts

    def table(self) -> str:
        """Return every quantity with all kinds of values, with intervals."""
        lenses = [str(lens) for lens in self.results["lens"].values]
        lines = [f"| | model | task | {' | '.join(lenses)} | effective − random |", "|---" * (len(lenses) + 4) + "|"]
        for name, title in TITLES.items():
            for model, task in ((model, task) for model in self.models for task in self.tasks):
                row = self.whole.sel(model=model, task=task)
                cells = [format_interval(row, name, ".3f", lens=lens) for lens in lenses]
                cells.append(format_interval(row, f"{name}_beyond", "+.3f"))
                lines.append(f"| {title} | {model} | {task} | {' | '.join(cells)} |")
        return "\n".join(lines)


def read_null_values() -> NullValues:
    """Return the committed results."""
    return NullValues(open_result(RESULT))

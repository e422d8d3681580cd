"""What a projection on values that are not the model's does, from results/null_values.nc."""

from pathlib import Path

import numpy as np
import xarray as xr

from headscope.core.prose import format_signed, join_words
from headscope.core.provenance import read_provenance
from headscope.experiments.template import format_range
from headscope.reporting.frames import ENDS
from headscope.results.store import open_result

RESULT = Path(__file__).parents[1] / "results" / "null_values.nc"
TITLES = {
    "dispersion": "dispersion (nats)",
    "sink": "weight on the sink",
    "sep": "weight on [SEP]",
    "cls": "weight on [CLS]",
    "distance": "relative change of attention",
}
CHANGES = {"dispersion": "dispersion", "sink": "the weight on the sink", "sep": "that on [SEP]", "cls": "that on [CLS]"}
INTERVALS = ENDS[1:]


def describe_null_values(data: xr.Dataset | None = None) -> str:
    """Return what a projection on random values changes, beside one on the model's."""
    whole = _read(data).sel(length="all")
    parts = [describe_quantity(whole, name) for name in CHANGES]
    return (
        "A projection changes attention whatever the values are. So much changes with the model's values, and with "
        "random ones of the same n and d in their place, independent and normal "
        f"({join_words(map(str, whole.model.values))}, pretrained, on {join_words(map(str, whole.task.values))}): "
        f"{'; '.join(parts)}. In brackets: in how many pairs of a model and a task the model's values go further than "
        "random ones in the direction of their change (95 % intervals, input by input)."
    )


def describe_quantity(data: xr.Dataset, name: str) -> str:
    """Return how one quantity changes with the model's values and with random ones, over all pairs."""
    form, unit = ("+.2f", " nats") if name == "dispersion" else ("+.0f", " %")
    own, random = (format_range(_changes(data, name, lens), form, unit) for lens in ("effective", "random"))
    further = find_further(data, name)
    return f"{CHANGES[name]} {own}, with random values {random} [{int(further.sum())} of {further.size}]"


def find_further(data: xr.Dataset, name: str) -> xr.DataArray:
    """Return for which pairs the model's values change a quantity further than random ones, in the same direction.

    Both the change and its difference from that with random values have intervals without 0, on the same side of it.
    """
    low, high = (data[f"{name}_change{end}"].sel(lens="effective", drop=True) for end in INTERVALS)
    least, most = (data[f"{name}_beyond{end}"] for end in INTERVALS)
    return ((low > 0) & (least > 0)) | ((high < 0) & (most < 0))


def null_values_table(data: xr.Dataset | None = None) -> str:
    """Return every quantity with all kinds of values, with intervals, and below what made it."""
    known = _read(data)
    whole, kinds = known.sel(length="all"), [str(kind) for kind in known.lens.values]
    lines = [f"| | model | task | {' | '.join(kinds)} | effective − random |", "|---" * (len(kinds) + 4) + "|"]
    for name, title in TITLES.items():
        for model, task in ((model, task) for model in known.model.values for task in known.task.values):
            part = whole.sel(model=model, task=task)
            cells = [_interval(part.sel(lens=kind), name) for kind in kinds]
            cells.append(_interval(part, f"{name}_beyond", "+.3f"))
            lines.append(f"| {title} | {model} | {task} | {' | '.join(cells)} |")
    return "\n".join(lines) + f"\n\n{_describe_run(known)}\n"


def _describe_run(data: xr.Dataset) -> str:
    facts, counts = read_provenance(data), []
    for task in data.task.values:
        n = data["n"].sel(task=task)
        every, longer = (n.sel(length=length).values.ravel().tolist() for length in ("all", "more than d"))
        counts.append(
            f"{format_range(every, ',.0f', '')} of {task} ({format_range(longer, ',.0f', '')} of more than d tokens)"
        )
    hashes = ", ".join(f"{name} {code[:12]}" for name, code in sorted(facts["weights_hash"].items()))
    return (
        "Means over inputs of those of all layers and heads, with 95 % intervals; pretrained weights. `random`: "
        "independent normal values for every layer, head and input; `permuted`: the model's, the rows of every "
        "head in a random order. Weights are signed, from all other tokens, on the larger of two [SEP]. "
        f"Inputs: {join_words(counts)}, cut to {facts['max_length']} tokens. "
        f"Made by {facts['command']}. Weights: {hashes}. Data fingerprint {facts['data']}."
    )


def _read(data: xr.Dataset | None) -> xr.Dataset:
    return open_result(RESULT) if data is None else data


def _changes(data: xr.Dataset, name: str, lens: str) -> list[float]:
    """Return the changes from raw attention of all pairs; of weights in per cent of the raw one."""
    change = data[f"{name}_change"].sel(lens=lens)
    if name != "dispersion":
        change = 100 * change / abs(data[name].sel(lens="raw"))
    return [float(value) for value in np.ravel(change.values)]


def _interval(part: xr.Dataset, name: str, form: str = ".3f") -> str:
    value, low, high = (format_signed(float(part[f"{name}{end}"]), form) for end in ENDS)
    return f"{value} [{low}, {high}]"

"""The page docs/padding.md and its figure, from docs/results/padding.nc."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.plotting import theme
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result

DOCS = Path(__file__).parent
LENGTHS = slice(1, None)  # all bins but "all"

TEXT = """# What of the published difference is padding?

*Made by `docs/make.py` from `docs/results/padding.nc`; no number here is typed by hand.*

Sun & Marasović (2021) compare standard with effective attention on five GLUE tasks and find that effective attention
hardly attends to [SEP]. Their code pads every input to {width} tokens and projects over all {width} rows of V, rows of
padding included, then cuts the columns of padding off. The mathematics asks for the rows that a query can see. This
page measures the two on the dev sets of the same tasks with two pretrained models ({models}; both have 32 value
dimensions a head, BERT-base has 64 and was not measured). Variants: `visible` (exact), `padded` (exact for the padded
input), `paper` (their code).

**In short.** Inputs of at most 32 tokens lose next to nothing: the exact change of attention there is {short_exact},
while the published code reports {short_paper}. Where [SEP] loses weight at all under the published code ({fallers}),
padding is {least_share} of that loss on {least} and {most_share} on {most}. On inputs of 97 to 128 tokens the two
agree: {long_exact} exact against {long_paper}. And the published variant changes what the heads write, by {residual}
of their output on average; the exact one by rounding error.

![Relative change of attention by length](pictures/padding.svg)

*How much of attention changes, ‖A_eff − A‖ / ‖A‖, mean over layers, heads and inputs of all five tasks.*
{tables}
## What follows

- Where inputs are shorter than the value dimension, effective attention *is* attention (up to directions in which V is
  nearly singular), and any difference that is reported there comes from rows of padding. Most of SST-2 is like that.
- On longer inputs the difference is real, and grows with length.
- [CLS] loses weight too, in both models; the paper found it attended alike.
- With `paper`, the model with effective attention in place is another model. With `visible` it is the same.

{n} inputs: {command}. Weights: {hashes}. Data fingerprint {data}. Inputs are cut to {width} tokens, as published.
Weight on [SEP] is that of the heavier of two, from all other tokens.
"""


def page() -> bytes:
    """The page."""
    data = open_result(DOCS / "results" / "padding.nc")
    facts = read_provenance(data)
    shares = padding_share(data, "sep")
    ends = (np.nanargmin(shares.values), np.nanargmax(shares.values))
    low, high = (np.unravel_index(int(place), shares.shape) for place in ends)
    short, long = (_by_length(data, length) for length in (1, 4))
    values = {
        "width": 128,
        "models": " and ".join(map(str, data.model.values)),
        "short_exact": _range(short["visible"], ".1%"),
        "short_paper": _range(short["paper"], ".0%"),
        "long_exact": _range(long["visible"], ".0%"),
        "long_paper": _range(long["paper"], ".0%"),
        "least": data.task.values[low[1]],
        "least_share": f"{shares.values[low]:.0%}",
        "fallers": ", ".join(str(each) for each in shares.dropna("model", how="all").model.values),
        "most": data.task.values[high[1]],
        "most_share": f"{shares.values[high]:.0%}",
        "residual": _range(data.residual.sel(variant="paper", length="all").values.ravel(), ".0%"),
        "tables": "".join(_tables(data.sel(model=model)) for model in data.model.values),
        "n": f"{int(data.n.isel(model=0).sel(length='all').sum()):,}",
        "hashes": ", ".join(f"{name} {each[:12]}" for name, each in sorted(facts["weights_hash"].items())),
        **{name: facts[name] for name in ("command", "data")},
    }
    return TEXT.format(**values).encode()


def padding_share(data: xr.Dataset, token: str) -> xr.DataArray:
    """How much of the fall of a token's weight under the published code the exact variant does not show.

    NaN where there is no fall to speak of: less than a quarter of the standard weight.
    """
    every = data[token].sel(length="all")
    standard, exact, paper = (every.sel(variant=name) for name in ("standard", "visible", "paper"))
    share = ((exact - paper) / (standard - paper)).where(paper < 0.75 * standard)
    return share.transpose(*(name for name in ("model", "task") if name in share.dims))


def picture() -> Figure:
    """Relative change by length, exact and published, for both models."""
    data = open_result(DOCS / "results" / "padding.nc")
    bins = [str(each) for each in data.length.values[LENGTHS]]
    with theme.apply():
        figure = Figure(figsize=(5.4, 3.2), layout="constrained")
        ax = figure.subplots()
        for colour, model in zip(theme.heads, data.model.values, strict=False):
            for variant, style in (("visible", "-o"), ("paper", "--s")):
                pooled = [_pooled(data.sel(model=model), variant, place + 1) for place in range(len(bins))]
                ax.plot(bins, pooled, style, color=colour, label=f"{model}, {variant}", markersize=4, linewidth=1.2)
        ax.set(xlabel="tokens", ylabel="relative change of attention", ylim=(0, 1))
        ax.legend(loc="lower right")
    return figure


def _by_length(data: xr.Dataset, place: int) -> dict[str, list[float]]:
    return {
        variant: [_pooled(data.sel(model=model), variant, place) for model in data.model.values]
        for variant in ("visible", "paper")
    }


def _pooled(data: xr.Dataset, variant: str, place: int) -> float:
    """The mean over the inputs of all tasks in one bin of lengths."""
    one = data.isel(length=place)
    return float((one.change.sel(variant=variant) * one.n).sum() / one.n.sum())


def _range(numbers: Any, form: str) -> str:
    low, high = (format(float(each), form) for each in (np.min(numbers), np.max(numbers)))
    return low if low == high else f"{low} to {high}"


def _tables(data: xr.Dataset) -> str:
    every, name = data.sel(length="all"), str(data.model.values)
    change = _table(every, ["change"], ["visible", "padded", "paper"], ".3f")
    tokens = _table(every, ["sep", "cls"], ["standard", "visible", "paper"], ".3f")
    lengths = ["| tokens | n | visible | padded | paper |", "|---|---|---|---|---|"]
    for place in range(1, data.sizes["length"]):
        cells = " | ".join(f"{_pooled(data, variant, place):.3f}" for variant in ("visible", "padded", "paper"))
        lengths.append(f"| {data.length.values[place]} | {int(data.n.isel(length=place).sum())} | {cells} |")
    return f"""
## {name}

Relative change of attention, the share of heads that have no null space at all, and the change of a head's output:

{change}

Mean weight on [SEP] and on [CLS] from all other tokens, signed, and how much of the published fall is padding:

{tokens}

Relative change by length, all tasks:

{chr(10).join(lengths)}
"""


def _table(every: xr.Dataset, variables: list[str], variants: list[str], form: str) -> str:
    """One row per task."""
    first = variables == ["change"]
    heads = [f"{name.upper()} {variant}" if not first else variant for name in variables for variant in variants]
    extra = ["heads without null space", "output change, paper"] if first else ["SEP padding", "CLS padding"]
    lines = [f"| task | n | {' | '.join([*heads, *extra])} |", "|---" * (len(heads) + 4) + "|"]
    for task in every.task.values:
        one = every.sel(task=task)
        cells = [format(float(one[name].sel(variant=variant)), form) for name in variables for variant in variants]
        if first:
            cells += [
                f"{float(one.same.sel(variant='visible')):.0%}",
                f"{float(one.residual.sel(variant='paper')):.3f}",
            ]
        else:
            found = [float(padding_share(one.expand_dims(length=["all"]), name)) for name in variables]
            cells += [f"{each:.0%}" if np.isfinite(each) else "no fall" for each in found]
        lines.append(f"| {task} | {int(one.n)} | {' | '.join(cells)} |")
    return "\n".join(lines)

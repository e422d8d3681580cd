"""The page docs/padding.md and its figure, from docs/results/padding.nc."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.plotting import theme
from headscope.results.store import open_result

DOCS = Path(__file__).parents[1]

TEXT = """# How much of the published difference is padding?

*Made by `docs/make.py` from `docs/results/padding.nc`; no number here is typed by hand.*

Sun & Marasović (2021) compare raw with effective attention on five GLUE tasks and find that effective attention hardly
attends to [SEP]. Their code pads every input to {width} tokens, projects over all {width} rows of V, rows of padding
included, and then drops the columns of padding. By definition, the projection is over the rows that a query can attend
to. This page compares the two on the dev sets of the same tasks with two pretrained models ({models}; both have 32
value dimensions per head, BERT-base has 64 and was not measured). The attentions are `raw`, `effective`, `padded`
(`effective:keys=padded`, exact for the padded input) and `paper` (`effective:keys=paper`, the published code).

**In short.** On inputs of at most 32 tokens effective attention equals raw attention: the relative change is
{short_exact}, while the published code reports {short_paper}. Where `paper` lowers the weight on [SEP] ({fallers}),
padding causes {least_share} of the decrease on {least} and {most_share} on {most}. On inputs of 97 to 128 tokens the
two agree: {long_exact} for `effective`, {long_paper} for `paper`. `paper` also changes the output of the heads, by
{residual} on average; `effective` changes it only by rounding error.

![Relative change of attention by length](pictures/padding.svg)

*Relative change of attention, ‖A_eff − A‖ / ‖A‖, mean over layers, heads and inputs of all five tasks.*
{tables}
## Conclusions

- Where inputs are shorter than the value dimension, effective attention equals raw attention (up to directions in which
  V is nearly singular), and any reported difference comes from rows of padding. This holds for most of SST-2.
- On longer inputs the difference is not due to padding, and it grows with length.
- The weight on [CLS] decreases too, in both models; the paper reports no difference there.
- A model with `paper` in place of its attention computes other outputs; with `effective` it computes the same.

{n} inputs: {command}. Weights: {hashes}. Data fingerprint {data}. Inputs are truncated to {width} tokens, as published.
The weight on [SEP] is that of the heavier of two, from all other tokens.
"""


def page() -> bytes:
    """Return the page."""
    data = open_result(DOCS / "results" / "padding.nc")
    facts = read_provenance(data)
    shares = padding_share(data, "sep")
    ends = (np.nanargmin(shares.values), np.nanargmax(shares.values))
    low, high = (np.unravel_index(int(index), shares.shape) for index in ends)
    short, long = (_changes(data, length) for length in (1, 4))
    values = {
        "width": 128,
        "models": join_words(data.model.values),
        "short_exact": _format_range(short["effective"], ".1%"),
        "short_paper": _format_range(short["paper"], ".0%"),
        "long_exact": _format_range(long["effective"], ".0%"),
        "long_paper": _format_range(long["paper"], ".0%"),
        "least": data.task.values[low[1]],
        "least_share": f"{shares.values[low]:.0%}",
        "fallers": join_words(shares.dropna("model", how="all").model.values),
        "most": data.task.values[high[1]],
        "most_share": f"{shares.values[high]:.0%}",
        "residual": _format_range(data.residual.sel(attention="paper", length="all").values.ravel(), ".0%"),
        "tables": "".join(_make_tables(data.sel(model=model)) for model in data.model.values),
        "n": f"{int(data.n.isel(model=0).sel(length='all').sum()):,}",
        "hashes": ", ".join(f"{name} {code[:12]}" for name, code in sorted(facts["weights_hash"].items())),
        **{name: facts[name] for name in ("command", "data")},
    }
    return TEXT.format(**values).encode()


def padding_share(data: xr.Dataset, token: str) -> xr.DataArray:
    """Return the share of the decrease of a token's weight under `paper` that `effective` does not show.

    NaN where the weight decreases by less than a quarter.
    """
    weights = data[token].sel(length="all")
    raw, effective, paper = (weights.sel(attention=name, drop=True) for name in ("raw", "effective", "paper"))
    share = ((effective - paper) / (raw - paper)).where(paper < 0.75 * raw)
    return share.transpose(*(name for name in ("model", "task") if name in share.dims))


def picture() -> Figure:
    """Return the figure of the relative change by length, for both models."""
    data = open_result(DOCS / "results" / "padding.nc")
    bins = [str(label) for label in data.length.values[1:]]
    with theme.apply():
        figure = Figure(figsize=(5.4, 3.2), layout="constrained")
        ax = figure.subplots()
        for colour, model in zip(theme.heads, data.model.values, strict=False):
            for name, style in (("effective", "-o"), ("paper", "--s")):
                means = [_mean_change(data.sel(model=model), name, index + 1) for index in range(len(bins))]
                ax.plot(bins, means, style, color=colour, label=f"{model}, {name}", markersize=4, linewidth=1.2)
        ax.set(xlabel="tokens", ylabel="relative change of attention", ylim=(0, 1))
        ax.legend(loc="lower right")
    return figure


def _changes(data: xr.Dataset, length: int) -> dict[str, list[float]]:
    return {
        name: [_mean_change(data.sel(model=model), name, length) for model in data.model.values]
        for name in ("effective", "paper")
    }


def _mean_change(data: xr.Dataset, attention: str, length: int) -> float:
    """Return the mean over the inputs of all tasks in one bin of lengths."""
    selected = data.isel(length=length)
    return float((selected.change.sel(attention=attention) * selected.n).sum() / selected.n.sum())


def _format_range(numbers: Any, form: str) -> str:
    low, high = (format(float(end), form) for end in (np.min(numbers), np.max(numbers)))
    return low if low == high else f"{low} to {high}"


def _make_tables(data: xr.Dataset) -> str:
    full = data.sel(length="all")
    rows = [
        [data.length.values[index], int(data.n.isel(length=index).sum())]
        + [f"{_mean_change(data, name, index):.3f}" for name in ("effective", "padded", "paper")]
        for index in range(1, data.sizes["length"])
    ]
    return f"""
## {data.model.item()}

Relative change of attention, the share of heads without a null space, and the relative change of a head's output:

{_change_table(full)}

Mean weight on [SEP] and on [CLS] from all other tokens, signed, and the share of its decrease under `paper` that
padding causes (– where it decreases by less than a quarter):

{_weight_table(full)}

Relative change by length, all tasks:

{_markdown(["tokens", "n", "effective", "padded", "paper"], rows)}
"""


def _change_table(data: xr.Dataset) -> str:
    attentions = ["effective", "padded", "paper"]
    rows = []
    for task in data.task.values:
        values = data.sel(task=task)
        cells = [f"{float(values.change.sel(attention=name)):.3f}" for name in attentions]
        share, output = values.same.sel(attention="effective"), values.residual.sel(attention="paper")
        rows.append([task, int(values.n), *cells, f"{float(share):.0%}", f"{float(output):.3f}"])
    return _markdown(["task", "n", *attentions, "heads without null space", "output change, paper"], rows)


def _weight_table(data: xr.Dataset) -> str:
    attentions, tokens = ["raw", "effective", "paper"], ["sep", "cls"]
    rows = []
    for task in data.task.values:
        values = data.sel(task=task)
        cells = [f"{float(values[token].sel(attention=name)):.3f}" for token in tokens for name in attentions]
        shares = [float(padding_share(values.expand_dims(length=["all"]), token)) for token in tokens]
        cells += [f"{share:.0%}" if np.isfinite(share) else "–" for share in shares]
        rows.append([task, int(values.n), *cells])
    heads = [f"{token.upper()} {name}" for token in tokens for name in attentions]
    return _markdown(["task", "n", *heads, "SEP padding", "CLS padding"], rows)


def _markdown(header: list[str], rows: list[list[Any]]) -> str:
    lines = [f"| {' | '.join(map(str, row))} |" for row in [header, *rows]]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])

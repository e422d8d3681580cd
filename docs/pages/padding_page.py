"""The page docs/padding.md and its figure, from docs/results/padding.nc."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.experiments.pages.tables import to_grid
from headscope.plotting import theme
from headscope.results.store import open_result
from headscope_studies.effective_attention.pages.pad_positions import DISTINCT, OWN, read_pad_positions

DOCS = Path(__file__).parents[1]

TEXT = """# How much of the published difference is padding?

**The paper said** that effective attention hardly attends to [SEP] (Sun & Marasović, 2021; five GLUE tasks). **We
find** that on inputs of at most d tokens, the value dimensions of a head, exact effective attention is raw attention,
and that what the published code reports there comes from padding: it pads every input to {width} tokens and projects
over all {width} rows of V. On longer inputs the difference is real, and grows with length. **Believe** published
differences only for inputs longer than d, {size} in the first two models here and 64 in BERT-base, which was not
measured.

- **{short_exact}** and **{short_paper}** are the relative changes of attention on inputs of at most {size} tokens:
  exact, and by the published code.
- **{most_share}** of the decrease of [SEP]'s weight on {most} is padding, and {least_share} on {least} ({fallers}).
- **{mpnet_own}** and **{mpnet_distinct}** are the changes that the published code makes in {mpnet} on {mpnet_task}:
  with its own padding, which has one position, and with padding as in BERT.

![Relative change of attention by length](pictures/padding.svg)

*Relative change of attention, ‖A_eff − A‖ / ‖A‖, mean over layers, heads and inputs of all five tasks.*

The attentions are `raw`, `effective`, `padded` (`effective:keys=padded`, exact for the padded input) and `paper`
(`effective:keys=paper`, the published code, which also drops the columns of padding). A model with `paper` in place
of its attention computes other outputs: those of the heads change by {residual} on average. With `effective` it
computes the same.
{tables}
## {mpnet}: two kinds of padding

MPNet gives all padding one position, BERT gives every token of padding its own. With `pad_positions="distinct"`
MPNet's padding is as BERT's; outputs on real tokens do not change. Relative change of attention, and change of the
weight on the token that takes most, with 95 % intervals, pretrained weights:

{mpnet_table}

## Runs

{n} inputs: {command}. {mpnet}, {mpnet_n} inputs: {mpnet_command}. Weights: {hashes}. Data fingerprints {data} and
{mpnet_data}. Inputs are truncated to {width} tokens, as published. The weight on [SEP] is that of the heavier of
two, from all other tokens. *Made by `docs/make.py`; no number here is typed by hand.*
"""


def page() -> bytes:
    """Return the page."""
    data = open_result(DOCS / "results" / "padding.nc")
    facts = read_provenance(data)
    shares = padding_share(data, "sep")
    ends = (np.nanargmin(shares.values), np.nanargmax(shares.values))
    low, high = (np.unravel_index(int(index), shares.shape) for index in ends)
    short = _changes(data, 1)
    pads = read_pad_positions()
    lost = int(np.argmax(np.subtract(pads.distances(DISTINCT), pads.distances(OWN))))
    hashes = [*sorted(facts["weights_hash"].items()), (pads.provenance["model"], pads.provenance["weights_hash"])]
    values = {
        "width": 128,
        "size": 32,
        "mpnet": pads.provenance["model"],
        "mpnet_task": pads.tasks[lost],
        "mpnet_own": f"{pads.distances(OWN)[lost]:.0%}",
        "mpnet_distinct": f"{pads.distances(DISTINCT)[lost]:.0%}",
        "mpnet_table": to_grid(pads.table()),
        "mpnet_n": f"{pads.provenance['n']:,}",
        "mpnet_command": pads.provenance["command"],
        "mpnet_data": pads.provenance["data"],
        "short_exact": _format_range(short["effective"], ".1%"),
        "short_paper": _format_range(short["paper"], ".0%"),
        "least": data.task.values[low[1]],
        "least_share": f"{shares.values[low]:.0%}",
        "fallers": join_words(shares.dropna("model", how="all").model.values),
        "most": data.task.values[high[1]],
        "most_share": f"{shares.values[high]:.0%}",
        "residual": _format_range(data.residual.sel(attention="paper", length="all").values.ravel(), ".0%"),
        "tables": "".join(_make_tables(data.sel(model=model)) for model in data.model.values),
        "n": f"{int(data.n.isel(model=0).sel(length='all').sum()):,}",
        "hashes": ", ".join(f"{name} {code[:12]}" for name, code in hashes),
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
    return f"""
## {data.model.item()}

Relative change of attention, the share of heads without a null space, and the relative change of a head's output:

{_change_table(full)}

Mean weight on [SEP] and on [CLS] from all other tokens, signed, and the share of its decrease under `paper` that
padding causes (– where it decreases by less than a quarter):

{_weight_table(full)}
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

"""What docs/rollout_and_flow.md says about flow, from docs/results/flow_*.{nc,json}."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import join_words
from headscope.plotting import theme
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result

DOCS = Path(__file__).parent
BARS = {("encoder-like", 12, 64): 300, ("encoder-like", 12, 128): 1000, ("causal", 12, 64): 15, ("causal", 12, 128): 15}
WORST = 3
"""How many times the speed of igraph is aimed at, by kind, layers and tokens; WORST for any other graph."""
ALL_LAYERS = {(12, 128): 7}
"""Seconds that the maps of all layers may take, by layers and tokens."""
STYLES = {"saturation": ("-o", "pairs at the bound"), "saturation_same": ("--s", "same from every source")}


def read_saturation() -> xr.Dataset:
    """Return what docs/runs/flow_saturation.py measured."""
    return open_result(DOCS / "results" / "flow_saturation.nc")


def picture() -> Figure:
    """Return the shares by depth, a panel for each model."""
    data = read_saturation()
    with theme.apply():
        figure = Figure(figsize=(6.9, 2.7), layout="constrained")
        panels = figure.subplots(1, data.sizes["model"], sharey=True)
        for panel, model in zip(np.atleast_1d(panels), data.model.values, strict=True):
            for colour, task in zip(theme.heads, data.task.values, strict=False):
                part = data.sel(model=model, task=task).dropna("layer", subset=["saturation"])
                for name, (style, label) in STYLES.items():
                    text = f"{task}, {label}"
                    panel.plot(part.layer, part[name], style, color=colour, label=text, markersize=3.5, linewidth=1.2)
                    panel.fill_between(part.layer, part[f"{name}_low"], part[f"{name}_high"], color=colour, alpha=0.15)
            panel.set(title=str(model), xlabel="layer, from 1", ylim=(-0.03, 1.03))
        np.atleast_1d(panels)[0].set_ylabel("share")
        np.atleast_1d(panels)[0].legend(loc="upper left")  # the shallower model leaves room there
    return figure


def describe_saturation() -> str:
    """Return the table of the shares, and in words what follows."""
    data, facts = read_saturation(), read_provenance(read_saturation())
    lines = ["| model | task | n | tokens | layer | pairs at the bound | same from every source |", "|---" * 7 + "|"]
    deepest = []
    for model in data.model.values:
        for task in data.task.values:
            part = data.sel(model=model, task=task).dropna("layer", subset=["saturation"])
            last = int(part.layer[-1])
            deepest.append((str(model), str(task), last, part.isel(layer=-1)))
            for layer in dict.fromkeys((1, 3, last // 2 + 1, last)):
                row = part.sel(layer=layer)
                shares = [_interval(row, name) for name in STYLES]
                lines.append(
                    f"| {model} | {task} | {int(part.n)} | {float(part.tokens):.0f} | {layer} | {' | '.join(shares)} |"
                )
    bound, same = (
        join_words(f"{float(part[name]):.0%} ({model}, {task}, layer {last})" for model, task, last, part in deepest)
        for name in STYLES
    )
    sentence = (
        f"Share of flows in the last layer that are as large as the edges at their ends allow: {bound}.\n"
        "Such a flow is min(1, what enters the input token). It is the same from all sources that reach the bound\n"
        "and says nothing about the layers between. Share of tokens whose flow is the same from *every* source:\n"
        f"{same}.\n"
        "At 100% all rows of the map are the same, and it no longer says who attends to whom. Where this share is\n"
        "small although most flows are at the bound, some sources reach a token with less than the others do:\n"
        "only those rows still differ."
    )
    hashes = ", ".join(f"{name} {code[:12]}" for name, code in sorted(facts["weights_hash"].items()))
    data = ", ".join(f"{task} {code}" for task, code in facts["data"].items())
    source = f"*{facts['command']}; 95 % intervals over texts. Weights: {hashes}. Data fingerprints: {data}.*"
    table = "\n".join(lines)
    return f"{sentence}\n\n![Saturation of flow by layer](pictures/flow_saturation.svg)\n\n{table}\n\n{source}\n"


def _interval(row: xr.Dataset, name: str) -> str:
    low, high = (float(row[f"{name}_{end}"]) for end in ("low", "high"))
    return f"{float(row[name]):.1%} ({max(low, 0):.1%} to {min(high, 1):.1%})"


def describe_speed() -> str:
    """Return the tables of times and ratios of benchmarks/flow.py."""
    data = json.loads((DOCS / "results" / "flow_performance.json").read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {number}" for name, number in data["versions"].items())
    peers = list(dict.fromkeys(name for row in data["rows"] for name in row["peers"]))
    head = ["graph", "layers × tokens", "last layer", *peers, "bar (igraph)", "all layers", "igraph, all layers"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(_speed_cells(row, peers))} |" for row in data["rows"]]
    apart = max(row["apart"] for row in data["rows"])
    source = (
        f"*`{data['command']}` on {data['device']}; {versions}. CPU time; peers from {data['pairs']} random pairs for\n"
        f"each graph, scaled to the whole map. Largest difference from networkx and igraph: {apart:.0e}.*"
    )
    table, note = "\n".join(lines), f"\n\n{data['note']}" if "note" in data else ""
    return f"{table}\n\n{source}{note}\n"


def _speed_cells(row: dict[str, Any], peers: list[str]) -> list[str]:
    ratios = {name: seconds / row["headscope"] for name, seconds in row["peers"].items()}
    bar = BARS.get((row["kind"], row["layers"], row["tokens"]), WORST)
    verdict = f"{bar:,}× {'met' if ratios['igraph'] >= bar else 'missed'}"
    cells = [f"{ratios[name]:,.0f}×" if name in ratios else "–" for name in peers]
    size = f"{row['layers']} × {row['tokens']}"
    limit = ALL_LAYERS.get((row["layers"], row["tokens"]))
    judged = "" if limit is None else f" (≤ {limit} s {'met' if row['headscope_all'] <= limit else 'missed'})"
    times = f"{row['headscope_all']:.3g} s{judged}", f"{row['igraph_all'] / row['headscope_all']:,.0f}×"
    return [row["kind"], size, f"{1e3 * row['headscope']:,.1f} ms", *cells, verdict, *times]

"""What docs/rollout_and_flow.md says about flow, from docs/results/flow_*.{nc,json}."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.estimate import estimate
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.plotting import theme
from headscope.results.store import open_result

DOCS = Path(__file__).parents[1]
STUDY = DOCS.parent / "studies" / "headscope_studies" / "attention_flow" / "results"
BARS = {("encoder-like", 12, 64): 300, ("encoder-like", 12, 128): 1000, ("causal", 12, 64): 15, ("causal", 12, 128): 15}
WORST = 3
"""How many times the speed of igraph is aimed at, by kind, layers and tokens; WORST for any other graph."""
REAL_BAR, REAL_TOKENS, REAL_SECONDS = 500, 128, 5
"""How many times the speed of igraph is aimed at on real attention of this many tokens, and seconds for all layers."""
ALL_LAYERS = {(12, 128): 7}
"""Seconds that the maps of all layers may take, by layers and tokens."""
NETWORKX, FEWEST, FASTER = "networkx Edmonds–Karp", 32, 5000
"""How many times the speed of networkx is aimed at, for graphs with at least this many tokens."""
STYLES = {"saturation": ("-o", "pairs at the bound"), "saturation_same": ("--s", "same from every source")}
ROWS = {"row_distance": ("-o", "rows of rollout apart")}
TIMES = {"headscope": "headscope_all", "igraph (scaled from pairs)": "igraph_all"}
PANELS = (("share of flow", STYLES), ("total variation", ROWS))


def read_saturation() -> xr.Dataset:
    """Return what docs/runs/flow_saturation.py measured."""
    return open_result(DOCS / "results" / "flow_saturation.nc")


def picture() -> Figure:
    """Return the shares of flow and the distance of rollout's rows by depth, a column for each model."""
    data = read_saturation()
    with theme.apply():
        figure = Figure(figsize=(6.9, 4.6), layout="constrained")
        panels = figure.subplots(2, data.sizes["model"], sharey="row", sharex="col", squeeze=False)
        for row, (label, styles) in zip(panels, PANELS, strict=True):
            for panel, model in zip(row, data.model.values, strict=True):
                for colour, task in zip(theme.heads, data.task.values, strict=False):
                    _draw_lines(panel, data.sel(model=model, task=task), styles, colour)
            row[0].set(ylabel=label, ylim=(-0.03, 1.03 if styles is STYLES else None))
            row[0].legend(loc="upper left" if styles is STYLES else "upper right")
        for column, model in zip(panels.T, data.model.values, strict=True):
            column[0].set_title(str(model))
            column[-1].set_xlabel("layer, from 0")
    return figure


def _draw_lines(panel: Any, data: xr.Dataset, styles: Mapping[str, tuple[str, str]], colour: str) -> None:
    part = data.dropna("layer", subset=list(styles))
    for name, (style, label) in styles.items():
        text = f"{data.task.item()}, {label}"
        panel.plot(part.layer - 1, part[name], style, color=colour, label=text, markersize=3.5, linewidth=1.2)
        panel.fill_between(part.layer - 1, *estimate(part, name).ends[1:], color=colour, alpha=0.15)


def describe_saturation() -> str:
    """Return the table of the shares, and in words what follows."""
    data, facts = read_saturation(), read_provenance(read_saturation())
    head = ["model", "task", "n", "tokens", "layer", *(label for _, label in {**STYLES, **ROWS}.values())]
    lines, parts = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"], []
    for model in data.model.values:
        for task in data.task.values:
            part = data.sel(model=model, task=task).dropna("layer", subset=["saturation"])
            last = int(part.layer[-1])
            parts.append((f"{model}, {task}, L{last - 1}", part))
            for layer in dict.fromkeys((1, 3, last // 2 + 1, last)):
                row = part.sel(layer=layer)
                cells = [str(model), str(task), f"{int(part.n)}", f"{float(part.tokens):.0f}", f"L{layer - 1}"]
                cells += [*(_interval(row, name) for name in STYLES), *(_distance(row, name) for name in ROWS)]
                lines.append(f"| {' | '.join(cells)} |")
    hashes = ", ".join(f"{name} {code[:12]}" for name, code in sorted(facts["weights_hash"].items()))
    codes = ", ".join(f"{task} {code}" for task, code in facts["data"].items())
    source = f"*{facts['command']}; 95 % intervals over texts. Weights: {hashes}. Data fingerprints: {codes}.*"
    image = "![Saturation of flow and distance of rollout's rows, by layer](pictures/flow_saturation.svg)"
    return "\n\n".join((_tell_flow(parts), _tell_rollout(parts), image, "\n".join(lines), f"{source}\n"))


def _tell_flow(parts: Sequence[tuple[str, xr.Dataset]]) -> str:
    bound, same = (join_words(f"{float(part[name][-1]):.0%} ({title})" for title, part in parts) for name in STYLES)
    return (
        f"Share of flows in the last layer that are as large as the edges at their ends allow: {bound}.\n"
        f"These are the models as pretrained. {_tell_tuned()}\n"
        "Such a flow is min(1, what enters the input token). It is the same from all sources that reach the bound\n"
        "and says nothing about the layers between. Share of tokens whose flow is the same from *every* source:\n"
        f"{same}.\n"
        "At 100% all rows of the map are the same, and it no longer says who attends to whom. Where this share is\n"
        "small although most flows are at the bound, some sources reach a token with less than the others do:\n"
        "only those rows still differ."
    )


def _tell_tuned(model: str = "all-MiniLM-L6-v2", task: str = "SST-2") -> str:
    """Return the share at the bound in the tuned models of the study, whose page shows it, too."""
    numbers = open_result(STUDY / f"attention_flow_{model}.nc")["at_bound"].sel(subset="all", lens="flow")
    shares = numbers.sel(task=task).isel(layer=-1).values
    return (
        f"With {model} *tuned* on {task} it is {min(shares):.0%} to {max(shares):.0%} there ({len(shares)} seeds;\n"
        "[the study](attention_flow.md) has these models)."
    )


def _tell_rollout(parts: Sequence[tuple[str, xr.Dataset]]) -> str:
    rows = {title: part["row_distance"].values for title, part in parts}
    said = join_words(f"{row[0]:.3f} in L0 and {row[-1]:.3f} at the top ({title})" for title, row in rows.items())
    return (
        "A deep `rollout` does not escape this: its rows grow alike, too, because every layer averages the rows of\n"
        f"the one below. Mean total variation between its rows (0: all the same, 1: no key in common): {said}.\n"
        "So at the top it, too, is nearly the same row for all positions: if the question is who attends to whom,\n"
        "read both in shallow layers, where rows still differ."
    )


def _interval(row: xr.Dataset, name: str) -> str:
    _, low, high = map(float, estimate(row, name).ends)
    return f"{float(row[name]):.1%} ({max(low, 0):.1%} to {min(high, 1):.1%})"


def _distance(row: xr.Dataset, name: str) -> str:
    value, low, high = map(float, estimate(row, name).ends)
    return f"{value:.4f} ({low:.4f} to {high:.4f})"


def read_speed() -> dict[str, Any]:
    """Return what benchmarks/flow.py measured: random graphs, and under `real` those of models."""
    data: dict[str, Any] = json.loads((DOCS / "results" / "flow_performance.json").read_text(encoding="utf-8"))
    return data


def describe_real_speed() -> str:
    """Return the table of times and ratios on the attention of models on a text."""
    data = read_speed()["real"]
    head = ["graph", "layers × tokens", "last layer", "igraph", "all layers", "igraph, all layers"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(cells)} |" for cells in map(_real_cells, data["rows"])]
    picture = "![Time of flow by the number of tokens](pictures/flow_complexity.svg)"
    rows = [row for row in data["rows"] if row["headscope_all"] is not None]
    verdict, source = _tell_real_bars(data["rows"]), _describe_source(data)
    return "\n\n".join((verdict, "\n".join(lines), _tell_growth(rows), picture, f"{source}\n"))


def _real_cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of one graph; beyond 128 tokens all layers were not timed."""
    last, every = row["headscope"], row["headscope_all"]
    cells = [row["kind"], f"{row['layers']} × {row['tokens']}", _seconds(last)]
    cells.append(f"{row['peers']['igraph'] / last:,.0f}×")
    return [*cells, *(("–", "–") if every is None else (_seconds(every), f"{row['igraph_all'] / every:,.0f}×"))]


def _seconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f} ms" if seconds < 1 else f"{seconds:.3g} s"


def _tell_real_bars(rows: Sequence[dict[str, Any]]) -> str:
    """Return what a map takes of each model at the number of tokens that has a bar, and which bars are missed."""
    said, missed = [], []
    for row in rows:
        if row["tokens"] == REAL_TOKENS:
            times, every = row["peers"]["igraph"] / row["headscope"], row["headscope_all"]
            said.append(f"{_seconds(row['headscope'])} and {_seconds(every)} ({row['kind']})")
            missed += [f"{row['kind']} ({times:,.0f}×)"] * (times < REAL_BAR)
            missed += [f"{row['kind']} ({_seconds(every)} for all layers)"] * (every > REAL_SECONDS)
    verdict = f"They are missed by {join_words(missed)}" if missed else "All are met"
    return (
        f"With {REAL_TOKENS} tokens the last layer and all layers take {join_words(said)}.\n"
        f"The bars there are {REAL_BAR}× igraph for the last layer and {REAL_SECONDS} s for all layers. {verdict}."
    )


def fit_growth(rows: Sequence[dict[str, Any]], time: Callable[[dict[str, Any]], float]) -> float:
    """Return the power of the number of tokens with which a time grows, by least squares of logarithms."""
    tokens, seconds = [row["tokens"] for row in rows], [time(row) for row in rows]
    return float(np.polyfit(np.log(tokens), np.log(seconds), 1)[0])


def _tell_growth(rows: Sequence[dict[str, Any]]) -> str:
    """Return how times grow with the number of tokens, beside the paper's bound."""
    groups = group_rows(rows)
    ours, theirs = (
        join_words(f"{fit_growth(group, time):.1f} ({kind})" for kind, group in groups.items())
        for time in (lambda row: row["headscope_all"], lambda row: row["igraph_all"])
    )
    return (
        f"The paper bounds flow by O(d²·n⁴). Measured, the time of all layers grows with n to the power of {ours};\n"
        f"igraph's with {theirs}."
    )


def group_rows(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows by the graphs that they are of."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["kind"], []).append(row)
    return groups


def complexity_picture() -> Figure:
    """Return the time of the flows of all layers by the number of tokens, ours and igraph's, on logarithmic axes."""
    groups = group_rows([row for row in read_speed()["real"]["rows"] if row["headscope_all"] is not None])
    with theme.apply():
        figure = Figure(figsize=(6.9, 3.2), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for panel, (title, time) in zip(panels, TIMES.items(), strict=True):
            for (kind, rows), style in zip(groups.items(), ("-o", "--o", ":o", "-s", "--s", ":s"), strict=False):
                colour = theme.heads[0 if style.endswith("o") else 1]
                tokens, seconds = [row["tokens"] for row in rows], [row[time] for row in rows]
                panel.loglog(tokens, seconds, style, color=colour, label=kind, markersize=3.5, linewidth=1.2)
            panel.set_title(title)
            panel.set(xlabel="tokens", xticks=tokens, xticklabels=list(map(str, tokens)))
            panel.minorticks_off()
        panels[0].set_ylabel("CPU seconds, all layers")
        panels[0].legend()
    return figure


def describe_speed() -> str:
    """Return the tables of times and ratios of benchmarks/flow.py."""
    data = read_speed()
    peers = list(dict.fromkeys(name for row in data["rows"] for name in row["peers"]))
    head = [
        "graph",
        "layers × tokens",
        "last layer",
        *peers,
        "bar (networkx)",
        "bar (igraph)",
        "all layers",
        "igraph, all layers",
    ]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    rows = [_speed_cells(row, peers) for row in data["rows"]]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    source = _describe_source(data)
    table, note = "\n".join(lines), f"\n\n{data['note']}" if "note" in data else ""
    return f"{_tell_bars(head, rows)}\n\n{table}\n\n{source}{note}\n"


def _describe_source(data: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in data["versions"].items())
    apart = max(row["apart"] for row in data["rows"])
    return (
        f"*`{data['command']}` on {data['device']}; {versions}. CPU time; peers from {data['pairs']} random pairs for\n"
        f"each graph, scaled to the whole map. Largest difference from networkx and igraph: {apart:.0e}.*"
    )


def _tell_bars(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return how many bars are met, and each one that is missed."""
    cells = [(row, name, cell) for row in rows for name, cell in zip(head, row, strict=True)]
    met = sum("met" in cell for _, _, cell in cells)
    missed = [(row, name, cell) for row, name, cell in cells if "missed" in cell]
    said = [f"{row[0]} {row[1]}, {name}: {_missed(head, row, name, cell)}" for row, name, cell in missed]
    return f"{met} bars are met and {len(missed)} missed{': ' if missed else ''}{'; '.join(said)}."


def _missed(head: Sequence[str], row: Sequence[str], name: str, cell: str) -> str:
    """Return a missed bar with what was measured, which a bar for a ratio has in a column of its own."""
    peer = {"bar (networkx)": NETWORKX, "bar (igraph)": "igraph"}.get(name)
    return f"{row[list(head).index(peer)]} of {cell.removesuffix(' missed')}" if peer else cell.replace(" missed", "")


def _speed_cells(row: dict[str, Any], peers: list[str]) -> list[str]:
    ratios = {name: seconds / row["headscope"] for name, seconds in row["peers"].items()}
    bar = BARS.get((row["kind"], row["layers"], row["tokens"]), WORST)
    verdicts = [
        _judge(ratios.get(NETWORKX), FASTER if row["tokens"] >= FEWEST else None),
        _judge(ratios["igraph"], bar),
    ]
    cells = [f"{ratios[name]:,.0f}×" if name in ratios else "–" for name in peers]
    size = f"{row['layers']} × {row['tokens']}"
    limit = ALL_LAYERS.get((row["layers"], row["tokens"]))
    judged = "" if limit is None else f" (≤ {limit} s {'met' if row['headscope_all'] <= limit else 'missed'})"
    times = f"{row['headscope_all']:.3g} s{judged}", f"{row['igraph_all'] / row['headscope_all']:,.0f}×"
    return [row["kind"], size, f"{1e3 * row['headscope']:,.1f} ms", *cells, *verdicts, *times]


def _judge(ratio: float | None, bar: int | None) -> str:
    """Return whether a ratio reaches its bar; nothing is judged that has no bar or was not measured."""
    return "–" if ratio is None or bar is None else f"{bar:,}× {'met' if ratio >= bar else 'missed'}"

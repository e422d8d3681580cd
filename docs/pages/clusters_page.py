"""What docs/measuring.md shows, from docs/results/heads.nc and docs/results/performance_clusters_*.json."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from headscope.core.kind import find_kind
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.plotting.draw import draw
from headscope.results.cluster import cluster
from headscope.results.store import open_result

DOCS = Path(__file__).parents[1]
SHOWN = "e5-small"
PICTURES = {
    "clusters_layer.svg": ("clusters", {"colour": "layer"}),
    "clusters_behaviour.svg": ("clusters", {"colour": "behaviour"}),
    "clusters_tree.svg": ("dendrogram", {}),
}


@cache
def read_clusters() -> Mapping[str, xr.Dataset]:
    """Return the clusters of each model's heads over pairs of paragraphs."""
    data = open_result(DOCS / "results" / "heads.nc").sel(corpus="wikitext")
    clusters = {}
    for model in map(str, data["model"].values):
        part = data.sel(model=model).drop_vars(["corpus", "model"])
        layers = part["layer"][part["entropy"].notnull().any(("lens", "site", "head"))].values
        clusters[model] = cluster(part.sel(layer=layers, other_layer=layers))
    return clusters


def pictures() -> dict[str, Figure]:
    """Return the page's figures by file name."""
    data = read_clusters()[SHOWN]
    return {name: draw(data, figure, lens="raw", **options) for name, (figure, options) in PICTURES.items()}


def describe_clusters() -> str:
    """Return the distances within and between layers of both models."""
    facts = read_provenance(open_result(DOCS / "results" / "heads.nc"))
    head = ("model", "lens", "heads", "within", "between", "p", "stress", "one layer apart", "most layers apart")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for model, data in read_clusters().items():
        tables = find_kind(data).tables(data)
        by_gap = tables["clusters_by_gap"].frame
        for lens, row in tables["clusters_layers"].frame.iterrows():
            heads = int(data["position"].sel(lens=lens).notnull().all("coordinate").sum())
            cells = [model, str(lens), f"{heads}", f"{row['within']:.1f}", f"{row['between']:.1f}"]
            cells += [f"{row['p']:.4f}", f"{row['stress']:.2f}"]
            cells += [f"{by_gap[lens].iloc[gap]:.1f}" for gap in (1, -1)]
            lines.append(f"| {' | '.join(cells)} |")
    (n,) = {run["n"] for name, run in facts["runs"].items() if name.startswith("wikitext ")}
    (permutations,) = {read_provenance(data)["permutations"] for data in read_clusters().values()}
    caption = (
        f"Mean distance in nats, summed over the tokens of an input, n = {n:,} pairs of paragraphs of WikiText-2, at "
        f"most {facts['max_length']} tokens; {permutations:,} permutations, which give a p of at least "
        f"{1 / (permutations + 1):.4f}."
    )
    return "\n".join(lines) + f"\n\n*{caption}*\n"


def describe_speed() -> str:
    """Return the table of benchmarks/head_distance.py on each device that was measured."""
    runs = [
        json.loads(path.read_text(encoding="utf-8"))
        for device in ("cpu", "gpu")
        if (path := DOCS / "results" / f"performance_clusters_{device}.json").is_file()
    ]
    peers = list(runs[0]["rows"][0]["peers"])
    head = ("device", "clock", "headscope", "numpy over headscope", "entropies once", "bar")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(_speed_cells(run, row, peers))} |" for run in runs for row in run["rows"]]
    sources = join_words(f"`{run['command']}` (torch {run['torch']}, numpy {run['numpy']})" for run in runs)
    apart = max(row["apart"] for run in runs for row in run["rows"])
    size = f"{runs[0]['heads']} heads, {runs[0]['inputs']:,} inputs of {runs[0]['tokens']} tokens"
    return (
        f"All pairs of {size}, float32, against loops over the pairs in numpy, with all rows of an input at once: as "
        "the formula is written, and with the entropy of each head computed once, which leaves one logarithm a cell."
        "\n\n"
        + "\n".join(lines)
        + f"\n\n*{sources}; medians of {runs[0]['turns']} turns, numpy on one thread, timed on "
        f"a sample of pairs and scaled. Largest difference from numpy in float64: {apart:.0e} of the "
        "largest distance.*\n"
    )


def _speed_cells(run: Mapping[str, Any], row: Mapping[str, Any], peers: list[str]) -> list[str]:
    ratios = [row["peers"][peer] / row["headscope"] for peer in peers]
    verdict = f"{run['bar']}× {'met' if ratios[0] >= run['bar'] else 'missed'}"
    return [run["device"], row["clock"], f"{row['headscope']:.3g} s", *(f"{ratio:,.1f}×" for ratio in ratios), verdict]

"""The numbers of docs/faithfulness.md, from docs/results/faithfulness.nc and performance_faithfulness_cpu.json."""

import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from headscope.core.estimate import estimate
from headscope.core.provenance import read_provenance
from headscope.plotting.draw import draw
from headscope.results.store import open_result

DOCS = Path(__file__).parents[1]
RESULT = DOCS / "results" / "faithfulness.nc"
LENSES = ("raw", "effective", "norm")


def pictures() -> dict[str, Figure]:
    """Return the figure of the page."""
    return {"faithfulness.svg": draw(open_result(RESULT), "faithfulness", variable="rank_correlation")}


def describe_measured() -> str:
    """Return what was measured, as a paragraph, a figure and a table."""
    data = open_result(RESULT)
    facts, hidden = read_provenance(data), data.sel(effect="hidden")
    own = float(data["rank_correlation"].sel(lens="norm", effect="output"))
    lines = [
        f"Measured with {facts['model'].rpartition('/')[2]} on {facts['n']} bundled paragraphs of up to "
        f"{facts['max_length']} tokens, by {int(data['edges']):,} removed edges and the effect `hidden` "
        "(`docs/runs/faithfulness.py`), with 95 % intervals over paragraphs:",
        "",
        "![Rank correlation of each lens](pictures/faithfulness.svg)",
        "",
        f"| | {' | '.join(LENSES)} | without a lens |",
        "|---" * (len(LENSES) + 2) + "|",
        _row(hidden, "rank_correlation", "rank correlation", ""),
        _row(hidden, "top_share", f"share of the effect, {facts['top']} largest keys", "top_share_chance"),
        _row(hidden, "mass_without_effect", "weight on edges without an effect", "edges_without_effect"),
        "",
        "Without a lens: keys in random order, and every edge alike. The correlation of `norm` with the effect "
        f"`output`, which it is by definition, is {own:.4f} in {facts['dtype']}.",
        "",
    ]
    return "\n".join(lines)


def _row(data: Any, name: str, title: str, chance: str) -> str:
    cells = [estimate(data, name).sel(lens=lens).format(".2f") for lens in LENSES]
    cells.append(estimate(data, chance).format(".2f") if chance else "0")
    return f"| {title} | {' | '.join(cells)} |"


def describe_cost() -> str:
    """Return what judging costs, as a paragraph."""
    run = json.loads((DOCS / "results" / "performance_faithfulness_cpu.json").read_text(encoding="utf-8"))
    (row,) = run["rows"]
    met = "met" if row["passes"] <= run["bar"] else "missed"
    return (
        f"{row['edges']:,} edges of {row['examples']} texts of {row['tokens']} tokens cost {row['passes']:.1f} plain "
        "forward passes of these texts with all-MiniLM-L6-v2 and a classifier (six layers), three lenses included; the "
        f"bar of {run['bar']} is {met}. One whole pass for each edge costs {row['naive_passes']:.0f}. CPU time of one "
        f"thread, medians of {run['turns']} turns, torch {run['torch']}, from `{run['command']}`.\n"
    )

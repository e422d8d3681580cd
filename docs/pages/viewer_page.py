"""What the viewer's page costs beside BertViz's in docs/viewer.md, from docs/results/viewer.json."""

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
PEER = "BertViz"
NAMES = {
    PEER: "BertViz, raw",
    "sqrt8": "headscope, raw, one byte a weight",
    "float16": "headscope, raw, two bytes",
    "3 lenses": "headscope, raw, effective and norm, one byte",
}
COLUMNS = [
    "tokens",
    "page",
    "size",
    "CPU time",
    "memory",
    "all heads visible",
    "hover",
    "layer: first, again",
    "elements",
]


def table() -> str:
    """Return the costs of all pages, and which of the bars set before are met."""
    run = json.loads((DOCS / "results" / "viewer.json").read_text(encoding="utf-8"))
    rows = sorted(run["rows"], key=lambda row: (row["tokens"], list(NAMES).index(row["page"])))
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", *map(_show_row, rows)]
    return "\n".join([_describe(run), "", *lines, "", _explain(rows), "", _judge(run["bars"])]) + "\n"


def _describe(run: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    note = f"\n{run['note']}" if "note" in run else ""
    return (
        f"`{run['command']}` on {run['device']},\n{packages}, torch {run['torch']}: "
        f"12 layers × 12 heads, medians of {run['turns']} turns in one run.{note}"
    )


def _show_row(row: dict[str, Any]) -> str:
    mark = "¹" if row["extrapolated"] else ""
    cells = [f"{row['tokens']}{mark}", NAMES[row["page"]], *_show_making(row), *_show_opening(row)]
    return f"| {' | '.join(cells)} |"


def _show_making(row: dict[str, Any]) -> list[str]:
    return [f"{row['size'] / 1e6:,.1f} MB", f"{row['cpu_s']:.2f} s", f"{row['peak_mb']:,.0f} MB"]


def _show_opening(row: dict[str, Any]) -> list[str]:
    if row["shown_s"] is None:
        return ["–"] * 4
    layers = f"{row['first_ms']:,.0f} ms, {row['again_ms']:,.0f} ms"
    return [f"{row['shown_s']:,.2f} s", f"{row['hover_ms']:.1f} ms", layers, f"{row['nodes']:,}"]


def _explain(rows: list[dict[str, Any]]) -> str:
    scripts = max(row["requests"] or 0 for row in rows if row["page"] == PEER)
    return (
        "¹ computed from 128 tokens, times 16: this page was neither made nor opened.\n\n"
        "CPU time and memory are what Python takes from captured attention to the file, memory beyond what it held "
        "before. All heads\nare visible in BertViz's `model_view`, hover and layer are those of its `head_view`. Hover "
        f"is work of the page's main thread for one\nmove of the mouse. BertViz loads {scripts} scripts from the "
        "network, which were served from the disk here; headscope's page loads nothing."
    )


def _judge(bars: list[dict[str, Any]]) -> str:
    missed = [bar for bar in bars if not bar["met"]]
    met = f"Of {len(bars)} bars that were set before, {len(bars) - len(missed)} are met"
    shown = "; ".join(f"{bar['what']}: {bar['value']:.3g} {bar['unit']}, bar {bar['limit']:g}" for bar in missed)
    return f"{met}. Missed: {shown}." if missed else f"{met}."

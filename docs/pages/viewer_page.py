"""What the viewer's page costs beside BertViz's in docs/viewer.md, from docs/results/performance_viewer.json."""

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


def table() -> str:
    """Return the costs of all pages, and which of the bars set before are met."""
    run = json.loads((DOCS / "results" / "performance_viewer.json").read_text(encoding="utf-8"))
    packages = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    text = (
        f"`{run['command']}` on {run['device']}, {packages}, medians of {run['turns']} turns in one run; 12 layers × "
        "12 heads. Hover is CPU time of the page's main thread for one move of the mouse; memory is what Python needs "
        "beyond the maps themselves."
    )
    lines = [
        "| tokens | page | size | made in (CPU) | memory | all heads visible | hover | next layer, again | elements |",
        "|---" * 9 + "|",
        *map(_describe_row, run["rows"]),
    ]
    note = "¹ computed from 128 tokens, times 16: its page of that size was not made.\n\n"
    missed = [bar for bar in run["bars"] if not bar["met"]]
    return f"{text}{_add_note(run)}\n\n" + "\n".join(lines) + f"\n\n{note}{_judge(run['bars'], missed)}\n"


def _add_note(run: dict[str, Any]) -> str:
    return f" {run['note']}" if "note" in run else ""


def _describe_row(row: dict[str, Any]) -> str:
    mark = "¹" if row["extrapolated"] else ""
    made = f"{row['size'] / 1e6:,.1f} MB | {row['cpu_s']:.2g} s | {row['peak_mb']:,.0f} MB"
    if row["shown_s"] is None:
        opened = "| does not open | – | – | – |"
    else:
        layers = f"{row['first_ms']:,.0f} ms, {row['again_ms']:,.0f} ms"
        opened = f"| {row['shown_s']:,.2f} s | {row['hover_ms']:.1f} ms | {layers} | {row['nodes']:,} |"
    return f"| {row['tokens']}{mark} | {NAMES[row['page']]} | {made} {opened}"


def _judge(bars: list[dict[str, Any]], missed: list[dict[str, Any]]) -> str:
    met = f"{len(bars) - len(missed)} of {len(bars)} bars that were set before are met"
    if not missed:
        return f"{met}."
    shown = "; ".join(f"{bar['what']}: {bar['value']:.3g} {bar['unit']}, bar {bar['limit']:g}" for bar in missed)
    return f"{met}. Missed: {shown}."

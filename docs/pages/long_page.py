"""What docs/long.md shows of time and memory, from docs/results/performance_long.json."""

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
WAYS = {
    "forward": "the forward pass (sdpa)",
    "blocks": "measured in blocks of queries",
    "whole": "measured from whole maps",
    "loop": "a loop over heads",
}


def read_run() -> dict[str, Any]:
    """Return the result file."""
    run: dict[str, Any] = json.loads((DOCS / "results" / "performance_long.json").read_text(encoding="utf-8"))
    return run


def table() -> str:
    """Return time and peak memory by shape, number of tokens and way."""
    run = read_run()
    plain = {(row["shape"], row["tokens"]): row["seconds"] for row in run["rows"] if row["way"] == "forward"}
    lines = [
        f"Entropy and effective share of raw and effective attention, {run['layers']} layers × {run['heads']} heads of "
        f"{run['value']} dimensions:\n`{run['command']}` on {run['device']}, torch {run['torch']}. Times are CPU time, "
        "memory is that of the whole process.\n",
        "| shape | tokens | | CPU time | over the forward pass | peak memory |",
        "|---|---|---|---|---|---|",
    ]
    for row in run["rows"]:
        base = plain.get((row["shape"], row["tokens"]))
        ratio = "" if base is None else f"{row['seconds'] / base:.1f}×"
        name = {"bert": "BERT", "llama": "Llama"}[row["shape"]]
        cells = [name, f"{row['tokens']:,}", WAYS[row["way"]], f"{row['seconds']:.0f} s", ratio]
        lines.append(f"| {' | '.join([*cells, format_gb(row['peak_gb'])])} |")
    return "\n".join(lines) + "\n"


def possible() -> str:
    """Return the size of whole maps and of one block, which say what is possible on which machine."""
    heads, lines = (
        12,
        ["| tokens | maps of a layer of 12 heads | of 32 heads | weights of a block |", "|---|---|---|---|"],
    )
    for tokens in (2048, 8192, 16384, 32768, 131072):
        sizes = [format_gb(4 * count * tokens**2 / 1e9) for count in (heads, 32)]
        lines.append(f"| {tokens:,} | {sizes[0]} | {sizes[1]} | 0.07 GB |")
    return "\n".join(lines) + "\n"


def format_gb(size: float) -> str:
    """Return a size in GB, to two digits."""
    return f"{size:,.0f} GB" if size >= 10 else f"{size:.1f} GB" if size >= 1 else f"{size:.2f} GB"

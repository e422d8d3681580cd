"""What docs/long.md shows of time and memory, from docs/results/performance_long.json and many_texts.json."""

import json
import math
from pathlib import Path
from typing import Any

from headscope.core.progress import format_duration

DOCS = Path(__file__).parents[1]
WAYS = {
    "forward": "the forward pass (sdpa)",
    "blocks": "measured in blocks of queries",
    "whole": "measured from whole maps",
    "loop": "a loop over heads",
}


MODELS = {"tiny": "tiny", "default": "the default model", "none": "none"}
MACHINES = (8, 16, 32, 64, 128)
"""Memory in GB."""

HEADS, LAYERS = 12, 12
"""Of the model of the table of machines."""

COPIES = 4
"""Tensors of the size of a layer's maps that are in memory together, for raw and effective attention."""


def tables() -> dict[str, str]:
    """Return all tables of the page."""
    return {"cost": table(), "possible": possible(), "machines": machines(), "many": many()}


def read_run(name: str = "performance_long") -> dict[str, Any]:
    """Return a result file."""
    run: dict[str, Any] = json.loads((DOCS / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return run


def many() -> str:
    """Return speed and peak memory by number of texts, and what killing a run did."""
    run = read_run("many_texts")
    lines = [
        f"`{run['command']}` on {run['device']}, torch {run['torch']}: texts of 4 to 12 words; {run['statistic']} of "
        f"{run['lens']}\nattention, or without a model the letters of each text. The tiny model has one layer of two "
        "heads. Memory is the peak\nof the process, with Python and torch. Time counts the loading of libraries, which "
        "takes longer than a few texts.\n",
        "| model | texts | in a window | texts in a second of CPU time | peak memory |",
        "|---|---|---|---|---|",
    ]
    for row in run["rows"]:
        cells = [MODELS[row["model"]], f"{row['n']:,}", f"{row['window']:,}", f"{row['n'] / row['cpu_s']:,.0f}"]
        lines.append(f"| {' | '.join(cells)} | {row['peak_mb']:,.0f} MB |")
    return "\n".join([*lines, "", *map(describe_killed, run["killed"])]) + "\n"


def describe_killed(run: dict[str, Any]) -> str:
    """Return what a run came to that was killed twice."""
    last = "" if run["workers"] is None else f", the last time with {run['workers']} Ray workers"
    bits, (first, second) = "the same bits" if run["same_bits"] else "other numbers", run["at"]
    return (
        f"- {run['n']:,} texts, model: {MODELS[run['model']]}. Killed after {first:,} and {second:,} texts, and "
        f"resumed{last}:\n  {bits} as the run that was not killed."
    )


def machines() -> str:
    """Return how many tokens a text may have by the memory of a machine, where maps are whole."""
    lines = ["| memory | without being asked | maps of a layer | maps of all layers |", "|---|---|---|---|"]
    for size in MACHINES:
        parts = [size * 1e9 / 8 / COPIES, size * 1e9, size * 1e9 / LAYERS]
        cells = [round_down(math.sqrt(part / (4 * HEADS))) for part in parts]
        lines.append(f"| {size} GB | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def continue_cells(shape: str, tokens: int) -> tuple[float, float]:
    """Return the CPU time and memory of blocks: the square and the line through the texts that were measured."""
    cells = [row for row in read_run()["rows"] if row["shape"] == shape and row["way"] == "blocks"]
    first, last = (choose(cells, key=lambda row: row["tokens"]) for choose in (min, max))
    slope = (last["peak_gb"] - first["peak_gb"]) / (last["tokens"] - first["tokens"])
    return last["seconds"] * (tokens / last["tokens"]) ** 2, last["peak_gb"] + (tokens - last["tokens"]) * slope


def round_down(count: float) -> str:
    """Return a number with two digits."""
    unit = 10 ** (int(math.log10(count)) - 1)
    return f"{int(count // unit) * unit:,}"


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
    """Return the size of whole maps, and what blocks take; what was not measured is continued, and says so."""
    lines = ["| tokens | maps of a layer of 12 heads | of 32 heads | blocks, BERT | blocks, Llama |"]
    lines += ["|---|---|---|---|---|"]
    measured = {(row["shape"], row["tokens"]): row for row in read_run()["rows"] if row["way"] == "blocks"}
    for tokens in (2048, 8192, 16384, 32768, 131072):
        cells = [format_gb(4 * count * tokens**2 / 1e9) for count in (HEADS, 32)]
        for shape in ("bert", "llama"):
            row = measured.get((shape, tokens))
            seconds, size = (row["seconds"], row["peak_gb"]) if row else continue_cells(shape, tokens)
            cells.append(f"{'' if row else 'about '}{format_gb(size)}, {format_duration(seconds)}")
        lines.append(f"| {tokens:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def format_gb(size: float) -> str:
    """Return a size in GB, to two digits."""
    return f"{size:,.0f} GB" if size >= 10 else f"{size:.1f} GB" if size >= 1 else f"{size:.2f} GB"

"""What pruning gains in docs/ablation.md, from docs/results/performance_pruning_*.json."""

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]


def table() -> str:
    """Return the speed-up and the size of files, on each device that was measured."""
    runs = [
        json.loads(path.read_text(encoding="utf-8"))
        for name in ("cpu", "gpu")
        if (path := DOCS / "results" / f"performance_pruning_{name}.json").is_file()
    ]
    return "\n".join(map(_describe, runs))


def _describe(run: dict[str, Any]) -> str:
    exact = [row for row in run["rows"] if "bfloat16" not in row["model"]]
    error = f"{max(row['error'] for row in exact):.0e} in float32"
    if all("largest_output" in row for row in exact):
        share = max(row["error"] / row["largest_output"] for row in exact)
        error += f", and at most {share:.0e} of the largest output"
    files = all(row["file"] for row in run["rows"])
    header = "| model | batch × tokens | whole | 25 % | 50 % | 75 % |"
    lines = [header, "|---|---|---|---|---|---|"]
    for (name, batch, tokens), rows in _group(run["rows"]).items():
        gains = " | ".join(_gain(row) for row in rows)
        lines.append(f"| {name} | {batch} × {tokens} | {rows[0]['whole_ms']:.3g} ms | {gains} |")
    size = ", and the size of its file over that of the whole" if files else ""
    text = (
        "Time of the forward pass of the whole model over that of the model without some of its heads, drawn at random"
        f"{size}: `{run['command']}` on {run['device']}, torch {run['torch']}, medians of {run['turns']} turns. The "
        "largest difference between the outputs of a pruned model and those of the whole one under `zero_heads` is "
        f"{error}.{_count_slower(run['rows'])}"
    )
    return f"{text}\n\n" + "\n".join(lines) + "\n"


def _count_slower(rows: list[dict[str, Any]]) -> str:
    """Return how many pruned models are not faster, or nothing where all are."""
    slower = sum(row["speedup"] <= 1 for row in rows)
    return f" In {slower} of {len(rows)} cells the pruned model is not faster." if slower else ""


def _gain(row: dict[str, Any]) -> str:
    size = f", {row['file'] / row['whole_file']:.0%} of the file" if row["file"] else ""
    return f"{row['speedup']:.2f} × as fast{size}"


def _group(rows: list[dict[str, Any]]) -> dict[tuple[str, int, int], list[dict[str, Any]]]:
    groups: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["pruned"]):
        groups.setdefault((row["model"], row["batch"], row["tokens"]), []).append(row)
    return groups

"""What ablating every head costs in docs/ablation.md, from docs/results/performance_ablation_*.json."""

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
HEADER = "| device | data | examples | plain evaluation | hs.ablate, time | hs.ablate, FLOPs | naive, time | bar |"


def table() -> str:
    """Return the cost in plain evaluations, on each device that was measured."""
    runs = [
        json.loads(path.read_text(encoding="utf-8"))
        for name in ("cpu", "gpu")
        if (path := DOCS / "results" / f"performance_ablation_{name}.json").is_file()
    ]
    if not runs:
        return ""
    rows = [_row(run, row) for run in runs for row in run["rows"]]
    text = (
        f"Ablating each of the {runs[0]['rows'][0]['heads']} heads of all-MiniLM-L6-v2 {_describe_model(runs)}, in "
        "units of one plain evaluation of the same examples, from `python -m benchmarks.ablation` "
        f"({_devices(runs)}; medians). The naive way is one evaluation under the edit for each head, timed "
        "for one of each layer and scaled. No "
        "logit differs from the naive way by more than "
        f"{max(row['largest_difference'] for run in runs for row in run['rows']):.0e}; "
        f"{_count_differing(runs)} differs."
    )
    return "\n".join([text, "", HEADER, "|---" * 8 + "|", *rows, ""])


def _describe_model(runs: list[dict[str, Any]]) -> str:
    return "fine-tuned for the task" if all(run["model"] == "tuned" for run in runs) else "with a random classifier"


def _count_differing(runs: list[dict[str, Any]]) -> str:
    count = sum(row["predictions_that_differ"] for run in runs for row in run["rows"])
    return "no prediction" if count == 0 else f"of all predictions, {count:,}"


def _devices(runs: list[dict[str, Any]]) -> str:
    return "; ".join(f"{run['device']}, torch {run['torch']}, {run['turns']} turns" for run in runs)


def _row(run: dict[str, Any], row: dict[str, Any]) -> str:
    flops, met = row["flops"] / row["plain_flops"], "met" if row["passes"] <= run["bar"] else "missed"
    plain = f"{row['plain_seconds']:.3g} s, {row['plain_flops'] / 1e9:,.0f} GFLOP"
    cells = [run["device"], row["data"], f"{row['examples']:,}", plain, f"{row['passes']:.1f}", f"{flops:.1f}"]
    cells += [f"{row['naive_passes']:.1f}", f"{run['bar']} {met}"]
    return f"| {' | '.join(cells)} |"

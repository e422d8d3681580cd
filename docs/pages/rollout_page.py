"""The cost of rollout in docs/rollout_and_flow.md, from docs/results/performance_rollout.json, and its picture."""

import json
from pathlib import Path

from matplotlib.figure import Figure

from headscope.plotting.draw import draw
from headscope.results.store import open_result

DOCS = Path(__file__).parents[1]


def table() -> str:
    """Return the table of rollout over the forward pass."""
    data = json.loads((DOCS / "results" / "performance_rollout.json").read_text(encoding="utf-8"))
    rows = "".join(
        f"| {row['model']} | {row['tokens']:,} | {row['forward_ms']:,.0f} ms | {row['rollout']:.3f} | "
        f"{row['receptive field']:.3f} | {_judge(row)} |\n"
        for row in data["rows"]
    )
    return (
        '`hs.view(trace, "rollout")`, all layers, over the forward pass of the same model with attentions: '
        f"`{data['command']}` on\n{data['device']}, torch {data['torch']}, medians of {data['turns']} turns.\n\n"
        "| model | tokens | forward | rollout | with `receptive_field` | bar |\n|---|---|---|---|---|---|\n" + rows
    )


def pictures() -> dict[str, Figure]:
    """Return the layered figure of the example."""
    return {"layered.svg": draw(open_result(DOCS / "results" / "rollout.nc"), "layered", size=6.9)}


def _judge(row: dict[str, float | None]) -> str:
    bar, ratio = row["bar"], row["rollout"]
    return "" if bar is None or ratio is None else f"{bar:.2f} {'met' if ratio <= bar else 'missed'}"

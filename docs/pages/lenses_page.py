"""What the lenses of contributions cost in docs/lenses.md, from docs/results/performance_contributions_cpu.json."""

import json
from pathlib import Path

DOCS = Path(__file__).parents[1]


def describe_cost() -> str:
    """Return a table of ratios over a plain forward pass, and how they were measured."""
    run = json.loads((DOCS / "results" / "performance_contributions_cpu.json").read_text(encoding="utf-8"))
    rows = {(row["model"], row["tokens"], row["what"]): row for row in run["rows"]}
    inputs = list(dict.fromkeys((model, tokens) for model, tokens, _ in rows))
    shapes = " | ".join(f"{model}, {tokens} tokens" for model, tokens in inputs)
    lines = [f"| plain forward passes | {shapes} | bar |", "|---" * (len(inputs) + 2) + "|"]
    for what in dict.fromkeys(what for _, _, what in rows):
        found = [rows.get((*place, what)) for place in inputs]
        cells = ["" if row is None else f"{row['median']:.2f}" for row in found]
        lines.append(f"| {_name(what)} | {' | '.join(cells)} | {_bar([row for row in found if row is not None])} |")
    measured = (
        f"Lenses with the capture that they need; `value_zeroing` of a trace in hand, whose bar is a run of each layer "
        f"for every key. CPU time of one thread, medians of {run['turns']} turns side by side, random weights, torch "
        f"{run['torch']}, from `{run['command']}`."
    )
    return "\n".join([*lines, "", measured, ""])


def _name(what: str) -> str:
    return what if what.startswith("capture") else f"`{what}`"


def _bar(rows: list[dict]) -> str:
    if rows[0]["bar"] is None:
        return ""
    return f"{rows[0]['bar']:.0f}, {'met' if all(row['median'] <= row['bar'] for row in rows) else 'missed'}"

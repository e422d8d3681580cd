"""What an atlas costs in docs/atlas.md, from docs/results/atlas.json."""

import json
from pathlib import Path

DOCS = Path(__file__).parents[1]


def table() -> str:
    """Return peak memory and size for corpora of different sizes, and the growth from one to the other."""
    run = json.loads((DOCS / "results" / "atlas.json").read_text(encoding="utf-8"))
    first, last = run["rows"][0], run["rows"][-1]
    grown = 1e6 * (last["own_mb"] - first["own_mb"]) / (last["examples"] - first["examples"])
    model = f"a model with {run['layers']} × {run['heads']} heads"
    lines = [
        "Memory and size do not grow with the corpus. Of raw and effective attention, "
        f"texts of {run['tokens']} tokens, {model}:\n`{run['command']}` on {run['device']}, torch {run['torch']}.\n",
        "| texts | peak memory of the atlas | folder | largest file of a head |",
        "|---|---|---|---|",
        *(
            f"| {row['examples']:,} | {row['own_mb']:.0f} MB | {row['folder_mb']:.1f} MB | {row['head_kb']:.0f} kB |"
            for row in run["rows"]
        ),
        "\nThe peak is counted over what the model and the list of texts take before. From "
        f"{first['examples']:,} to {last['examples']:,} texts it\ngrows by {grown:,.0f} bytes a text: "
        "its place in the plan of batches, and what the allocator cannot give back.",
    ]
    return "\n".join(lines) + "\n"

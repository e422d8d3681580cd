"""Outcomes on disk, and what all of them come to, by category."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.zoo.category import CATEGORIES
from benchmarks.zoo.examine import VERBS, Cell, Outcome, silently_wrong

LETTERS = {"yes": "y", "in part": "p", "refused": "r", "wrong": "w", "raw error": "e", "none": "-"}
"""What a cell is in the compact file, where a kind's cells are one word."""


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """Return the outcomes of a run that was interrupted, by type; none of other versions of the libraries."""
    if not path.is_file():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or {name: data.get(name) for name in versions()} != versions():
        return {}
    return {row["model_type"]: _read_outcome(row) for row in data["types"]}


def _read_outcome(row: Mapping[str, Any]) -> Outcome:
    return Outcome(**{**row, "cells": {verb: Cell(**cell) for verb, cell in row["cells"].items()}})


def write_outcomes(path: Path, outcomes: Iterable[Outcome], command: str) -> None:
    """Write everything that is known of each type."""
    rows = [asdict(outcome) for outcome in outcomes]
    path.write_text(json.dumps({"command": command, **versions(), "types": rows}, indent=1) + "\n", encoding="utf-8")


def write_compact(path: Path, outcomes: Sequence[Outcome], command: str) -> None:
    """Write the small file for the docs: a line for each kind, with a letter for each verb."""
    counts = Counter(outcome.status for outcome in outcomes)
    head = {"command": command, **versions(), "verbs": list(VERBS), "counts": dict(counts)}
    head["silently_wrong"] = sum(map(silently_wrong, outcomes))
    kinds = {outcome.model_type: _compact(outcome) for outcome in outcomes if outcome.status == "built"}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(kinds.items()))
    path.write_text(json.dumps(head, indent=1)[:-2] + ',\n "kinds": {\n' + lines + "\n }\n}\n", encoding="utf-8")


def _compact(outcome: Outcome) -> list[str]:
    word = "".join(LETTERS[outcome.cells[verb].status] if verb in outcome.cells else "-" for verb in VERBS)
    return [outcome.category, word if outcome.attention else ""]


def versions() -> dict[str, str]:
    """Return the versions that decide which types there are, and what they compute."""
    return {"transformers": transformers.__version__, "torch": torch.__version__.partition("+")[0]}


def summarize(outcomes: Sequence[Outcome], verbs: Sequence[str] = VERBS) -> list[list[str]]:
    """Return the rows of the summary: for each category how many kinds have attention, and the share of each verb."""
    rows = []
    for category in (*CATEGORIES, "all"):
        kinds = [outcome for outcome in outcomes if category in (outcome.category, "all")]
        built = [outcome for outcome in kinds if outcome.status == "built"]
        with_attention = [outcome for outcome in built if outcome.attention]
        if not built:
            continue
        cells = [_share(with_attention, verb) for verb in verbs]
        rows.append([category, str(len(built)), str(len(with_attention)), *cells])
    return rows


def _share(outcomes: Sequence[Outcome], verb: str) -> str:
    """Return "yes/tried", with those that work in part after a +, and how many are wrong or end in a raw error."""
    counts = Counter(outcome.cells[verb].status for outcome in outcomes if verb in outcome.cells)
    tried = sum(counts.values()) - counts["none"]
    bad = counts["wrong"] + counts["raw error"]
    part = f"+{counts['in part']}" if counts["in part"] else ""
    return f"{counts['yes']}{part}/{tried}" + (f" ({bad} bad)" if bad else "")


def count(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Return the number of outcomes of each status."""
    captured = [outcome for outcome in outcomes if outcome.captured]
    return {
        "types": len(outcomes),
        **Counter(outcome.status for outcome in outcomes),
        "without attention": sum(outcome.status == "built" and not outcome.attention for outcome in outcomes),
        "captured": len(captured),
        "captured and equal to eager": sum(any(v is not None for v in outcome.sites.values()) for outcome in captured),
        "not restored": sum(not outcome.restored for outcome in outcomes),
        "warned of other attention": sum(outcome.warned for outcome in outcomes),
        "silently wrong": sum(map(silently_wrong, outcomes)),
    }

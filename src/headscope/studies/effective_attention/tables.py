"""The paper's tables, and those it could not have, from the study's numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr

from headscope.studies.effective_attention.claims import Claim
from headscope.studies.effective_attention.names import ATTENTIONS, TYPES
from headscope.studies.effective_attention.paper import LETTERS, ORDER, SHARES
from headscope.studies.effective_attention.speed import ratios

LENSES = ("standard", "visible", "padded", "paper")
ENDS = ("", "_low", "_high")
KEYS = ("task", "attention")


def sizes(numbers: xr.Dataset) -> pd.DataFrame:
    """Table 1: tasks, their type and sizes, and how long inputs are."""
    lines = []
    for task in numbers["task"].values:
        one = numbers.sel(task=task)
        many = one["n"]
        lines.append(
            {
                "task": str(task),
                "type": str(one["kind"].values),
                "learned from": int(one["train"]) or pd.NA,
                "studied": int(many.sel(length="all")),
                "of": int(one["whole_dev"]),
                "tokens, mean": float(one["mean_tokens"]),
                "cut": int(one["cut"]),
                "with more than d tokens": int(many.sel(length="more than d")),
            }
        )
    return _frame(lines, "task").astype({"learned from": "Int64"}).dropna(axis=1, how="all")


def patterns(numbers: xr.Dataset, role: str, length: str = "all") -> pd.DataFrame:
    """Table 2: shares of the pattern classes in per cent, with intervals."""
    here = numbers.sel(role=role, length=length)
    lines = []
    for task, lens, one in _rows(here, LENSES):
        cells = {
            f"{letter}{end}": 100 * float(one[f"share{end}"].sel(pattern=pattern))
            for letter, pattern in zip(LETTERS, ORDER, strict=True)
            for end in ENDS
        }
        lines.append({**_row(task, lens), **cells})
    return _frame(lines, *KEYS).dropna(how="all").dropna(axis=1, how="all")


def their_patterns(tasks: Sequence[str]) -> pd.DataFrame | None:
    """Theirs, in the rows that ours have: what they call effective is what the published code gives."""
    lines = [
        {**_row(task, lens), **dict(zip(LETTERS, row, strict=True))}
        for task in tasks
        if task in SHARES
        for lens, row in zip(("standard", "paper"), SHARES[task], strict=True)
    ]
    return _frame(lines, *KEYS) if lines else None


def types(numbers: xr.Dataset, role: str, length: str = "all") -> pd.DataFrame:
    """The weight from [CLS] in the last layer on each type, mean over heads."""
    here = numbers.sel(role=role, length=length, size="signed")
    kinds = [str(each) for each in numbers["type"].values]
    lines = []
    for task, lens, one in _rows(here, LENSES):
        cells = {
            f"{TYPES.get(kind, kind)}{end}": float(one[f"type_weight{end}"].sel(type=kind))
            for kind in kinds
            for end in ENDS
        }
        lines.append({**_row(task, lens), **cells})
    return _frame(lines, *KEYS).dropna(how="all").dropna(axis=1, how="all")


def weights(numbers: xr.Dataset, role: str, length: str = "all") -> pd.DataFrame:
    """The weight on [CLS] and [SEP] from all other tokens, mean over layers and heads, and its change."""
    here = numbers.sel(role=role, length=length)
    lines = []
    for task, lens, one in _rows(here, LENSES):
        cells: dict[str, Any] = {}
        for token, name in (("cls", "[CLS]"), ("sep", "[SEP]")):
            signed = one.sel(token=token, size="signed")
            cells |= {f"{name}{end}": float(signed[f"weight{end}"]) for end in ENDS}
            cells |= {f"{name} change{end}": float(signed[f"weight_change{end}"]) for end in ENDS}
            cells[f"{name} absolute"] = float(one["weight"].sel(token=token, size="absolute"))
        lines.append({**_row(task, lens), **cells})
    return _frame(lines, *KEYS).dropna(how="all").dropna(axis=1, how="all")


def layers(numbers: xr.Dataset) -> pd.DataFrame:
    """The cosine before and after fine-tuning, layer by layer."""
    lines = []
    for task in numbers["task"].values:
        for layer in numbers["layer"].values:
            one = numbers.sel(task=task, layer=layer)
            cells = {
                f"{ATTENTIONS[lens]}{end}": float(one[f"similarity_layer{end}"].sel(lens=lens))
                for lens in LENSES
                for end in ENDS
            }
            lines.append({"task": str(task), "layer": f"L{int(layer)}", **cells})
    return _frame(lines, "task", "layer").dropna(how="all").dropna(axis=1, how="all")


def times(found: xr.Dataset) -> pd.DataFrame:
    """Table 3: evaluation time of every way over that with standard attention."""
    lines = []
    for task in found["task"].values:
        for batch in found["batch"].values:
            one = found.sel(task=task, batch=batch)
            over = ratios(one)
            if not bool(over["ratio"].notnull().any()):
                continue
            seconds = float(one["seconds"].sel(way="standard").median("turn"))
            line: dict[str, Any] = {"task": str(task), "inputs at a time": int(batch), "standard (s)": seconds}
            for way, name in _WAYS.items():
                line |= {f"{name}{end}": float(over[f"ratio{end}"].sel(way=way)) for end in ENDS}
            lines.append(line)
    return _frame(lines, "task", "inputs at a time").dropna(axis=1, how="all")


def scores(numbers: xr.Dataset) -> pd.DataFrame:
    """The task's score with each attention in place, and how far the outputs move."""
    lines = []
    for task, lens, one in _rows(numbers, LENSES):
        line: dict[str, Any] = {**_row(task, lens), "metric": str(one["metric"].values)}
        line |= {f"score{end}": float(one[f"score{end}"]) for end in ENDS}
        line |= {f"change{end}": float(one[f"score_change{end}"]) for end in ENDS}
        changed = float(one["changed"])
        line["largest change of an output"] = float(one["output_change"])
        line["predictions changed"] = pd.NA if changed != changed else int(changed)
        line["of these, largest lead"] = float(one["changed_margin"]) if changed > 0 else float("nan")
        lines.append(line)
    return _frame(lines, *KEYS).astype({"predictions changed": "Int64"}).dropna(axis=1, how="all")


def same(numbers: xr.Dataset) -> pd.DataFrame:
    """How often exact effective attention is attention."""
    lines = []
    for task in numbers["task"].values:
        one = numbers.sel(task=task, length="all")
        many = one["n"].values
        short = int(numbers["n"].sel(task=task, length="at most d"))
        line: dict[str, Any] = {"task": str(task), "inputs of at most d tokens (%)": 100 * short / max(int(many), 1)}
        for role in ("base", "tuned"):
            line[f"inputs with all heads the same, {role} (%)"] = 100 * float(one["same_inputs"].sel(role=role))
            line[f"heads the same, {role} (%)"] = 100 * float(one["same_heads"].sel(role=role))
        lines.append(line)
    return _frame(lines, "task")


def lengths(numbers: xr.Dataset) -> pd.DataFrame:
    """How many inputs are how long."""
    classes = [str(each) for each in numbers["length"].values if str(each)[0].isdigit()]
    lines = [
        {"task": str(task)} | {f"{each} tokens": int(numbers["n"].sel(task=task, length=each)) for each in classes}
        for task in numbers["task"].values
    ]
    return _frame(lines, "task")


def norms(numbers: xr.Dataset) -> pd.DataFrame:
    """How far standard and effective attention agree with norms, and how each divides attention among types."""
    lines = []
    for task in numbers["task"].values:
        for lens in numbers["beside_norm"].values:
            one = numbers.sel(task=task, beside_norm=lens)
            line: dict[str, Any] = _row(str(task), str(lens))
            if lens != "norm":
                line |= {f"cosine with norms{end}": float(one[f"agreement{end}"]) for end in ENDS}
                line |= {f"rank correlation{end}": float(one[f"agreement_rank{end}"]) for end in ENDS}
            for kind in ("cls", "sep", "punctuation"):
                portion = 100 * float(one["type_portion"].sel(type=kind))
                line[f"portion of {TYPES.get(kind, kind)} (%)"] = portion
            lines.append(line)
    return _frame(lines, *KEYS).dropna(axis=1, how="all")


def verdicts(found: Sequence[Claim]) -> pd.DataFrame:
    """One row for each claim."""
    lines = [{"claim": each.text, "verdict": each.verdict, "in words": each.sentence} for each in found]
    return _frame(lines, "claim")


def verdicts_by_task(found: Sequence[Claim]) -> pd.DataFrame:
    """The verdict on every claim for every task."""
    lines = [{"claim": each.text} | {one.task: one.verdict for one in each.judged} for each in found]
    return _frame(lines, "claim").fillna("")


def _rows(here: xr.Dataset, lenses: Sequence[str]) -> Iterator[tuple[str, str, xr.Dataset]]:
    for task in here["task"].values:
        for lens in lenses:
            yield str(task), lens, here.sel(task=task, lens=lens)


def _row(task: str, lens: str) -> dict[str, Any]:
    return dict(zip(KEYS, (task, ATTENTIONS[lens]), strict=True))


def _frame(lines: Sequence[Mapping[str, Any]], *keys: str) -> pd.DataFrame:
    return pd.DataFrame(lines).set_index(list(keys))


_WAYS = {"in place": "effective in place, ours", "maps": "every effective map, ours", "svd": "every map, full SVD"}

"""The numbers that Sun & Marasović (2021) print."""

from collections.abc import Sequence

import pandas as pd

TASKS = {
    "RTE": ("NLI", "2.5K", "3K"),
    "MRPC": ("paraphrase identification", "3.7K", "1.7K"),
    "QNLI": ("QA as NLI", "105K", "5.4K"),
    "SST-2": ("binary sentiment classification", "67K", "1.8K"),
    "STS-B": ("sentence similarity", "7K", "1.4K"),
}
KINDS = {task: kind for task, (kind, _, _) in TASKS.items()}
LETTERS = {"block": "B", "diagonal": "D", "vertical_diagonal": "V+D", "heterogeneous": "H", "vertical": "V"}
SHARES = {
    "RTE": ((4.5, 7.4, 15.2, 45.1, 27.9), (32.6, 12.8, 2.8, 40.3, 11.5)),
    "MRPC": ((3.4, 10.2, 14.9, 39.8, 31.8), (25.5, 17.4, 3.6, 40.4, 13.0)),
    "QNLI": ((4.7, 7.4, 15.2, 45.1, 27.9), (29.3, 15.8, 3.4, 46.4, 5.1)),
    "SST-2": ((38.5, 6.1, 0.0, 37.8, 17.6), (33.8, 11.5, 0.8, 39.4, 14.6)),
    "STS-B": ((4.0, 8.2, 1.8, 50.4, 35.5), (36.0, 10.3, 0.6, 39.4, 13.6)),
}
"""Shares of pattern classes in per cent, in the order of LETTERS: with raw attention, and with their effective one."""

SECONDS = {"RTE": (29, 58), "MRPC": (45, 87), "QNLI": (659, 1265), "SST-2": (101, 200), "STS-B": (174, 353)}
MAPS = 1000
SHAPE = (12, 12, 64)
VALUE_SIZE = SHAPE[2]
"""Maps of each task that were classified; layers, heads and value dimensions of BERT-base."""


def table_1() -> pd.DataFrame:
    """Return their tasks and sizes."""
    return pd.DataFrame.from_dict(TASKS, "index", columns=["type", "train", "test"]).rename_axis("task")


def table_2(tasks: Sequence[str]) -> pd.DataFrame | None:
    """Return their shares for these tasks, in the rows that ours have: their effective attention is `paper` here."""
    rows = [
        {"task": task, "attention": lens} | dict(zip(LETTERS.values(), shares, strict=True))
        for task in tasks
        for lens, shares in zip(("raw", "paper"), SHARES.get(task, ()), strict=False)
    ]
    return pd.DataFrame(rows).set_index(["task", "attention"]) if rows else None


def list_raw_shares(pattern: str) -> list[float]:
    """Return their shares of a pattern in per cent with raw attention, of all tasks."""
    at = list(LETTERS).index(pattern)
    return [raw[at] for raw, _ in SHARES.values()]


def table_3() -> pd.DataFrame:
    """Return their evaluation times in seconds, and the ratio."""
    frame = pd.DataFrame.from_dict(SECONDS, "index", columns=["raw (s)", "effective (s)"]).rename_axis("task")
    return frame.assign(ratio=(frame["effective (s)"] / frame["raw (s)"]).round(2))

"""Importances as xarray Datasets and pandas tables."""

import json
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.importance import Importances
from headscope.core.tokens import token_labels

FILL: dict[str, Any] = {"f": np.nan, "b": False, "i": -1, "O": ""}
"""What stands behind the tokens of a shorter example, by kind of dtype."""


def make_dataset(importances: Importances, row: int) -> xr.Dataset:
    """Return one example."""
    example = importances.examples[row]
    return xr.Dataset(
        {
            "importance": (("method", "token"), importances.scores[row][None]),
            "score": (("method",), importances.score[[row]]),
            **{name: (("method",), table[[row]]) for name, table in importances.diagnostics.items()},
        },
        coords={
            **_describe_method(importances),
            "answer": ("method", token_labels([importances.answers[row]])),
            **{name: ("token", column) for name, column in _token_columns(importances, row).items()},
            "text": token_labels([example.text])[0],
            "example": token_labels([example.id])[0],
        },
        attrs={"headscope": _describe(importances, example=example.id)},
    )


def make_batch_dataset(importances: Importances) -> xr.Dataset:
    """Return all examples along `example`, shorter ones filled up at their end."""
    rows = range(len(importances))
    width = max(map(len, importances.tokens))
    columns = [_token_columns(importances, row) for row in rows]
    tables = {name: np.stack([_fill_up(column[name], width) for column in columns]) for name in columns[0]}
    scores = np.stack([_fill_up(scores, width) for scores in importances.scores])
    per_example = {"score": importances.score, **importances.diagnostics}
    pairs = [example.pair or "" for example in importances.examples]
    return xr.Dataset(
        {
            "importance": (("method", "example", "token"), scores[None]),
            **{name: (("method", "example"), table[None]) for name, table in per_example.items()},
        },
        coords={
            **_describe_method(importances),
            "example": token_labels([example.id for example in importances.examples]),
            "text": ("example", token_labels([example.text for example in importances.examples])),
            **({"pair": ("example", token_labels(pairs))} if any(pairs) else {}),
            "answer": (("method", "example"), token_labels(importances.answers)[None]),
            "count": ("example", [len(tokens) for tokens in importances.tokens]),
            **{name: (("example", "token"), table) for name, table in tables.items()},
        },
        attrs={"headscope": _describe(importances, n=len(importances))},
    )


def make_dataframe(importances: Importances) -> pd.DataFrame:
    """Return a row for each token of each example."""
    tables = []
    for row, example in enumerate(importances.examples):
        columns = _token_columns(importances, row)
        first = {"method": importances.method, "target": importances.target, "example": example.id}
        rest = {"answer": importances.answers[row], "importance": importances.scores[row]}
        tables.append(pd.DataFrame({**first, "position": range(len(columns["token_text"])), **columns, **rest}))
    return pd.concat(tables, ignore_index=True)


def _token_columns(importances: Importances, row: int) -> dict[str, Any]:
    return {
        "token_text": token_labels(importances.tokens[row]),
        "piece": token_labels(importances.pieces[row]),
        "special": importances.special[row],
        "word": importances.words[row],
    }


def _describe_method(importances: Importances) -> dict[str, Any]:
    return {
        "method": token_labels([importances.method]),
        "signed": ("method", [importances.signed]),
        "quantity": ("method", token_labels([importances.quantity])),
        "target": ("method", token_labels([importances.target])),
    }


def _describe(importances: Importances, **facts: Any) -> str:
    """Return the provenance: the model, the method, the target and further facts."""
    source_facts = importances.source.facts if importances.source is not None else {}
    facts = {"kind": "importances", "methods": [importances.method], "target": importances.target, **facts}
    return json.dumps({**source_facts, **facts}, sort_keys=True, ensure_ascii=False)


def _fill_up(column: np.ndarray[Any, np.dtype[Any]], width: int) -> np.ndarray[Any, np.dtype[Any]]:
    return np.pad(column, (0, width - len(column)), constant_values=FILL[column.dtype.kind])

"""The numbers of Kovaleva et al. (2019) that this study stands beside."""

import pandas as pd

KINDS = {
    "MRPC": "paraphrase detection",
    "STS-B": "textual similarity",
    "SST-2": "sentiment analysis",
    "QQP": "paraphrase detection",
    "RTE": "textual entailment",
    "QNLI": "natural language inference",
    "MNLI": "natural language inference",
}
HETEROGENEOUS = (0.32, 0.61)
"""The least and the greatest share of heterogeneous maps, on MRPC and QQP."""

VERTICAL = 0.30
"""The share of vertical maps among those that were labelled."""

MISSING = ("MNLI", "QQP")
"""Tasks of the paper that are not at hand."""

SST_FROM_RANDOM = 0.80
"""Accuracy on SST-2 of the model that was fine-tuned from random weights."""

MAPS = 144_000
"""Maps of a task: all heads of 1,000 examples, where the validation set has as many."""

LETTERS = {"heterogeneous": "H", "block": "B", "vertical_diagonal": "V+D", "diagonal": "D", "vertical": "V"}


def table_of_shares() -> pd.DataFrame:
    """Return the shares that the paper gives in its text: the least, the greatest, and that among labelled maps."""
    low, high = (100 * share for share in HETEROGENEOUS)
    rows = {"MRPC, the least": {"H": low}, "QQP, the greatest": {"H": high}, "labelled maps": {"V": 100 * VERTICAL}}
    return pd.DataFrame.from_dict(rows, "index").rename_axis("task")

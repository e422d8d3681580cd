"""The numbers that Abnar & Zuidema (2020) print."""

from collections.abc import Mapping

import pandas as pd

Rows = Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]]
"""By attention: means and standard deviations, layer by layer."""

ACCURACY = 0.96
INPUTS, SST_INPUTS = 2000, 100
LAYERS, SST_LAYERS = (1, 2, 3, 4, 5, 6), (1, 3, 5, 6)
SST = "SST-2"
SCRIPT = "SST-2, their script"
OTHERS = (SST, SCRIPT, "templates")  # tasks whose accuracy the paper does not print
SHOWN = ("raw", "rollout", "flow")
VERB = "number of the verb"
KINDS = {SST: "sentiment"}
BLANK_OUT: Rows = {
    "raw": ((0.69, 0.10, -0.11, -0.09, 0.20, 0.29), (0.27, 0.43, 0.49, 0.52, 0.45, 0.39)),
    "rollout": ((0.32, 0.38, 0.51, 0.62, 0.70, 0.71), (0.26, 0.27, 0.26, 0.26, 0.25, 0.24)),
    "flow": ((0.32, 0.44, 0.70, 0.70, 0.71, 0.70), (0.26, 0.29, 0.25, 0.22, 0.22, 0.22)),
}
GRADIENT: Rows = {
    "raw": ((0.53, 0.16, -0.06, 0.00, 0.24, 0.46), (0.33, 0.38, 0.42, 0.47, 0.40, 0.35)),
    "rollout": ((0.22, 0.27, 0.39, 0.47, 0.53, 0.54), (0.31, 0.32, 0.32, 0.32, 0.32, 0.31)),
    "flow": ((0.22, 0.31, 0.54, 0.61, 0.60, 0.61), (0.31, 0.34, 0.32, 0.28, 0.28, 0.28)),
}
SST_GRADIENT: Rows = {
    "raw": ((0.12, 0.09, 0.08, 0.09), (0.21, 0.21, 0.20, 0.21)),
    "rollout": ((0.11, 0.12, 0.13, 0.13), (0.19, 0.21, 0.21, 0.20)),
    "flow": ((0.11, 0.11, 0.12, 0.14), (0.19, 0.21, 0.22, 0.21)),
}
"""Spearman's correlation with blank-out (Table 1) and with input gradients (Tables 2 and 3)."""

LOGGED: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "correlations_bert_sst_max": {
        "raw": (0.11716, 0.09103, 0.07897, 0.09257),
        "rollout": (0.10869, 0.11626, 0.13376, 0.13205),
    },
    "correlations_bert_sst_max2": {
        "raw": (0.11127, 0.13178, 0.11646, 0.14311),
        "rollout": (0.10603, 0.09379, 0.10483, 0.12169),
    },
}
"""What two logs in the repository of the paper hold for Table 3; the first is what the paper prints.

Both are of the same 101 inputs. The logits that the second lists are those of the first where they are positive (57),
and are positive everywhere: they are those of the more probable class, not of a fixed one.
"""

SENTENCES = (
    ("the key to the cabinets", 1, "keys", 0),
    ("the article on nnp large systems", 1, "articles", 0),
    ("here the nns differ in that the female", 2, "nnp", 0),
)
"""Sentences of the text and of Figures 2 and 3: the word that is replaced, by what, and the label, singular."""

PRONOUNS = {
    "The author talked to Sara about {mask} book .": {"author": "his", "Sara": "her"},
    "Mary convinced John of {mask} love .": {"John": "his", "Mary": "her"},
}
"""The sentences of Figure 4, and the pronoun of each word that it may refer to."""


def print_table(rows: Rows, layers: tuple[int, ...]) -> pd.DataFrame:
    """Return one of their tables, a row for each attention, such as 0.69 ± 0.27."""
    cells = {
        lens: [f"{mean:.2f} ± {std:.2f}".replace("-", "−") for mean, std in zip(*numbers, strict=True)]
        for lens, numbers in rows.items()
    }
    frame = pd.DataFrame.from_dict(cells, "index", columns=[f"L{layer}" for layer in layers])
    return frame.rename_axis("attention")


def is_sentiment(task: str) -> bool:
    """Whether a task is that of Table 3, by our measure or by the authors' script."""
    return task in (SST, SCRIPT)

"""What Niven & Kao (2019) print, as far as it is at hand."""

import pandas as pd

BERT_BEST = {"warrant": 0.71, "reason + warrant": 0.75, "all": 0.77}
"""The best accuracy of BERT-large on the test set, by part of the input."""

PRINTED = {"train": (0.65, 0.66), "dev": (0.62, 0.44), "test": (0.52, 0.77), "all": (0.61, 0.64)}
"""Productivity and coverage of "not" that the paper prints, by split."""

NOT, NOT_APART, NOT_OR = "not", "not, apart from cannot", "not or n't"
PATTERNS = {
    NOT: r"(?<!\w)(?:can)?not(?!\w)",  # cannot is two words, can and not
    NOT_APART: r"(?<!\w)not(?!\w)",
    NOT_OR: r"(?<!\w)(?:can)?not(?!\w)|n't(?!\w)",
}


def table_of_best() -> pd.DataFrame:
    """Return the best accuracies that the paper prints, in %."""
    rows = {part: {"BERT-large, best": 100 * value} for part, value in BERT_BEST.items()}
    return pd.DataFrame.from_dict(rows, "index").rename_axis("part")


def table_of_not() -> pd.DataFrame:
    """Return what the paper prints of "not"."""
    return pd.DataFrame.from_dict(PRINTED, "index", columns=["productivity", "coverage"]).rename_axis("split")

"""A Document with every kind of part, built in place."""

import pandas as pd
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Picture, Section, Table


def line(title="a line"):
    """A small figure."""
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, 1], [1, 0])
    figure.suptitle(title)
    return figure


def accuracy():
    """Two models, three tasks, with intervals."""
    return pd.DataFrame(
        {
            "task": ["RTE", "SST-2", "MRPC"],
            "raw": [0.664, 0.921, 0.861],
            "raw_low": [0.606, 0.901, 0.823],
            "raw_high": [0.717, 0.937, 0.891],
            "effective": [0.66, float("nan"), 0.858],
            "n": [277, 872, 408],
        }
    )


def published():
    """What a paper says of two of them."""
    return pd.DataFrame({"task": ["MRPC", "RTE"], "raw": [0.871, 0.671]})


def claims():
    """Four claims and what became of them."""
    return pd.DataFrame(
        {
            "claim": ["weight on [SEP] falls", "weight on [CLS] falls", "rank < n", "block rises"],
            "verdict": ["holds", "refuted by exactness", "holds only without padding", "not reproduced"],
        }
    )


def document(**changes):
    """A Document with every kind of part."""
    tables = [
        Table("accuracy", "Accuracy by task", accuracy(), 1557, theirs=published(), reduced="3 of 9 tasks"),
        Table("verdicts", "What holds", claims(), "2 models"),
        Table("other", "By size", pd.DataFrame({"size": ["small"], "loss": [2.5]}), 10, theirs=published()),
    ]
    facts = {"name": "first run", "command": "hs.score", "model": "tiny", "weights_hash": "ab" * 32, "n": 1557}
    sections = [
        Section("Numbers", [Paragraph("With `a < b` & **care**.\n\nTwice."), *tables]),
        Section("Pictures", [Picture("line", "A line that falls", line(), 2, reduced="2 of 100 points")]),
    ]
    defaults = {"title": "Every <part>", "lead": "What & why.", "sections": sections, "references": ["sun2021", "norm"]}
    return Document(**{**defaults, "runs": [{**facts, "plan": "1a2b"}], **changes})

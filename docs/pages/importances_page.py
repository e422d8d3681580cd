"""Sentences of docs/importances.md, from docs/results/gradient_sums.nc."""

from pathlib import Path

from headscope.core.provenance import read_provenance
from headscope.results.store import open_result

DOCS = Path(__file__).parents[1]


def describe_sums() -> str:
    """Return how large the sum of a gradient is beside its norm, by the kind of layer norm and the place."""
    data = open_result(DOCS / "results" / "gradient_sums.nc")
    facts, share = read_provenance(data), data["share"]
    default, rms = (float(share.sel(norm=norm, at="embeddings")) for norm in ("LayerNorm", "RMSNorm"))
    name = facts["model"].rpartition("/")[2]
    words = float(share.sel(norm="LayerNorm", at="words"))
    return (
        f"Over {facts['n']} bundled paragraphs, the largest sum of a text is {default:.2f} of its largest norm at the "
        f"output of the embeddings of\n{name}, with a random linear readout of [CLS] as the score, and {rms:.2f} in a "
        f"small random decoder with\nRMSNorm; at the words of {name} it is {words:.0e}, which is rounding "
        "(`docs/runs/gradient_sums.py`).\n"
    )

"""Attention beside the norm-based analysis of Kobayashi et al. (2020)."""

from functools import partial

import xarray as xr

from headscope.core.document import Paragraph, Section
from headscope.experiments.rendering.report import Sample
from headscope.experiments.rendering.sentences import describe_pairs
from headscope.reporting.frames import Quantity, to_frame

KINDS = {"cls": "[CLS]", "sep": "[SEP]", "punctuation": "punctuation"}


def report_norms(sample: Sample, numbers: xr.Dataset, text: str) -> Section:
    """Return the section on norms: a text with numbers, and the agreement of every attention with them."""
    own = [name for name in numbers if str(name).startswith("agreement")]
    data = numbers.assign({name: numbers[name].where(numbers["beside_norm"] != "norm") for name in own})
    columns = [Quantity("cosine with norms", "agreement"), Quantity("rank correlation", "agreement_rank")]
    for kind, name in KINDS.items():
        where = {"type": kind}
        columns.append(Quantity(f"portion of {name} (%)", "type_portion", where, scale=100, interval=False))
    frame = to_frame(data, {"task": "task", "beside_norm": "attention"}, columns)
    said = Paragraph(describe_norms(numbers, text))
    return Section("Beside the norm-based analysis", [said, sample.table("norms", frame)])


def describe_norms(numbers: xr.Dataset, text: str) -> str:
    """Fill in whether effective attention is nearer to norms than raw attention is, and the portion of [CLS]."""
    compare = partial(describe_pairs, axis="beside_norm")
    cosine, rank = (compare(numbers[name], labels=("raw", "effective"), form=".2f")
                    for name in ("agreement", "agreement_rank"))  # fmt: skip
    portion = compare(100 * numbers["type_portion"].sel(type="cls"), labels=("raw", "norm"), form=".0f")
    return text.format(cosine=cosine, rank=rank, portion=portion)

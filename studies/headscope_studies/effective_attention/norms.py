"""Attention beside the norm-based analysis of Kobayashi et al. (2020)."""

import xarray as xr

from headscope.core.document import Paragraph, Section
from headscope.experiments.rendering.report import Captioner
from headscope.reporting.frames import TableColumn, to_frame

KINDS = {"cls": "[CLS]", "sep": "[SEP]", "punctuation": "punctuation"}

Pairs = list[tuple[float, float, str]]
"""Values with one attention and with another, and the task."""


def report_norms(sample: Captioner, numbers: xr.Dataset, text: str) -> Section:
    """Return the section on norms: a text with numbers, and the agreement of every attention with them."""
    own = [name for name in numbers if str(name).startswith("agreement")]
    data = numbers.assign({name: numbers[name].where(numbers["beside_norm"] != "norm") for name in own})
    columns = [TableColumn("cosine with norms", "agreement"), TableColumn("rank correlation", "agreement_rank")]
    for kind, name in KINDS.items():
        where = {"type": kind}
        columns.append(TableColumn(f"portion of {name} (%)", "type_portion", where, scale=100, interval=False))
    frame = to_frame(data, {"task": "task", "beside_norm": "attention"}, columns)
    return Section("Beside the norm-based analysis", [Paragraph(text), sample.table("norms", frame)])


def compare_norms(numbers: xr.Dataset) -> dict[str, Pairs]:
    """Return how near raw and effective attention are to norms, and the portion of [CLS] with raw and with norms."""
    return {
        "cosine": _compare(numbers["agreement"], "effective"),
        "rank": _compare(numbers["agreement_rank"], "effective"),
        "portion": _compare(100 * numbers["type_portion"].sel(type="cls"), "norm"),
    }


def _compare(table: xr.DataArray, other: str) -> Pairs:
    """Return the values with raw and with another attention, task by task."""
    raw, changed = (table.sel(beside_norm=name) for name in ("raw", other))
    return [(float(raw.sel(task=task)), float(changed.sel(task=task)), task) for task in table["task"].values.tolist()]

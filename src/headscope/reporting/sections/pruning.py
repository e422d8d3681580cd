"""Sections of a report about pruning curves."""

import pandas as pd
import xarray as xr

from headscope.core.document import Part, Section, Table
from headscope.reporting.sections.parts import SectionContext, try_figure
from headscope.results.stamp import read_provenance


def pruning_sections(data: xr.Dataset, context: SectionContext) -> tuple[list[Section], set[str]]:
    """Return a section with the curve and, for a single order, its steps; and the variables that it shows."""
    facts = read_provenance(data)
    order = {"importance": "the least important first", "random": "in random orders"}.get(str(facts.get("by")), "")
    caption = f"Score with fewer and fewer heads{f', {order}' if order else ''}"
    name, n = context.name("pruning", "curve"), facts.get("n", "")
    parts: list[Part] = [try_figure(data, "pruning_curve", name, caption, n)]
    shown: set[str] = set()
    if "seed" not in data.dims and {"score", "change", "count", "heads"} <= set(data.data_vars):
        text = (
            "Score and its change from the whole model at each step, with 95 % intervals, and the heads that it prunes"
        )
        parts.append(Table(context.name("pruning", "steps"), text, _list_steps(data), n))
        shown = {"score", "change", "count", "heads"}
    return [Section(context.title("pruning"), parts)], shown


def _list_steps(data: xr.Dataset) -> pd.DataFrame:
    """Return a row for each step: the number of pruned heads, scores, and the names of the heads that it adds."""
    score = str(data["score"].attrs.get("long_name", "score"))
    columns = {"pruned heads": data["count"].values.astype(int)}
    for name, label in (("score", score), ("change", "change")):
        columns |= {f"{label}{end}": data[f"{name}{end}"].values for end in ("", "_low", "_high")}
    before: set[str] = set()
    added = []
    for names in map(str, data["heads"].values):
        heads = [head for head in names.split("+") if head and head not in before]
        added.append(", ".join(heads))
        before |= set(heads)
    index = pd.Index([f"{share:.4g} %" for share in data["pruned"].values], name="pruned")
    return pd.DataFrame({**columns, "heads of this step": added}, index=index)

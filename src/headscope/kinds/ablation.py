"""Scores of a model without sets of its heads."""

from collections.abc import Collection

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, SectionContext, Table
from headscope.core.estimate import estimate
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun
from headscope.core.provenance import read_provenance
from headscope.results.document_parts import draw_part
from headscope.results.select import stack_sets

MAX_ROWS = 15


class Ablation(Kind):
    """Scores of a model without sets of its heads."""

    variables = {"change": "change of the score without a set of heads", "ablated": "the score without it"}
    subject = "Ablations"
    model_subject = "Ablation of {}"

    def lead(self, data: xr.Dataset) -> str:
        """Return what was switched off, and over how many examples."""
        edit, texts = read_provenance(data).get("edit"), count_noun(int(data["n"]), "example")
        return f"The score of the model without sets of its heads, by the edit `{edit}`, over {texts}."

    def figure(self, data: xr.Dataset, options: Collection[str] = ()) -> str:
        """Return the map of heads where every head alone is switched off, else a bar for each set."""
        return "heads" if {"layer", "head"} <= set(data["change"].dims) else "ablation"

    def entries(self, data: xr.Dataset) -> list[tuple[str, str]]:
        """Return the edit."""
        facts = read_provenance(data)
        return [("edits", str(facts["edit"]))] if "edit" in facts else []

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section with the figure and the largest changes."""
        return _sections(data, context, self.figure(data))


def _sections(data: xr.Dataset, context: SectionContext, figure: str) -> Sections:
    facts, flat = read_provenance(data), stack_sets(data)
    metric, n = str(data["change"].attrs.get("long_name", "score")), int(data["n"])
    total, sure = flat.sizes["set"], int(flat["change_significant"].sum())
    lead = (
        f"The {metric} of the whole model is {estimate(data, 'score').format('.4g')}. "
        f"{sure} of {total} changes are significant (p < {facts.get('level', 0.05):g} after Holm's correction); "
        f"{int((flat['change'] < 0).sum())} are below 0, {int((flat['change'] > 0).sum())} above."
    )
    title = str(data["change"].attrs.get("title", f"Change of {metric}"))
    parts: list[Part] = [Paragraph(lead), *draw_part(context, data, figure, context.name("ablation"), title, n)]
    parts.append(_largest(flat, metric, n, context))
    shown = {"score", "change", "ablated", "changed", "n", "prediction", "prediction_whole", "loss", "loss_whole"}
    return [Section(context.title("ablation"), parts)], shown | {"label", "tokens"}


def _largest(flat: xr.Dataset, metric: str, n: int, context: SectionContext) -> Table:
    """Return the sets with the largest changes."""
    order = np.argsort(-np.abs(flat["change"].values), kind="stable")[:MAX_ROWS]
    rows = flat.isel(set=order)
    columns = estimate(rows, "change").columns("change") | {"p": rows["change_p_adjusted"].values}
    frame = pd.DataFrame(columns | estimate(rows, "ablated").columns(metric))
    if "changed" in rows:
        frame["other predictions"] = rows["changed"].values.astype(int)
    frame.index = pd.Index([str(name) for name in rows["set"].values], name="heads")
    count = f"The {MAX_ROWS} largest changes" if flat.sizes["set"] > MAX_ROWS else "Changes"
    caption = f"{count} of {metric}, with paired intervals; p is corrected"
    return Table(context.name("ablation", "largest"), caption, frame, n)

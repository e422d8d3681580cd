"""How much each head matters for a task, from gradients."""

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Section, SectionContext, Table
from headscope.core.estimate import estimate, interval_names
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun
from headscope.results.document_parts import draw_part, example_count
from headscope.results.select import select_variable

MAX_ROWS = 15


class HeadImportance(Kind):
    """How much each head matters for a task: the sensitivity of the loss to a gate on each head."""

    variables = {"head_importance": "of each head", "head_importance_n": "number of examples"}
    default_figure = "heads"
    model_subject = "Importance of the heads of {}"

    def lead(self, data: xr.Dataset) -> str:
        """Return the number of heads and examples."""
        heads = int(data["head_importance"].notnull().sum())
        n = count_noun(int(data["head_importance_n"].max()), "example")
        return f"How much each of {count_noun(heads, 'head')} matters for the task, over {n}."

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section with the map of heads and the most important ones."""
        n = example_count(select_variable(data, "head_importance"))
        caption = "Importance of every head"
        parts = draw_part(context, data, "heads", context.name("head_importance", "heads"), caption, n)
        frame = _rank_heads(data)
        total = int(data["head_importance"].notnull().sum())
        title = f"The {len(frame)} most important of {count_noun(total, 'head')}, with 95 % intervals"
        parts.append(Table(context.name("head_importance"), title, frame, n))
        return [Section(context.title("importance of heads"), parts)], {"head_importance"}


def _rank_heads(data: xr.Dataset) -> pd.DataFrame:
    """Return a row for each of the most important heads, with its share of the sum of all."""
    dims = ("layer", "head")
    names = [name for name in interval_names("head_importance") if name in data]
    flat = data[names].squeeze([dim for dim in data[names].dims if dim not in dims], drop=True)
    flat = flat.stack(unit=dims, create_index=False).dropna("unit", subset=["head_importance"])
    values = flat["head_importance"].values
    rows = flat.isel(unit=np.argsort(-values, kind="stable")[:MAX_ROWS])
    labels = [f"L{layer}H{head}" for layer, head in zip(rows["layer"].values, rows["head"].values, strict=True)]
    columns = estimate(rows, "head_importance").columns("importance")
    shares = {"share (%)": 100 * rows["head_importance"].values / values.sum()} if values.sum() else {}
    return pd.DataFrame({**columns, **shares}, index=pd.Index(labels, name="head"))

"""Sections of a report about ablations."""

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, Table
from headscope.reporting.sections.parts import SectionContext, try_figure
from headscope.results.select import stack_sets
from headscope.results.stamp import read_provenance

MAX_ROWS = 15


def ablation_sections(data: xr.Dataset, context: SectionContext) -> tuple[list[Section], set[str]]:
    """Return a section with the figure and the largest changes, and the variables that it shows."""
    facts, flat = read_provenance(data), stack_sets(data)
    metric, n = str(data["change"].attrs.get("long_name", "score")), int(data["n"])
    total, sure = flat.sizes["set"], int(flat["change_significant"].sum())
    low, high = float(data["score_low"]), float(data["score_high"])
    lead = (
        f"The {metric} of the whole model is {float(data['score']):.4g} ({low:.4g} to {high:.4g}). "
        f"{sure} of {total} changes are significant (p < {facts.get('level', 0.05):g} after Holm's correction); "
        f"{int((flat['change'] < 0).sum())} are below 0, {int((flat['change'] > 0).sum())} above."
    )
    figure = "heads" if "head" in data["change"].dims else "ablation"
    title = str(data["change"].attrs.get("title", f"Change of {metric}"))
    parts: list[Part] = [Paragraph(lead), try_figure(data, figure, context.name("ablation"), title, n)]
    parts.append(_largest(flat, metric, n, context))
    shown = {"score", "change", "ablated", "changed", "n", "prediction", "prediction_whole", "loss", "loss_whole"}
    return [Section(context.title("ablation"), parts)], shown | {"label", "tokens"}


def _largest(flat: xr.Dataset, metric: str, n: int, context: SectionContext) -> Table:
    """Return the sets with the largest changes."""
    order = np.argsort(-np.abs(flat["change"].values), kind="stable")[:MAX_ROWS]
    rows = flat.isel(set=order)
    columns = {"change": "change", "change_low": "change_low", "change_high": "change_high"}
    columns |= {"ablated": metric, "ablated_low": f"{metric}_low", "ablated_high": f"{metric}_high"}
    frame = pd.DataFrame({label: rows[name].values for name, label in columns.items()})
    frame["p"] = rows["change_p_adjusted"].values
    if "changed" in rows:
        frame["other predictions"] = rows["changed"].values.astype(int)
    frame.index = pd.Index([str(name) for name in rows["set"].values], name="heads")
    count = f"The {MAX_ROWS} largest changes" if flat.sizes["set"] > MAX_ROWS else "Changes"
    caption = f"{count} of {metric}, with paired intervals; p is corrected"
    return Table(context.name("ablation", "largest"), caption, frame, n)

"""How well lenses agree with what interventions do."""

from collections.abc import Collection
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, SectionContext, Table
from headscope.core.estimate import estimate
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun, join_words
from headscope.core.provenance import read_provenance
from headscope.results.document_parts import draw_part
from headscope.results.judged import CHANCE, CURVES, describe_quantity, list_effects, list_quantities, sort_lenses

MAX_PAIRS = 45
"""Pairs of lenses in a table of differences."""


class Faithfulness(Kind):
    """How well lenses agree with what interventions do to a model."""

    variables = {
        "lens": "lenses that were judged",
        "other_lens": "the same, for paired differences",
        "forwards": "cost in forward passes of the data",
    }
    default_figure = "faithfulness"
    subject = "Faithfulness of lenses"
    model_subject = "Faithfulness of lenses on {}"

    def lead(self, data: xr.Dataset) -> str:
        """Return what was judged by what, and over how many examples."""
        facts, n = read_provenance(data), count_noun(int(data["n"]), "example")
        lenses = [str(lens) for lens in facts.get("lenses") or data["lens"].values]
        names = join_words((f"`{lens}`" for lens in lenses), limit=8)
        return (
            f"{_describe_judges(data)} {names}, over {n}, at the cost of {float(data['forwards']):.1f} forward passes."
        )

    def figure(self, data: xr.Dataset, options: Collection[str] = ()) -> str:
        """Return the rows of lenses."""
        return "faithfulness"

    def entries(self, data: xr.Dataset) -> list[tuple[str, str]]:
        """Return the lenses."""
        return [("lenses", str(lens)) for lens in read_provenance(data).get("lenses") or []]

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section for each quantity: its figure, every lens, and the paired differences."""
        names = list_quantities(data)
        sections = [_section(data, name, context) for name in names]
        if curves := [name for name in ("deletion", "insertion") if name in data]:
            parts = [part for name in curves for part in _curve(data, name, context)]
            sections.append(Section(context.title("curves"), parts))
        return sections, {str(name) for name in data.data_vars}


def _describe_judges(data: xr.Dataset) -> str:
    if "edges" in data:
        edges = f"What {int(data['edges']):,} removed edges do"
        return f"{edges}, beside what is said of them by"
    return "What becomes of the score when tokens are replaced in the order of"


def _section(data: xr.Dataset, name: str, context: SectionContext) -> Section:
    n, label = int(data["n"]), describe_quantity(data, name)
    caption = f"{label} of each lens"
    parts: list[Part] = [Paragraph(_summarize(data, name))] if "effect" in data[name].dims else []
    parts += draw_part(context, data, "faithfulness", context.name(name, "lenses"), caption, n, variable=name)
    parts.append(Table(context.name(name), f"{label}, with 95 % intervals over examples", _tabulate(data, name), n))
    if f"{name}_layer" in CURVES and data.sizes["layer"] > 1:
        parts += _curve(data, f"{name}_layer", context)
    if data.sizes["lens"] > 1:
        caption = f"Paired differences of {label[:1].lower()}{label[1:]}, first lens minus second; corrected p by Holm"
        parts.append(Table(context.name(name, "differences"), caption, _tabulate_differences(data, name), n))
    return Section(context.title(name.replace("_", " ")), parts)


def _curve(data: xr.Dataset, name: str, context: SectionContext) -> list[Part]:
    along = {"layer": "by layer", "share": "by the share of tokens"}[CURVES[name]]
    caption = f"{describe_quantity(data, name)} {along}"
    return draw_part(context, data, "faithfulness_curve", context.name(name), caption, int(data["n"]), variable=name)


def _summarize(data: xr.Dataset, name: str) -> str:
    """Return what was measured, with what could not be."""
    facts = read_provenance(data)
    unit = "all heads of a layer" if facts.get("heads") == "all" else "one head"
    text = f"{int(data['edges']):,} edges were removed in {unit}"
    text += f", {int(data['row_count'].sum()):,} rows of one query."
    if name == "mass_without_effect":
        text += f" Nothing changes if the effect is below {facts.get('threshold', 1e-3):g}."
    missing = {
        str(effect): int(count) for effect, count in zip(data["effect"].values, data["nan_edges"].values, strict=True)
    }
    listed = [f"{count:,} ({effect})" for effect, count in missing.items() if count]
    return text + (f" Effects that were not finite are left out: {join_words(listed)}." if listed else "")


def _tabulate(data: xr.Dataset, name: str) -> pd.DataFrame:
    """Return a row for each lens and effect, the best lens first; what chance gives is the last."""
    frames = []
    for effect in _effects(data, name):
        at = {} if effect is None else {"effect": effect}
        rows = sort_lenses(data, name, effect)
        values = estimate(rows, name).sel(**at)
        columns = values.columns(name.replace("_", " "))
        columns["n"] = np.asarray(rows[f"{name}_n"].sel(at).values, int)
        frame = pd.DataFrame(columns, index=[str(lens) for lens in rows["lens"].values])
        if CHANCE.get(name) in data:
            chance = estimate(data, CHANCE[name]).sel(**at)
            ends = [float(end) for end in chance.ends]
            row = dict(zip(columns, [*ends, int(data[f"{CHANCE[name]}_n"].sel(at))], strict=True))
            frame = pd.concat([frame, pd.DataFrame(row, index=["chance" if name == "top_share" else "all edges"])])
        frames.append(_name_rows(frame, effect))
    return pd.concat(frames)


def _name_rows(frame: pd.DataFrame, effect: str | None) -> pd.DataFrame:
    if effect is None:
        return frame.rename_axis("lens")
    labels: Any = [[effect.replace("_", " ")] * len(frame), frame.index]
    return frame.set_index(pd.MultiIndex.from_arrays(labels, names=["effect", "lens"]))


def _effects(data: xr.Dataset, name: str) -> list[str | None]:
    """Return all effects with a value."""
    if "effect" not in data[name].dims:
        return list_effects(data, name)
    effects = [str(effect) for effect in data["effect"].values]
    return [effect for effect in effects if bool(np.isfinite(data[name].sel(effect=effect)).any())]


def _tabulate_differences(data: xr.Dataset, name: str) -> pd.DataFrame:
    """Return a row for each pair of lenses, of the effects that the figure shows."""
    rows = []
    effects = list_effects(data, name)
    pairs = list(combinations([str(lens) for lens in data["lens"].values], 2))
    for effect in effects:
        at = {} if effect is None else {"effect": effect}
        for first, second in pairs[: MAX_PAIRS // len(effects)]:
            both = data.sel({"lens": first, "other_lens": second, **at})
            found = estimate(both, f"{name}_difference")
            low, high = (float(found.ends[place]) for place in (1, 2))
            row = {"lenses": f"{first} − {second}", "difference": float(found.value), "difference_low": low}
            row |= {"difference_high": high, "p": float(both[f"{name}_difference_p"])}
            rows.append(row | {"corrected p": float(both[f"{name}_difference_p_adjusted"]), "effect": effect or ""})
    frame = pd.DataFrame(rows).set_index(["effect", "lenses"] if effects != [None] else ["lenses"])
    return frame.drop(columns="effect", errors="ignore")

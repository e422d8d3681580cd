"""The score of a model with fewer and fewer heads."""

import pandas as pd
import xarray as xr

from headscope.core.document import Section, SectionContext, Table
from headscope.core.estimate import estimate
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun
from headscope.core.provenance import read_provenance
from headscope.results.document_parts import describe_count, draw_part


class Pruning(Kind):
    """The score of a model with fewer and fewer heads, by importance or in random orders."""

    variables = {"score": "of the model that is left", "pruned": "share of heads that are pruned, in percent"}
    default_figure = "pruning_curve"

    def fits(self, data: xr.Dataset) -> bool:
        """Whether there is a score at each step."""
        return super().fits(data) and "pruned" in data["score"].dims

    def lead(self, data: xr.Dataset) -> str:
        """Return the number of steps, and over how many examples."""
        steps = count_noun(data.sizes["pruned"], "step")
        return f"The score of the model with fewer and fewer heads, in {steps}{describe_count(data)}."

    def entries(self, data: xr.Dataset) -> list[tuple[str, str]]:
        """Return the edit that switches heads off."""
        return [("edits", "zero_heads")]

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section with the curve and, for a single order, its steps."""
        return _sections(data, context)


def _sections(data: xr.Dataset, context: SectionContext) -> Sections:
    facts = read_provenance(data)
    order = {"importance": "the least important first", "random": "in random orders"}.get(str(facts.get("by")), "")
    caption = f"Score with fewer and fewer heads{f', {order}' if order else ''}"
    name, n = context.name("pruning", "curve"), facts.get("n", "")
    parts = draw_part(context, data, "pruning_curve", name, caption, n)
    shown: set[str] = set()
    if "seed" not in data.dims and {"score", "change", "count", "heads"} <= set(data.data_vars):
        text = (
            "Score and its change from the whole model at each step, with 95 % intervals, and the heads that it prunes"
        )
        parts.append(Table(context.name("pruning", "steps"), text, _list_steps(data), n))
        shown = {"score", "change", "count", "heads"}
    elif {"seed", "pruned"} == set(data["score"].dims):
        text = f"Score at each step over {count_noun(data.sizes['seed'], 'random order')}"
        parts.append(Table(context.name("pruning", "steps"), text, _average_orders(data), n))
        shown = {"score", "change", "count", "heads"}
    return [Section(context.title("pruning"), parts)], shown


def _average_orders(data: xr.Dataset) -> pd.DataFrame:
    """Return a row for each step: the number of pruned heads, and the mean, least and greatest score of the orders."""
    name = str(data["score"].attrs.get("long_name", "score"))
    score = data["score"].transpose("pruned", "seed").values
    counts = data["count"] if "seed" not in data["count"].dims else data["count"].isel(seed=0)
    columns = {"pruned heads": counts.values.astype(int), f"mean {name}": score.mean(1)}
    columns |= {"least": score.min(1), "greatest": score.max(1)}
    index = pd.Index([f"{share:.4g} %" for share in data["pruned"].values], name="pruned")
    return pd.DataFrame(columns, index=index)


def _list_steps(data: xr.Dataset) -> pd.DataFrame:
    """Return a row for each step: the number of pruned heads, scores, and the names of the heads that it adds."""
    score = str(data["score"].attrs.get("long_name", "score"))
    columns = {"pruned heads": data["count"].values.astype(int)}
    for name, label in (("score", score), ("change", "change")):
        columns |= estimate(data, name).columns(label)
    before: set[str] = set()
    added = []
    for names in map(str, data["heads"].values):
        heads = [head for head in names.split("+") if head and head not in before]
        added.append(", ".join(heads))
        before |= set(heads)
    index = pd.Index([f"{share:.4g} %" for share in data["pruned"].values], name="pruned")
    return pd.DataFrame({**columns, "heads of this step": added}, index=index)

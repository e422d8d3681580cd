"""How well single words tell the label."""

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.document import Paragraph, Part, Section, SectionContext, Table
from headscope.core.estimate import estimate
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun, join_words
from headscope.core.provenance import read_provenance
from headscope.results.document_parts import draw_part

MAX_ROWS = 20


class Cues(Kind):
    """How well every word, n-gram and pattern alone tells the label of a dataset."""

    variables = {"productivity": "how often a cue is right", "coverage": "share of examples that it applies to"}
    default_figure = "cues"
    subject = "Cues to the label"
    model_subject = "Cues to the label"

    def fits(self, data: xr.Dataset) -> bool:
        """Whether there is one table of cues."""
        return super().fits(data) and data["productivity"].dims == ("cue",)

    def lead(self, data: xr.Dataset) -> str:
        """Return what was counted, and in how many examples."""
        return f"How well single words and n-grams tell the label of {count_noun(int(data['n']), 'example')}."

    def entries(self, data: xr.Dataset) -> list[tuple[str, str]]:
        """Return the figure, which cites the paper."""
        return [("figures", "cues")]

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section with the figure and the most useful cues."""
        return _sections(data, context)


def _sections(data: xr.Dataset, context: SectionContext) -> Sections:
    n = int(data["n"])
    caption = "Productivity and coverage of every cue"
    parts: list[Part] = [
        Paragraph(_describe(data)),
        *draw_part(context, data, "cues", context.name("cues"), caption, n),
    ]
    order = np.argsort(-data["gain"].values, kind="stable")[:MAX_ROWS]
    text = (
        f"The {min(MAX_ROWS, data.sizes['cue'])} cues with the largest gain = coverage · (productivity − chance), of "
        f"{data.sizes['cue']:,}; brackets: 95 % interval (Wilson); p of an exact binomial test, corrected by Holm"
    )
    parts.append(Table(context.name("cues", "ranked"), text, tabulate_cues(data.isel(cue=order)), n))
    shown = {"applicability", "productive", "productivity", "coverage", "chance", "gain", "pmi", "n"}
    return [Section(context.title("cues"), parts)], shown


def tabulate_cues(data: xr.Dataset) -> pd.DataFrame:
    """Return a row for each cue."""
    columns = {"label": data["label"].values} if "label" in data.coords else {}
    columns["applies to"] = data["applicability"].values.astype(int)
    columns |= estimate(data, "productivity").columns("productivity")
    columns |= {"p": data["productivity_p_adjusted"].values, "chance": data["chance"].values}
    columns |= estimate(data, "coverage").columns("coverage")
    columns |= {"gain": data["gain"].values, "PMI": data["pmi"].values}
    return pd.DataFrame(columns, index=pd.Index([str(cue) for cue in data["cue"].values], name="cue"))


def describe_harmful(data: xr.Dataset) -> str:
    """Return a sentence about significant cues that are right less often than by chance, or nothing."""
    below = data["productivity_significant"].astype(bool) & (data["gain"] < 0)
    if not int(below.sum()):
        return ""
    names = data["cue"].values[below.values][np.argsort(data["gain"].values[below.values], kind="stable")]
    verb = "is" if len(names) == 1 else "are"
    return f" Of these, {join_words((f'`{name}`' for name in names), limit=5)} {verb} right less often than by chance."


def count_off_chance(data: xr.Dataset) -> int:
    """Return the number of cues whose interval of productivity does not hold chance."""
    _, low, high = estimate(data, "productivity").ends
    return int(((low > data["chance"]) | (high < data["chance"])).sum())


def _describe(data: xr.Dataset) -> str:
    facts = read_provenance(data)
    applies = {
        "exclusive": "A cue applies if it is in exactly one of the choices, and is right if that choice is.",
        "either": "A cue applies if a choice has it, and is right if the right one has; 1 is added to all counts.",
    }
    task = facts.get("task", facts.get("kind", "choice"))  # older files call it kind
    first = (
        "A cue applies if it is in the text; it is right if the text has the label that the cue favours."
        if task == "classification"
        else applies.get(str(facts.get("variant")), "")
    )
    if facts.get("pairs"):
        first = first.replace("A cue applies if it is in", "A pair applies if both its cues are there, the second in")
    total, sure = data.sizes["cue"], int(data["productivity_significant"].sum())
    columns = join_words(f"`{column}`" for column in facts.get("parts", []))
    return (
        f"{count_noun(total, 'cue')} in {columns} of {count_noun(int(data['n']), 'example')}. {first} {sure:,} are "
        f"significant after the correction for all cues.{describe_harmful(data)} For {count_off_chance(data):,} chance "
        "is outside the 95 % interval of productivity."
    )

"""Scores of a model on a task."""

import xarray as xr

from headscope.core.document import Section, SectionContext
from headscope.core.estimate import estimate
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun
from headscope.core.provenance import read_provenance
from headscope.results.document_parts import draw_part
from headscope.results.other_numbers import list_scores, number_sections
from headscope.results.select import head_variables


class Score(Kind):
    """Scores of a model on a task, with intervals, and what it answered."""

    variables = {"n": "number of examples"}
    default_figure = "scores"
    subject = "Scores"
    model_subject = "Scores of {}"

    def fits(self, data: xr.Dataset) -> bool:
        """Whether there are metrics of the whole, and nothing of single heads."""
        return super().fits(data) and not head_variables(data) and bool(_list_estimates(data))

    def lead(self, data: xr.Dataset) -> str:
        """Return the main metric, and over how many examples."""
        task = read_provenance(data).get("task")
        on = f" on {task}" if isinstance(task, str) else ""
        name = _list_estimates(data)[0]
        n = count_noun(int(data["n"]), "example")
        return f"The {name.replace('_', ' ')} of the model{on} is {estimate(data, name).format('.4g')} over {n}."

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section with the metrics and the answers."""
        sections, shown = number_sections(data, context)
        name, n = context.name("scores", "figure"), int(data["n"])
        picture = draw_part(context, data, "scores", name, "Scores with 95 % intervals", n)
        first, *others = sections
        return [Section(first.title, [*picture, *first.parts]), *others], shown


def _list_estimates(data: xr.Dataset) -> list[str]:
    """Return the metrics that have an interval."""
    return [name for name in list_scores(data) if estimate(data, name).has_interval]

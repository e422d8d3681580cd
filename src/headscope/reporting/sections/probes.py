"""Sections of a report about probes."""

import xarray as xr

from headscope.core.document import Paragraph, Section, Table
from headscope.core.prose import count_noun
from headscope.reporting.sections.parts import SectionContext, spaced, try_figure
from headscope.results.probe_table import find_group_axis, make_probe_table
from headscope.results.stamp import read_provenance


def probe_sections(data: xr.Dataset, context: SectionContext) -> tuple[list[Section], set[str]]:
    """Return a section with a table and a figure for each task, and the variables that they show."""
    sections = []
    for task in map(str, data["task"].values):
        table = make_probe_table(data, task)
        n = int(table["n"].max())
        caption = f"Accuracy by {find_group_axis(data)}, with intervals over documents"
        caption += "; p is corrected for the number of rows" if "p" in table else ""
        picture = try_figure(data, "accuracies", context.name("probe", task), f"Accuracy, {task}", n, task=task)
        rows = Table(context.name("probe", task), caption, table, n)
        sections.append(Section(context.title(f"{spaced(task)}"), [Paragraph(_lead(data, task)), picture, rows]))
    return sections, {
        "accuracy",
        "gain",
        "count",
        "documents",
        *(f"best_{name}" for name in ("layer", "head", "direction", "offset")),
    }


def _lead(data: xr.Dataset, task: str) -> str:
    """Return the accuracy on all words beside the baselines, in a sentence."""
    whole = data.sel(task=task).isel({find_group_axis(data): 0})
    first, *others = [str(name) for name in data["predictor"].values]
    value, low, high = (float(whole[f"accuracy{end}"].sel(predictor=first)) for end in ("", "_low", "_high"))
    beside = ", ".join(f"{spaced(name)} {float(whole['accuracy'].sel(predictor=name)):.3f}" for name in others)
    facts, documents = read_provenance(data), count_noun(int(data["documents"]), "document")
    seen = f", fitted to {count_noun(facts['documents_train'], 'other document')}" if "documents_train" in facts else ""
    lens = f" through the lens {facts['lens']}" if "lens" in facts else ""
    return f"The accuracy of the {first}{lens} is {value:.3f} ({low:.3f} to {high:.3f}) on {documents}{seen}; {beside}."

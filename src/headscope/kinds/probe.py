"""What a probe reads from the attention between words."""

import xarray as xr

from headscope.core.document import Paragraph, Section, SectionContext, Table
from headscope.core.estimate import estimate
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun
from headscope.core.provenance import read_provenance
from headscope.results.document_parts import describe_lenses, draw_part, spaced
from headscope.results.probe_table import find_group_axis, make_probe_table


class Probe(Kind):
    """What a probe reads from the attention between words, beside its baselines."""

    variables = {"accuracy": "of each predictor", "task": "the task and its control", "predictor": "with baselines"}
    default_figure = "accuracies"
    subject = "Probes of attention"
    model_subject = "What the attention of {} knows"

    def fits(self, data: xr.Dataset) -> bool:
        """Whether there is one accuracy for each task, predictor and group of words."""
        return super().fits(data) and data["accuracy"].ndim == 3

    def lead(self, data: xr.Dataset) -> str:
        """Return the probe, the lens, and the number of documents."""
        facts = read_provenance(data)
        probe = f"the probe `{facts['probe']}`" if "probe" in facts else "a probe"
        over = f", on {count_noun(int(data['documents']), 'document')}" if "documents" in data else ""
        return f"What {probe} reads from the attention between words{describe_lenses(data)}{over}."

    def entries(self, data: xr.Dataset) -> list[tuple[str, str]]:
        """Return the probe."""
        facts = read_provenance(data)
        return [("probes", str(facts["probe"]))] if "probe" in facts else []

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section with a table and a figure for each task."""
        return _sections(data, context)


def _sections(data: xr.Dataset, context: SectionContext) -> Sections:
    sections = []
    for task in map(str, data["task"].values):
        table = make_probe_table(data, task)
        n = int(table["n"].max())
        caption = f"Accuracy by {find_group_axis(data)}, with intervals over documents"
        caption += "; p is corrected for the number of rows, but for that of all words" if "p" in table else ""
        name, title = context.name("probe", task), f"Accuracy, {task}"
        picture = draw_part(context, data, "accuracies", name, title, n, task=task)
        rows = Table(context.name("probe", task), caption, table, n)
        sections.append(Section(context.title(f"{spaced(task)}"), [Paragraph(_describe(data, task)), *picture, rows]))
    return sections, {
        "accuracy",
        "gain",
        "count",
        "documents",
        *(f"best_{name}" for name in ("layer", "head", "direction", "offset")),
    }


def _describe(data: xr.Dataset, task: str) -> str:
    """Return the accuracy on all words beside the baselines, in a sentence."""
    all_words = data.sel(task=task).isel({find_group_axis(data): 0})
    first, *others = [str(name) for name in data["predictor"].values]
    accuracy = estimate(all_words, "accuracy").sel(predictor=first).format(".3f")
    beside = ", ".join(f"{spaced(name)} {float(all_words['accuracy'].sel(predictor=name)):.3f}" for name in others)
    facts, documents = read_provenance(data), count_noun(int(data["documents"]), "document")
    seen = f", fitted to {count_noun(facts['documents_train'], 'other document')}" if "documents_train" in facts else ""
    lens = f" through the lens {facts['lens']}" if "lens" in facts else ""
    return f"The accuracy of the {first}{lens} is {accuracy} on {documents}{seen}; {beside}."

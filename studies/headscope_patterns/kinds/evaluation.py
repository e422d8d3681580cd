"""How often a classifier of attention patterns is right."""

import xarray as xr

from headscope.core.document import Section, SectionContext
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun
from headscope.results.document_parts import draw_part
from headscope.results.other_numbers import number_sections


class Evaluation(Kind):
    """The cross-validated errors of classifiers of attention patterns."""

    variables = {"confusion": "maps by label and answer"}
    default_figure = "confusion"
    subject = "Classifiers of attention patterns"

    def lead(self, data: xr.Dataset) -> str:
        """Return what was measured, with its n."""
        maps = count_noun(data.sizes["map"], "labeled map")
        return f"How often classifiers of attention patterns are right on {maps}, cross-validated."

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return the numbers along few axes."""
        name, caption = context.name("confusion"), "Labels and answers of the classifier, in maps"
        picture = draw_part(context, data, "confusion", name, caption, data.sizes["map"])
        sections, shown = number_sections(data, context, {"confusion"})
        return [Section(context.title("confusion"), picture), *sections], shown | {"confusion"}

"""Labeled maps that are typical of their pattern classes."""

import xarray as xr

from headscope.core.document import Section, SectionContext, Table
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun
from headscope.results.document_parts import draw_part


class TypicalMaps(Kind):
    """Labeled maps that `headscope patterns typical` selected: those that the classifier is most confident of."""

    variables = {"weights": "from each query to each key", "map": "the labelled maps"}
    default_figure = "typical_maps"
    subject = "Typical attention maps"
    model_subject = "Typical attention maps"

    def lead(self, data: xr.Dataset) -> str:
        """Return the number of maps."""
        return f"{count_noun(data.sizes['map'], 'labelled map')}, typical of their classes."

    def entries(self, data: xr.Dataset) -> list[tuple[str, str]]:
        """Return the statistic that classifies maps."""
        return [("statistics", "patterns")]

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return a section with the maps and a table of their labels."""
        caption, n = "The maps of each class that the classifier is most confident of", data.sizes["map"]
        parts = draw_part(context, data, "typical_maps", context.name("typical_maps"), caption, n)
        columns = [name for name in ("label", "confidence", "source") if name in data]
        frame = data[columns].reset_coords(columns).to_dataframe()[columns]
        parts.append(Table(context.name("typical"), f"{caption}.", frame, n))
        return [Section(context.title("typical maps"), parts)], {"weights"}

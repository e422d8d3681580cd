"""Numbers along any axes: what is of no other kind."""

from collections.abc import Mapping
from typing import ClassVar

import xarray as xr

from headscope.core.document import SectionContext
from headscope.core.kind import Kind, Sections
from headscope.core.prose import join_words
from headscope.results.document_parts import describe_count, spaced
from headscope.results.other_numbers import number_sections
from headscope.results.select import main_variables


class Numbers(Kind):
    """Numbers along any axes: what is of no other kind."""

    variables: ClassVar[Mapping[str, str]] = {}
    default_figure = "head_grid"
    general = True

    def lead(self, data: xr.Dataset) -> str:
        """Return the names of the variables."""
        return f"What one result holds: {join_words(map(spaced, main_variables(data)))}{describe_count(data)}."

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return tables of the numbers."""
        return number_sections(data, context)

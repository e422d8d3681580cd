"""How far the output of a head determines each weight."""

import xarray as xr

from headscope.core.document import SectionContext
from headscope.core.kind import Kind, Sections
from headscope.core.prose import count_noun
from headscope.results.other_numbers import number_sections


class Identifiability(Kind):
    """The rows of attention that give a head the same output."""

    variables = {"least_row": "the row with the least weight on a key"}
    default_figure = "identifiability"
    subject = "Identifiability of attention"

    def lead(self, data: xr.Dataset) -> str:
        """Return what was measured, with its n."""
        keys = count_noun(data.sizes["key"], "token")
        return f"How far the output of one head determines its weights on {keys}."

    def sections(self, data: xr.Dataset, context: SectionContext) -> Sections:
        """Return the numbers along few axes."""
        return number_sections(data, context)

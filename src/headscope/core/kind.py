"""The interface of a kind of result, and how the kind of a Dataset is found."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from headscope.core.catalog import kinds
from headscope.core.document import Picture, Section, SectionContext, Table, list_parts
from headscope.core.provenance import read_provenance
from headscope.core.spec import entry_name

if TYPE_CHECKING:
    import xarray as xr

Sections = tuple[list[Section], set[str]]
"""Sections of a report, and the variables that they show."""


class Kind(ABC):
    """A kind of result: the variables that it holds, and the sentence, tables and figures that show it.

    A result stays a plain `xarray.Dataset`, stamped with the name of its kind; the kind is a view of it. `hs.draw`,
    `hs.report` and the shell all show what the kind offers.
    """

    variables: ClassVar[Mapping[str, str]]
    """What every result of this kind holds, by name: variables or dimensions, each with what it is."""

    default_figure: ClassVar[str]
    """The figure that is drawn where none is named."""

    general: ClassVar[bool] = False
    """Whether nearly any Dataset fits, so that other kinds are tried first."""

    subject: ClassVar[str] = "What was measured"
    """The title of a report, where it cannot name the model."""

    model_subject: ClassVar[str] = "Attention of {}"
    """The title of a report about one model."""

    grouped: ClassVar[bool] = True
    """Whether a report has sections for each label along the axes that all variables share."""

    def fits(self, data: "xr.Dataset") -> bool:
        """Whether a Dataset holds what this kind needs."""
        return set(self.variables) <= {*data.variables, *data.dims}

    @abstractmethod
    def lead(self, data: "xr.Dataset") -> str:
        """Return one sentence that says what the result is, with its n."""

    @abstractmethod
    def sections(self, data: "xr.Dataset", context: SectionContext) -> Sections:
        """Return the sections of a report, and the variables that they show."""

    def figure(self, data: "xr.Dataset", options: Collection[str] = ()) -> str:  # noqa: ARG002
        """Return the figure that is drawn where none is named; `options` are parameters that it must have."""
        return self.default_figure

    def entries(self, data: "xr.Dataset") -> list[tuple[str, str]]:  # noqa: ARG002
        """Return entries of catalogs behind the result, such as ("edits", "zero_heads"), for its references."""
        return []

    def tables(self, data: "xr.Dataset") -> dict[str, Table]:
        """Return the tables that show the result, by name."""
        sections, _ = self.sections(data, SectionContext(draws=False))
        return {table.name: table for table in list_parts(sections, Table)}

    def figures(self, data: "xr.Dataset") -> dict[str, Picture]:
        """Return the pictures that show the result, by name."""
        sections, _ = self.sections(data, SectionContext())
        return {picture.name: picture for picture in list_parts(sections, Picture)}


def find_kind(data: "xr.Dataset") -> Kind:
    """Return the kind that a result is stamped with; for a file from elsewhere, the first kind that it fits.

    A result that names its study is one of a study, also without the stamp.

    >>> import xarray as xr
    >>> type(find_kind(xr.Dataset({"least_row": 0}))).__name__
    'Identifiability'
    """
    by_name, facts = _make_kinds(), read_provenance(data)
    stamped = by_name.get(str(facts.get("kind", "study" if "study" in facts else "")))
    if stamped is not None and stamped.fits(data):
        return stamped
    return next(kind for kind in by_name.values() if kind.fits(data))


@cache
def _make_kinds() -> dict[str, Kind]:
    """Return all kinds by name, those that need more first, so that the most specific one is found."""
    instances: list[Kind] = [kinds.make(name) for name in kinds.names()]
    order = sorted(instances, key=lambda kind: (kind.general, -len(kind.variables)))
    return {entry_name(type(kind)): kind for kind in order}

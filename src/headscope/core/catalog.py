"""Finding lenses, statistics, edits, figures, readers, studies and families by name."""

import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from headscope.core import spec
from headscope.core.errors import InputError, unknown_name


@dataclass(frozen=True)
class Catalog:
    """A folder in which one file is one named thing, plus what other packages offer under the same entry point.

    A file `head_grid.py` holds the class `HeadGrid`, and its name everywhere is `head_grid`.
    """

    kind: str  # "lens"
    folder: str  # "lenses"

    def names(self) -> list[str]:
        """Every name there is, built in or offered by another installed package."""
        return sorted({*self._files(), *self._offers()})

    def find(self, name: str) -> type:
        """The class behind a name."""
        name = spec.canonical_name(name)
        if name in self._files():
            return _held(import_module(f"headscope.{self.folder}.{name}"), name)
        if name in (offers := self._offers()):
            found = offers[name].load()
            if not isinstance(found, type):
                raise InputError(
                    f"The entry point '{name}' of the group 'headscope.{self.folder}' must name a class, "
                    f"but {offers[name].value} is {found!r}."
                )
            return found
        raise unknown_name(self.kind, name, self.names())

    def make(self, what: Any, **parameters: Any) -> Any:
        """An entry from a name, a spec, a class, or an entry itself.

        >>> Catalog("lens", "lenses").make("effective:keys=paper").keys
        'paper'
        """
        if isinstance(what, str):
            name, read = spec.parse_spec(what)
            return spec.build_entry(self.find(name), name, {**read, **parameters})
        if isinstance(what, type):
            return spec.build_entry(what, spec.file_name(what), parameters)
        if parameters:
            raise InputError(
                f"{', '.join(parameters)} cannot be set on {what!r}, which is made already. "
                f"Set it there, or give the {self.kind} by name."
            )
        return what

    def __iter__(self) -> Iterator[Any]:
        """Every class; what its kind has beyond a plain class (a family's kinds, a reader's endings) is its own."""
        return map(self.find, self.names())

    def _files(self) -> set[str]:
        folder = import_module(f"headscope.{self.folder}")
        return {module.name for module in pkgutil.iter_modules(folder.__path__)}

    def _offers(self) -> dict[str, EntryPoint]:
        found = entry_points(group=f"headscope.{self.folder}")
        return {spec.canonical_name(each.name): each for each in found}


def _held(module: Any, name: str) -> type:
    """The one class that a catalog file must hold."""
    wanted = spec.class_name(name)
    if not isinstance(held := getattr(module, wanted, None), type):
        raise InputError(f"The file {module.__file__} must hold a class '{wanted}': a catalog file is named after it.")
    return held


lenses = Catalog("lens", "lenses")
edits = Catalog("edit", "edits")
statistics = Catalog("statistic", "statistics")
figures = Catalog("figure", "figures")
readers = Catalog("reader", "readers")
studies = Catalog("study", "studies")
families = Catalog("family", "families")
catalogs = {catalog.folder: catalog for catalog in (lenses, statistics, edits, figures, readers, studies, families)}

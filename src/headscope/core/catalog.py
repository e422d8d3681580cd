"""Find lenses, statistics, edits, figures, readers, studies and families by name."""

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
    """A folder with one class per file, plus the entry points of other packages in the group of the same name.

    The file `head_grid.py` holds the class `HeadGrid`, whose name in specs and in the shell is `head_grid`.
    """

    kind: str  # "lens"
    folder: str  # "lenses"

    def names(self) -> list[str]:
        """Return all names, built in or from other installed packages."""
        return sorted({*self._files(), *self._entry_points()})

    def find(self, name: str) -> type:
        """Return the class of a name."""
        name = spec.canonical_name(name)
        if name in self._files():
            return _catalog_class(import_module(f"headscope.{self.folder}.{name}"), name)
        if entry_point := self._entry_points().get(name):
            loaded = entry_point.load()
            if not isinstance(loaded, type):
                raise InputError(
                    f"The entry point '{name}' of the group 'headscope.{self.folder}' must name a class, "
                    f"but {entry_point.value} is {loaded!r}."
                )
            return loaded
        raise unknown_name(self.kind, name, self.names())

    def make(self, what: Any, **parameters: Any) -> Any:
        """Build an entry from a name, a spec or a class; an entry itself is returned unchanged.

        >>> Catalog("lens", "lenses").make("effective:keys=paper").keys
        'paper'
        """
        if isinstance(what, str):
            name, own = spec.parse_spec(what)
            return spec.build_entry(self.find(name), name, {**own, **parameters})
        if isinstance(what, type):
            return spec.build_entry(what, spec.file_name(what), parameters)
        if parameters:
            raise InputError(
                f"{', '.join(parameters)} cannot be set on {what!r}, which is made already. "
                f"Set it there, or give the {self.kind} by name."
            )
        return what

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the classes, by name."""
        return map(self.find, self.names())

    def _files(self) -> set[str]:
        folder = import_module(f"headscope.{self.folder}")
        return {module.name for module in pkgutil.iter_modules(folder.__path__)}

    def _entry_points(self) -> dict[str, EntryPoint]:
        points = entry_points(group=f"headscope.{self.folder}")
        return {spec.canonical_name(point.name): point for point in points}


def _catalog_class(module: Any, name: str) -> type:
    """Return the class that a catalog file is named after."""
    expected = spec.class_name(name)
    if not isinstance(entry := getattr(module, expected, None), type):
        raise InputError(
            f"The file {module.__file__} must hold a class '{expected}': a catalog file is named after it."
        )
    return entry


lenses = Catalog("lens", "lenses")
edits = Catalog("edit", "edits")
statistics = Catalog("statistic", "statistics")
figures = Catalog("figure", "figures")
readers = Catalog("reader", "readers")
studies = Catalog("study", "studies")
families = Catalog("family", "families")
catalogs = {catalog.folder: catalog for catalog in (lenses, statistics, edits, figures, readers, studies, families)}

"""Find lenses, statistics, probes, methods for importances, edits, figures, readers, studies and families by name."""

import pkgutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module, metadata
from importlib.metadata import EntryPoint, EntryPoints
from inspect import isabstract
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakSet

from headscope.core import spec
from headscope.core.errors import InputError, UnknownName, suggest_name, unknown_name

NO_STUDIES = "Published studies are a package of their own: pip install headscope[studies]."
"""What to do where no study is installed."""


@dataclass(frozen=True)
class Catalog:
    """A folder with one class per file, the entry points of other packages, and the classes defined in this session.

    The file `head_grid.py` holds the class `HeadGrid`, whose name in specs and in the shell is `head_grid`. An entry
    point has the name of its class, too; its group is `headscope.lenses` for the folder `lenses`. A class that a
    notebook or a script defines is found by its name from then on.

    An entry point of the group `headscope.studies` may also name a package of studies, one package each. A folder in
    one of them that has the name of a catalog, such as `readers`, adds to that catalog.
    """

    kind: str  # "lens", which is also the file of its base class in core/
    folder: str  # "lenses"

    def names(self) -> list[str]:
        """Return all names, built in or from other installed packages."""
        return sorted({*self._files(), *self._study_files(), *self._entry_points()})

    def defined(self) -> dict[str, type]:
        """Return the classes of this session that are neither built in nor installed, by name; the newest counts."""
        module = sys.modules.get(f"headscope.core.{self.kind}")  # without its base class, there is no such class
        classes = _subclasses(getattr(module, spec.class_name(self.kind))) if module else []
        own = {spec.entry_name(kind): kind for kind in classes if not is_built_in(kind) and not isabstract(kind)}
        installed = self.names()
        return {name: kind for name, kind in sorted(own.items()) if name not in installed}

    def find(self, name: str) -> type:
        """Return the class of a name."""
        name = spec.canonical_name(name)
        if module := self._files().get(name) or self._study_files().get(name):
            return _catalog_class(import_module(module), name)
        if entry_point := self._entry_points().get(name):
            return self._load(name, entry_point)
        if kind := (defined := self.defined()).get(name):
            return kind
        error = unknown_name(self.kind, name, {*self.names(), *defined}, self.folder)
        if "Did you mean" in str(error):
            raise error
        if self.folder == "studies" and not self.names():
            raise UnknownName(f"{error} {NO_STUDIES}", topic=self.folder)
        raise UnknownName(
            f"{error} A {self.kind} of your own is known once its class is defined; the shell and Ray need it in an "
            f"installed package with the entry point 'headscope.{self.folder}'.",
            topic=self.folder,
        )

    def make(self, what: Any, **parameters: Any) -> Any:
        """Build an entry from a name, a spec or a class; an entry itself is returned unchanged.

        >>> Catalog("lens", "lenses").make("effective:keys=paper").keys
        'paper'
        """
        if isinstance(what, str):
            name, own = spec.parse_spec(what)
            return spec.build_entry(self.find(name), name, {**own, **parameters})
        self._check(what)
        if isinstance(what, type):
            return spec.build_entry(what, spec.entry_name(what), parameters)
        if parameters:
            raise InputError(
                f"{', '.join(parameters)} cannot be set on {what!r}, which is made already. "
                f"Set it there, or give the {self.kind} by name."
            )
        return what

    def class_names(self) -> list[str]:
        """Return the names of the built-in classes, which can be imported from the folder."""
        return sorted(map(spec.class_name, self._files()))

    def find_class(self, name: str) -> type:
        """Return the built-in class that is called `name`, or raise AttributeError; for `__getattr__` of the folder."""
        files = {spec.class_name(file): file for file in self._files()}
        if name not in files:
            hint = suggest_name(name, files) if name[:1].isupper() else ""
            raise AttributeError(f"module 'headscope.{self.folder}' has no attribute '{name}'. {hint}".strip())
        return self.find(files[name])

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the installed classes, by name."""
        return map(self.find, self.names())

    def is_installed(self, entry: Any) -> bool:
        """Whether other processes find the class of this entry by its name, too."""
        name = spec.entry_name(type(entry))
        return name in self.names() and self.find(name) is type(entry)

    def _check(self, what: Any) -> None:
        """Raise InputError for what is no entry, or has the name of another one."""
        kind = what if isinstance(what, type) else type(what)
        if kind in _CHECKED[self.folder]:
            return
        base = getattr(import_module(f"headscope.core.{self.kind}"), spec.class_name(self.kind))
        if not issubclass(kind, base):
            raise InputError(
                f"The {self.kind} must be a name, a spec such as name:parameter=value, or an object of a class derived "
                f"from hs.{base.__name__}, but got {what!r}."
            )
        name = spec.entry_name(kind)
        if name in self.names() and self.find(name) is not kind:
            raise InputError(
                f"The class {kind.__name__} of the module {kind.__module__} has the name of another {self.kind}, "
                f"'{name}', and results are found by it. Rename the class."
            )
        _CHECKED[self.folder].add(kind)

    def _load(self, name: str, entry_point: EntryPoint) -> type:
        """Return the class of an entry point, which has the same name."""
        kind = entry_point.load()
        if not isinstance(kind, type):
            raise InputError(
                f"The entry point '{name}' of the group 'headscope.{self.folder}' must name a class, "
                f"but {entry_point.value} is {kind!r}."
            )
        if spec.entry_name(kind) != name:
            raise InputError(
                f"The entry point '{name}' of the group 'headscope.{self.folder}' must have the name of its class "
                f"{kind.__name__}. Call it '{spec.entry_name(kind)}'."
            )
        return kind

    def _files(self) -> dict[str, str]:
        """Return the modules of the library's own folder, by name; studies have none."""
        package = f"headscope.{self.folder}"
        return _list_modules(package, tuple(import_module(package).__path__)) if self.folder != "studies" else {}

    def _study_files(self) -> dict[str, str]:
        """Return the modules that packages of studies add to this catalog, by name."""
        modules: dict[str, str] = {}
        for point in entry_points("headscope.studies"):
            package = _find_package(point)
            if package is not None:
                modules |= _list_study_modules(package.__name__, tuple(package.__path__), self.folder)
        return modules

    def _entry_points(self) -> dict[str, EntryPoint]:
        points = entry_points(f"headscope.{self.folder}")
        return {spec.canonical_name(point.name): point for point in points if _find_package(point) is None}


def entry_points(group: str) -> EntryPoints:
    """Return the entry points of a group, which are read again where a folder of packages has changed."""
    return _read_entry_points(group, tuple((folder, _modified(folder)) for folder in sys.path))


@lru_cache(maxsize=32)
def _read_entry_points(group: str, folders: tuple[tuple[str, int], ...]) -> EntryPoints:  # noqa: ARG001
    return metadata.entry_points(group=group)


def _modified(folder: str) -> int:
    """Return when something was last added to a folder or removed from it; 0 where there is none."""
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


@cache
def _list_modules(package: str, folders: tuple[str, ...]) -> dict[str, str]:
    """Return the modules in the folders of a package, which are searched once: every view looks up a lens."""
    return {module.name: f"{package}.{module.name}" for module in pkgutil.iter_modules(folders)}


@cache
def _list_study_modules(package: str, folders: tuple[str, ...], catalog: str) -> dict[str, str]:
    """Return the modules that a package of studies adds to a catalog: the studies themselves, or files in theirs."""
    studies = _list_modules(package, folders)
    if catalog == "studies":
        return studies
    modules: dict[str, str] = {}
    for name, study in studies.items():
        modules |= _list_modules(f"{study}.{catalog}", tuple(str(Path(folder, name, catalog)) for folder in folders))
    return modules


def _find_package(point: EntryPoint) -> ModuleType | None:
    """Return the package of studies that an entry point names; None where it names a class."""
    if point.group != "headscope.studies" or point.attr:
        return None
    return import_module(point.module)


def is_built_in(kind: type) -> bool:
    """Whether a class is part of headscope itself."""
    return kind.__module__.partition(".")[0] == "headscope"


def _subclasses(base: type) -> list[type]:
    """Return all classes derived from a class; a class that a cell defined again comes after its older version."""
    direct: list[type] = base.__subclasses__()
    classes = [*direct, *(kind for parent in direct for kind in _subclasses(parent))]
    return sorted(classes, key=lambda kind: getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind)


_CHECKED: "defaultdict[str, WeakSet[type]]" = defaultdict(WeakSet)
"""Classes that `make` accepts, by folder; checking one reads the entry points of all packages."""


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
importance_methods = Catalog("importance", "importance_methods")
probes = Catalog("probe", "probes")
families = Catalog("family", "families")
kinds = Catalog("kind", "kinds")
catalogs = {
    catalog.folder: catalog
    for catalog in (lenses, statistics, probes, importance_methods, edits, figures, kinds, readers, studies, families)
}


class HasCard:
    """Mixin: a notebook shows the object as an HTML card, which `headscope.display.cards` makes of it."""

    def _repr_html_(self) -> str:
        card: str = import_module("headscope.display.cards").make_card(self)  # a layer above, so found by name
        return card

"""What is measured, and how: everything but the data that decides the numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from headscope.core.catalog import lenses as lens_catalog
from headscope.core.catalog import statistics as statistic_catalog
from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.spec import file_name, to_spec
from headscope.core.statistic import Statistic
from headscope.maps.per_example import PerExample
from headscope.measuring.options import Units


@dataclass(frozen=True)
class MeasureSettings:
    """Lenses, statistics and the part of the model that they look at."""

    lenses: tuple[Lens, ...]
    statistics: tuple[Statistic, ...]
    site: str | None = None
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    max_length: int | None = None
    pad_to: int | None = None
    units: Units = "tokens"
    rows: bool = False

    @property
    def seen(self) -> tuple[Lens, ...]:
        """Every lens that is needed, those that are measured first."""
        also = [other for each in self.statistics for lens in self.lenses for other in each.lenses(lens)]
        return tuple({to_spec(lens): lens for lens in (*self.lenses, *also)}.values())

    @property
    def keep(self) -> frozenset[str]:
        """What has to be captured for these lenses."""
        return frozenset().union(*(lens.needs for lens in self.seen))

    @property
    def streams(self) -> bool:
        """Whether every layer can be measured and forgotten before the next one."""
        lenses = all(each.scope == "layer" for each in self.seen)
        return lenses and all(isinstance(each, PerExample) and each.scope == "layer" for each in self.statistics)

    def needs(self, what: str) -> bool:
        """Whether any of the statistics needs this."""
        return any(what in each.needs for each in self.statistics)

    def described(self) -> dict[str, Any]:
        """As plain data: what two measurements must have in common to add up."""
        return {
            "lenses": [to_spec(each) for each in self.lenses],
            "statistics": [to_spec(each) for each in self.statistics],
            "site": self.site,
            "layers": self.layers,
            "heads": self.heads,
            "max_length": self.max_length,
            "pad_to": self.pad_to,
            "units": self.units,
            "rows": self.rows,
        }


def settings_of(lens: Any, statistics: Any, **rest: Any) -> MeasureSettings:
    """Settings from what a user writes: names, specs, entries, or lists of them."""
    lenses = tuple(map(lens_catalog.make, _listed(lens)))
    chosen = tuple(map(statistic_catalog.make, _listed(statistics)))
    if not lenses:
        raise InputError(f"No lens was given. Name at least one: {', '.join(lens_catalog.names())}.")
    if not chosen:
        raise InputError(f"No statistic was given. Name at least one: {', '.join(statistic_catalog.names())}.")
    for each in chosen:
        _check_known(each)
    for what, entries in (("lens", lenses), ("statistic", chosen)):
        names = [to_spec(each) if what == "lens" else file_name(type(each)) for each in entries]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(
                f"The {what} '{twice[0]}' was given twice, and its results would have the same name. Measure its "
                "variants one after the other."
            )
    for name in ("layers", "heads"):
        given = rest.get(name)
        rest[name] = None if given is None else tuple([given] if isinstance(given, int) else given)
    if rest.get("units", "tokens") not in get_args(Units):
        raise InputError(f"units={rest['units']!r} is none of {', '.join(get_args(Units))}.")
    return MeasureSettings(lenses, chosen, **rest)


def _check_known(statistic: Statistic) -> None:
    """Results and saved states find a statistic again by its name: one that has none would be lost at the end."""
    name = file_name(type(statistic))
    if name not in statistic_catalog.names() or statistic_catalog.find(name) is not type(statistic):
        raise InputError(
            f"{type(statistic).__name__} is no statistic of the catalog, so that its states could not be read again. "
            "Put it into a package that offers it under the entry point 'headscope.statistics'."
        )


def _listed(what: Any) -> Sequence[Any]:
    return list(what) if isinstance(what, list | tuple) else [what]

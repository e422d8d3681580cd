"""The complete, checked settings of a measurement."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.core.catalog import is_built_in
from headscope.core.catalog import lenses as lens_catalog
from headscope.core.catalog import statistics as statistic_catalog
from headscope.core.checks import check_seed
from headscope.core.errors import InputError
from headscope.core.lens import Lens
from headscope.core.spec import entry_name, to_spec
from headscope.core.statistic import Statistic
from headscope.core.target import parse_target
from headscope.maps.per_example import PerExample
from headscope.maps.row_wise import RowWise
from headscope.measuring.options import MeasuredInputs
from headscope.results.hashes import fingerprint_code, hash_file

UNITS = ("tokens", "words", "words_first")
COMPARED = ("site", "layers", "heads", "max_length", "pad_to", "units", "rows")
"""Options that must be equal in measurements that are added up."""


@dataclass(frozen=True)
class MeasureSettings(MeasuredInputs):
    """Lenses, statistics and all options of a measurement."""

    lenses: tuple[Lens, ...]
    statistics: tuple[Statistic, ...]

    @property
    def all_lenses(self) -> tuple[Lens, ...]:
        """The measured lenses, then those that statistics need in addition."""
        extra = [other for statistic in self.statistics for lens in self.lenses for other in statistic.lenses(lens)]
        return tuple({to_spec(lens): lens for lens in (*self.lenses, *extra)}.values())

    @property
    def keep(self) -> frozenset[str]:
        """What has to be captured for the lenses."""
        return frozenset().union(*(lens.needs for lens in self.all_lenses))

    @property
    def streams(self) -> bool:
        """Whether layers can be measured one by one, while the model runs."""
        by_layer = all(isinstance(entry, PerExample) and entry.scope == "layer" for entry in self.statistics)
        return by_layer and all(lens.scope == "layer" for lens in self.all_lenses)

    def why_whole(self) -> str | None:
        """Return what needs whole maps, by name, or None if all of it can be computed from blocks of queries."""
        if self.units != "tokens":
            return f"units='{self.units}'"
        for statistic in self.statistics:
            if not isinstance(statistic, RowWise):
                return f"the statistic '{to_spec(statistic)}'"
        return next((f"the lens '{to_spec(lens)}'" for lens in self.all_lenses if not lens.row_wise), None)

    @property
    def copies(self) -> int:
        """How many tensors of the size of a layer's maps are in memory together."""
        return 2 + len(self.all_lenses) + (4 if self.target else 0)  # a backward pass keeps more

    @property
    def uses_words(self) -> bool:
        """Whether examples must be tagged, which also says where words begin and end."""
        return self.units != "tokens" or any("tags" in statistic.needs for statistic in self.statistics)

    @property
    def files(self) -> dict[str, Path]:
        """Files that decide the numbers of the statistics, by name."""
        return {name: path for statistic in self.statistics for name, path in statistic.files().items()}

    def _own_code(self) -> dict[str, str]:
        """Return a hash of the code of each lens and statistic that is not built in."""
        classes = [type(entry) for entry in (*self.all_lenses, *self.statistics)]
        return {
            entry_name(entry_class): fingerprint_code(entry_class)
            for entry_class in classes
            if not is_built_in(entry_class)
        }

    def to_facts(self) -> dict[str, Any]:
        """Return as plain data what two measurements must have in common to add up."""
        return {
            "lenses": list(map(to_spec, self.lenses)),
            "statistics": list(map(to_spec, self.statistics)),
            **{name: getattr(self, name) for name in COMPARED},
            **({"target": self.target} if self.target is not None else {}),
            **({"pad_positions": self.pad_positions} if self.pad_positions != "model" else {}),
            **({"code": code} if (code := self._own_code()) else {}),
            **{name: hash_file(path) for name, path in self.files.items() if path.is_file()},
        }


def make_measure_settings(lens: Any, statistics: Any, **options: Any) -> MeasureSettings:
    """Return settings from what a user writes: names, specs, entries, or lists of them.

    `options` are those of MeasuredInputs.
    """
    lenses = tuple(map(lens_catalog.make, _as_list(lens)))
    statistic_objects = tuple(map(statistic_catalog.make, _as_list(statistics)))
    if not lenses:
        raise InputError(f"No lens was given. Name at least one: {', '.join(lens_catalog.names())}.")
    if not statistic_objects:
        raise InputError(f"No statistic was given. Name at least one: {', '.join(statistic_catalog.names())}.")
    _check_unique("lens", list(map(to_spec, lenses)))
    _check_unique("statistic", [entry_name(type(statistic)) for statistic in statistic_objects])
    for name in ("layers", "heads"):
        indices = options.get(name)
        options[name] = None if indices is None else tuple([indices] if isinstance(indices, int) else indices)
    if options.get("units", "tokens") not in UNITS:
        raise InputError(f"units={options['units']!r} is none of {', '.join(UNITS)}.")
    if options.get("target") is not None:
        options["target"] = _check_target(options["target"])
    check_seed(options.get("seed", 0))
    settings = MeasureSettings(lenses, statistic_objects, **options)
    if any(lens.needs_target for lens in settings.all_lenses) != (settings.target is not None):
        raise InputError(_explain_target(settings))
    return settings


def _check_target(target: Any) -> str:
    if not isinstance(target, str):
        raise InputError(
            f"The target of a measurement is stamped into its result, so it must be a text such as 'predicted', but "
            f"got {target!r}."
        )
    return parse_target(target).spec


def _explain_target(settings: MeasureSettings) -> str:
    if settings.target is not None:
        return (
            f"target={settings.target!r} was given, but no lens needs a gradient. Add lens='gradient', or leave it out."
        )
    lens = next(to_spec(lens) for lens in settings.all_lenses if lens.needs_target)
    return (
        f"The lens '{lens}' needs the gradient of a prediction. Say which: target='predicted', in the shell --target."
    )


def _as_list(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _check_unique(what: str, names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(
            f"The {what} '{repeated[0]}' was given twice, and its results would have the same name. Measure its "
            "variants one after the other."
        )

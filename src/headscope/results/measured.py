"""Which numbers of a measured Dataset are asked for: a variable, its lenses, and places along further axes."""

from collections.abc import Sequence

import xarray as xr

from headscope.core.errors import InputError, unknown_name
from headscope.core.prose import join_words
from headscope.plotting import selection
from headscope.uncertainty.intervals import student_margin

COMPANIONS = ("sd", "n", "low", "high", "rows", "p", "p_adjusted", "significant")
"""What may stand beside a variable x, as x_sd, x_n and so on."""

AXES = ("lens", "layer", "head")
"""What every measured variable has; all others are further axes."""


def names(data: xr.Dataset) -> list[str]:
    """Every variable with a number for each head, without what stands beside it."""
    held = [str(name) for name in data.data_vars]
    beside = {f"{name}_{each}" for name in held for each in COMPANIONS}
    return [name for name in held if name not in beside and _per_head(data[name])]


def part(
    data: xr.Dataset, variable: str | None = None, *, lens: Sequence[str] | str | None = None, at: Sequence[str] = ()
) -> xr.Dataset:
    """One variable as `value`, with those of `sd n low high rows p significant …` that it has.

    Its dims are lens, layer, head, and the further axes that `at` leaves open, such as `at=("role=sep",)`; an axis of
    one label is closed by itself. The attribute `variable` has its name, and `at` what was chosen.
    """
    selection.require_variables(data)
    whole = opened(data)
    name = _known(whole, variable)
    held = {each: whole[f"{name}_{each}"] for each in COMPANIONS if f"{name}_{each}" in whole}
    chosen = _of_lenses(xr.Dataset({"value": whole[name], **held}), lens)
    said = []
    for each in at:
        axis, place = _wanted(each, chosen, name)
        chosen = chosen.isel({axis: [place]} if axis in AXES else {axis: place})
        said.append(f"{axis} {chosen[axis].values.ravel()[0]}")
    alone = {axis: 0 for axis in further(chosen) if chosen.sizes[axis] == 1}
    return chosen.isel(alone).assign_attrs(variable=name, at=", ".join(said), label=label(whole, name))


def further(chosen: xr.Dataset) -> list[str]:
    """The axes beyond lens, layer and head."""
    return [str(dim) for dim in chosen["value"].dims if dim not in AXES]


def closed(figure: str, chosen: xr.Dataset, *shown: str, hint: str = "Choose with") -> None:
    """Refuse a part with axes that a figure does not show."""
    if left := [axis for axis in further(chosen) if axis not in shown]:
        axes = join_words(f"{axis} ({join_words(chosen[axis].values, limit=8)})" for axis in left)
        places = "+".join(f"{axis}={chosen[axis].values[0]!s}" for axis in left)
        raise InputError(
            f"The figure '{figure}' cannot show every axis of '{chosen.attrs['variable']}', which also has {axes}. "
            f"{hint} at='{places}'."
        )


def mean_over(chosen: xr.Dataset, dims: Sequence[str]) -> xr.Dataset:
    """The mean over some dims, with `low` and `high` where they are known.

    With rows the mean is taken within each example, so the interval is that of the mean. Without them the ends are
    averaged: the interval of a mean is never wider than the mean of the intervals.
    """
    over = [dim for dim in dims if dim in chosen["value"].dims]
    if not over:
        return chosen
    if "rows" in chosen:
        return of_rows(chosen["rows"].mean(over)).assign_attrs(chosen.attrs)
    kept = [name for name in ("value", "low", "high") if name in chosen]
    found = chosen[kept].mean(over)
    return found.assign(n=chosen["n"].min(over)) if "n" in chosen else found


def of_rows(rows: xr.DataArray) -> xr.Dataset:
    """The mean over examples with its spread, count and Student's interval."""
    n = rows.count("example")
    sd = rows.std("example", ddof=1).where(n > 1)
    margin = xr.apply_ufunc(student_margin, sd, n)
    mean = rows.mean("example")
    return xr.Dataset({"value": mean, "sd": sd, "n": n, "low": mean - margin, "high": mean + margin, "rows": rows})


def counted(chosen: xr.Dataset) -> str:
    """Over how many examples the numbers are, in short."""
    if "n" not in chosen:
        return ""
    least, most = int(chosen["n"].min()), int(chosen["n"].max())
    return f"n = {most:,}" if least == most else f"n = {least:,} to {most:,}"


def name(chosen: xr.Dataset, by: str = "") -> str:
    """What a part is of, for a title: the lens where there is only one, the variable, and what `at` chose."""
    lenses = [str(each) for each in chosen["lens"].values]
    words = [lenses[0] if len(lenses) == 1 else "", f"{chosen.attrs['variable'].replace('_', ' ')} {by}".strip()]
    return " · ".join(each for each in (*words, chosen.attrs["at"]) if each)


def averaged(chosen: xr.Dataset, over: Sequence[str], marks: str) -> str:
    """What a mean is over, and what its `marks` say, in two sentences."""
    parts = [f"{chosen.sizes[dim]} {dim}s" for dim in over if chosen.sizes.get(dim, 1) > 1]
    mean = f"Mean over {join_words(parts)}. " if parts else ""
    count = f" over examples ({counted(chosen)})" if "n" in chosen else ""
    if "low" not in chosen:
        return f"{mean}{counted(chosen)} examples." if "n" in chosen else mean.strip()
    bound = "" if "rows" in chosen or not parts else ", at most this wide"
    return f"{mean}{marks}: 95 % interval{count}{bound}."


def label(data: xr.Dataset, name: str) -> str:
    """What a variable is, with its unit, as an axis says it."""
    held, base = data[name].attrs, name.removesuffix("_absolute")
    words = str(held.get("long_name", QUANTITIES.get(base, base.replace("_", " "))))
    words = f"absolute {words}" if base != name and "long_name" not in held else words
    unit = held.get("units", UNITS.get(base))
    words = f"{words} ({unit})" if unit else words
    return f"difference in {words}" if f"{name}_p" in data else words


def opened(data: xr.Dataset) -> xr.Dataset:
    """The same Dataset with lens, site, layer and head as dims, also where one label of them was selected."""
    single = [name for name in ("lens", "site", "layer", "head") if name in data.coords and name not in data.dims]
    whole = data.expand_dims(single) if single else data
    return whole if "lens" in whole.dims else whole.expand_dims(lens=[""])


def _per_head(table: xr.DataArray) -> bool:
    known = {*table.dims, *table.coords}
    return {"layer", "head"} <= known and not {"query", "key", "example"} & set(table.dims)


def _known(data: xr.Dataset, variable: str | None) -> str:
    """The variable asked for, or the first."""
    known = names(data)
    if not known:
        raise InputError(
            f"This figure draws what was measured for every head, but the data has {selection.quote_variables(data)}. "
            "Measure first: hs.measure(model, texts, statistics=['entropy'])."
        )
    if variable is not None and variable not in known:
        raise unknown_name("measured variable in this data", variable, known)
    return variable if variable is not None else known[0]


def _of_lenses(data: xr.Dataset, lens: Sequence[str] | str | None) -> xr.Dataset:
    """Only the lenses asked for, in that order."""
    known = [str(name) for name in data["lens"].values]
    wanted = known if lens is None else [lens] if isinstance(lens, str) else list(lens)
    for each in wanted:
        if each not in known:
            raise unknown_name("lens in this data", each, known)
    return data.isel(lens=[known.index(each) for each in wanted])


def _wanted(choice: str, data: xr.Dataset, name: str) -> tuple[str, int]:
    """The axis and the place that `role=sep` means."""
    axis, equals, wanted = (each.strip() for each in choice.partition("="))
    axes = [str(dim) for dim in data["value"].dims]
    if not equals:
        raise InputError(f"Cannot read at={choice!r}. Write axis=label, such as {axes[-1]}={_first(data, axes[-1])}.")
    if axis not in axes:
        raise unknown_name(f"axis of '{name}'", axis, axes)
    labels = [str(each) for each in data[axis].values]
    if wanted not in labels:
        raise unknown_name(f"{axis} in this data", wanted, labels)
    return axis, labels.index(wanted)


def _first(data: xr.Dataset, axis: str) -> str:
    return str(data[axis].values[0])


QUANTITIES = {
    "peak": "largest weight of a row",
    "distance": "attention distance",
    "offsets": "attention weight",
    "special_tokens": "attention weight",
    "token_types": "attention weight",
    "lens_agreement": "agreement of lenses",
    "lens_agreement_rank": "rank agreement of lenses",
    "similarity": "similarity of maps",
    "head_distance": "distance of heads",
    "patterns": "share of examples",
    "patterns_share": "share of maps",
    "patterns_layer_share": "share of maps",
}
"""What the built-in statistics measure, where their names do not say it; a variable's own `long_name` goes first."""

UNITS = {"entropy": "nats", "distance": "tokens", "head_distance": "nats"}
"""Their units, for results that do not carry them; a variable's own `units` go first."""

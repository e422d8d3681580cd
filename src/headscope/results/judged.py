"""What a result of `hs.faithfulness` holds: its quantities, their effects, and how they are called."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError, unknown_name

QUANTITIES = {
    "rank_correlation": True,
    "top_share": True,
    "mass_without_effect": False,
    "deletion_area": False,
    "insertion_area": True,
    "comprehensiveness": True,
    "sufficiency": False,
}
"""Quantities of lenses, and whether more is better."""

CURVES = {
    "rank_correlation_layer": "layer",
    "top_share_layer": "layer",
    "mass_without_effect_layer": "layer",
    "deletion": "share",
    "insertion": "share",
}
"""Quantities along an axis."""

CHANCE = {"top_share": "top_share_chance", "mass_without_effect": "edges_without_effect"}
"""What a quantity is without any lens: keys in random order, every edge alike."""


def list_quantities(data: xr.Dataset) -> list[str]:
    """Return the quantities of lenses that a result holds."""
    return [name for name in QUANTITIES if name in data]


def find_quantity(data: xr.Dataset, asked: str | None) -> str:
    """Return the quantity that is asked for, or the first one."""
    return _find(data, asked, list_quantities(data))


def find_curve(data: xr.Dataset, asked: str | None) -> tuple[str, str]:
    """Return the quantity along an axis that is asked for, or the first one, and the axis."""
    known = [name for name in CURVES if name in data]
    if asked is not None and f"{asked}_layer" in known:
        asked = f"{asked}_layer"
    name = _find(data, asked, known)
    if not data.sizes[CURVES[name]]:
        raise InputError(f"There is nothing to draw: the data has no {CURVES[name]}.")
    return name, CURVES[name]


def _find(data: xr.Dataset, asked: str | None, known: list[str]) -> str:
    if not known or "lens" not in data.dims:
        raise InputError("This is no result of judging lenses. Compute one: hs.faithfulness(model, data).")
    if asked is not None and asked not in known:
        raise unknown_name("quantity of this result", asked, known)
    if not data.sizes["lens"]:
        raise InputError("There is nothing to draw: the data has no lens.")
    return known[0] if asked is None else asked


def list_effects(data: xr.Dataset, name: str, asked: str | None = None) -> list[str | None]:
    """Return the effects of a quantity that are shown, by default all that are known but the signed score.

    The change of the block's output is left out where there is another: it is the norm lens by definition. A quantity
    without effects has None.
    """
    if "effect" not in data[name].dims:
        return [None]
    effects = [str(effect) for effect in data["effect"].values]
    known = [effect for effect in effects if bool(np.isfinite(data[name].sel(effect=effect)).any())]
    if asked is not None:
        if asked not in known:
            raise unknown_name("effect of this result", asked, known)
        return [asked]
    shown = [effect for effect in known if effect not in ("output", "score_signed")]
    if not (shown or known):
        raise InputError(f"There is nothing to draw: '{name}' has no value for any effect.")
    return [*(shown or known)]


def sort_lenses(data: xr.Dataset, name: str, effect: str | None) -> xr.Dataset:
    """Return the lenses by a quantity, the best first."""
    values: Any = data[name] if effect is None else data[name].sel(effect=effect)
    sign = -1 if QUANTITIES[name] else 1
    order = np.argsort(np.where(np.isnan(values), np.inf, sign * values.values), kind="stable")
    return data.isel(lens=order)


def describe_quantity(data: xr.Dataset, name: str) -> str:
    """Return what a quantity is, in words."""
    stem = name.removesuffix("_layer")
    label = str(data[stem].attrs.get("long_name", stem.replace("_", " "))) if stem in data else stem.replace("_", " ")
    return label[:1].upper() + label[1:]

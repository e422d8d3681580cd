"""What heads look at on the surface: neighbours, special tokens, punctuation; how broad each head is."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import ENDS, name_ends, with_interval
from headscope.experiments.summary import average, summarise, summarise_drawn
from headscope.uncertainty.bootstrap import percentile_interval
from headscope.uncertainty.intervals import Array, mean_interval

SMOOTHING = 0.0001
"""What Clark et al. (2019) mix into each row before its entropy."""

TYPES = ("cls", "sep", "mask", "period_comma", "other_text", "punctuation", "word")
WHOLE = ("cls", "sep", "mask", "period_comma", "other_text")
"""Types that together are all tokens."""

TOKEN_TYPES = f"token_types:source=all,reduce=sum,subtokens=all,counts=true,types={'+'.join(TYPES)}"
ENTROPY = f"entropy:smoothing={SMOOTHING}"
STATISTICS = (TOKEN_TYPES, "offsets:reach=1", "special_tokens:roles=cls+sep", ENTROPY, "peak")
CLARK = (
    "token_types:source=clark,reduce=sum,subtokens=all,types=period_comma+punctuation",
    "offsets:reach=1,rows=clark",
    "special_tokens:roles=cls+sep,source=clark",
    f"{ENTROPY},rows=cls",
)
"""As her code counts, and the entropy of the row of [CLS]."""

NEIGHBOURS = {"previous": -1, "itself": 0, "next": 1}
TARGETS = (*NEIGHBOURS, "cls", "sep", "period_comma", "punctuation")
SPECIAL = ("cls", "sep", "period_comma")
"""What the paper calls special tokens."""

HALF, BROAD = 0.5, 0.1
"""A head looks at something with more than half of its weight; it is broad with at most a tenth on any token."""

MIDDLE = (6 / 12, 10 / 12)
"""L5 to L9 of 12 layers, as parts of the depth, counted from 1."""


def name_head(layer: int, head: int) -> str:
    """Return the name of a head, such as L3H7."""
    return f"L{layer}H{head}"


def compute_shares(rows: xr.Dataset) -> xr.DataArray:
    """Return the part of a head's weight on each target, `example lens layer head target`: Σ|w| over Σ|w| of a row.

    Of raw attention it is the weight itself. A text without a token of a type gives it nothing.
    """
    sums = rows["token_types_absolute_rows"].fillna(0.0)
    total = sums.sel(type=list(WHOLE)).sum("type")
    parts = [rows["offsets_absolute_rows"].sel(offset=offset, drop=True) for offset in NEIGHBOURS.values()]
    parts += [sums.sel(type=name, drop=True) for name in TARGETS[len(NEIGHBOURS) :]]
    shares = xr.concat([part / total for part in parts], "target", coords="minimal", compat="override")
    return shares.assign_coords(target=list(TARGETS)).transpose("example", "lens", "layer", "head", "target")


def summarise_surface(rows: xr.Dataset, clark: xr.Dataset) -> xr.Dataset:
    """Return the share of every head on each target, its entropy and peak, by layer too, and what is claimed of them.

    `rows` are the values of STATISTICS, `clark` those of CLARK, for each example.
    """
    shares, entropy, peak = compute_shares(rows), rows["entropy_rows"], rows["peak_rows"]
    from_cls, by_layer = clark["entropy_rows"], average(shares, "head")
    sep = rows["special_tokens_absolute_rows"].sel(role="sep", source="itself", drop=True)
    parts = [
        xr.Dataset(
            {
                "share": average(shares, "example"),
                "entropy": average(entropy, "example"),
                "cls_entropy": average(from_cls, "example"),
                "peak": average(peak, "example"),
            }
        ),
        summarise("share_layer", by_layer),
        summarise("entropy_layer", average(entropy, "head")),
        summarise("cls_entropy_layer", average(from_cls, "head")),
        summarise("sep_to_sep_layer", average(sep, "head")),
        *_summarise_depth(by_layer, average(sep, "head")),
        *_summarise_broadness(average(entropy, "head"), average(from_cls, "head")),
        choose_head("most_previous", shares.sel(target="previous", drop=True)),
        choose_head("most_next", shares.sel(target="next", drop=True)),
        choose_head("least_peak", -peak.isel(layer=slice(None, (peak.sizes["layer"] + 1) // 2)), sign=-1),
    ]
    merged = xr.merge([part.drop_attrs() for part in parts], compat="override", join="outer")
    tokens = rows["token_types_count_rows"].sel(lens="raw", type=list(WHOLE)).fillna(0.0).sum("type")
    uniform = float(np.log(tokens).mean())
    return merged.merge(_count_as_clark(clark)).assign(n=shares.sizes["example"], uniform_entropy=uniform)


def _summarise_depth(by_layer: xr.DataArray, sep: xr.DataArray) -> list[xr.Dataset]:
    """Return how far the share of a target in some layers is above that in others, and the weight in the middle."""
    layers = by_layer.sizes["layer"]
    early, middle, late = (part.tolist() for part in np.array_split(np.arange(layers), 3))
    depth = (np.arange(layers) + 1) / layers
    inner = np.flatnonzero((depth >= MIDDLE[0] - 1e-9) & (depth <= MIDDLE[1] + 1e-9)).tolist()
    position = by_layer.sel(target=["previous", "next"]).sum("target")
    half = layers // 2

    def lead(first: list[int], *others: list[int]) -> Callable[[Array], Array]:
        def leads(means: Array) -> Array:
            if not all((first, *others)):  # too few layers
                return np.full(means.shape[:-1], np.nan)
            return np.asarray(means[..., first].mean(-1) - np.max([means[..., part].mean(-1) for part in others], 0))

        return leads

    def select(target: str) -> xr.DataArray:
        return by_layer.sel(target=target, drop=True)

    return [
        summarise_drawn("position_lead", position, lead(list(range(half)), list(range(half, layers)))),
        summarise_drawn("cls_lead", select("cls"), lead(early, middle, late)),
        summarise_drawn("sep_lead", select("sep"), lead(middle, early, late)),
        summarise_drawn("period_comma_lead", select("period_comma"), lead(late, early, middle)),
        summarise("sep_middle", average(select("sep").isel(layer=inner), "layer")),
        summarise("sep_to_sep", average(sep.isel(layer=inner), "layer")),
    ]


def _summarise_broadness(entropy: xr.DataArray, from_cls: xr.DataArray) -> list[xr.Dataset]:
    """Return the entropy of lower layers above that of upper ones, and that of the row of [CLS] above that of all."""
    half, apart = entropy.sizes["layer"] // 2, from_cls - entropy
    lower, upper = (average(entropy.isel(layer=part), "layer") for part in (slice(None, half), slice(half, None)))
    return [
        summarise("entropy_lead", lower - upper),
        summarise("cls_entropy_gap", average(apart.isel(layer=slice(None, -1)), "layer")),
        summarise("cls_entropy_last", apart.isel(layer=-1, drop=True)),
    ]


def choose_head(name: str, values: xr.DataArray, sign: int = 1) -> xr.Dataset:
    """Choose the head with the largest mean on every other example, and return its mean on the others.

    So the number of heads that were tried does not bias it. `<name>_head` is its name; values come back times `sign`.
    It is NaN where no head has a value, such as on the next token in a causal model.
    """
    table = values.transpose("example", "lens", "layer", "head")
    chosen, reported = average(table[::2], "example"), table[1::2]
    ends: list[Sequence[Any]] = []
    names = []
    for lens in table["lens"].values:
        means = chosen.sel(lens=lens).values
        if np.isnan(means).all():
            ends.append((np.nan, np.nan, np.nan))
            names.append("no head")
            continue
        layer, head = np.unravel_index(int(np.nanargmax(means)), means.shape)
        ends.append(mean_interval(sign * reported.sel(lens=lens).values[:, layer, head]))
        names.append(name_head(int(table["layer"].values[layer]), int(table["head"].values[head])))
    variables = with_interval(name, ("lens",), np.array(ends, float).T)
    return xr.Dataset({**variables, f"{name}_head": ("lens", np.array(names))}, {"lens": table["lens"].values})


def _count_as_clark(clark: xr.Dataset) -> xr.Dataset:
    """Return the weights of raw attention as the published code counts them, `layer head target`."""
    raw = clark.sel(lens="raw", drop=True)
    parts = [raw["offsets_rows"].sel(offset=offset, drop=True) for offset in NEIGHBOURS.values()]
    parts += [raw["special_tokens_rows"].sel(role=role, source="clark", drop=True) for role in ("cls", "sep")]
    parts += [raw["token_types_rows"].sel(type=name, drop=True) for name in TARGETS[-2:]]
    table = xr.concat(parts, "target", coords="minimal", compat="override").assign_coords(target=list(TARGETS))
    return xr.Dataset({"clark": average(table, "example").transpose("layer", "head", "target")})


def add_claimed(numbers: xr.Dataset, clusters: xr.Dataset) -> xr.Dataset:
    """Return the numbers with what is claimed of special tokens, of the heads of one layer, and of those from [CLS].

    `special_share` is the weight on `SPECIAL` together, mean over layers; the ends of its interval are added up, which
    makes it too wide rather than too narrow. `layer_effect` is how much further apart heads of different layers are
    than those of one layer, as a part of the latter, and `cls_alike` the distance of heads in the row of [CLS] over
    that in all rows; their intervals are of a bootstrap of the heads of each layer.
    """
    raw = clusters.sel(lens="raw")
    ends = [numbers[f"share_layer{end}"].sel(target=list(SPECIAL)).sum("target").mean("layer") for end in ENDS]
    added = numbers.assign(name_ends("special_share", ends)).assign(layer_p=float(raw["p"]))
    distance = _to_table(raw["head_distance"])
    layer = np.repeat(np.arange(float(raw.sizes["layer"])), raw.sizes["head"])
    added = added.assign(name_ends("layer_effect", bootstrap_heads(partial(compare_layers, distance, layer), layer)))
    if "cls_distance" not in clusters:
        return added
    from_cls = _to_table(clusters["cls_distance"])
    return added.assign(name_ends("cls_alike", bootstrap_heads(partial(compare_distances, from_cls, distance), layer)))


def compare_layers(distance: Array, layer: Array, weight: Array) -> float:
    """Return the mean distance of heads of different layers over that of one layer, minus 1; 0 where all are 0."""
    within = mean_distance(distance, weight, np.equal.outer(layer, layer))
    between = mean_distance(distance, weight, np.not_equal.outer(layer, layer))
    return between / within - 1 if within else 0.0 if not between else np.inf


def compare_distances(first: Array, second: Array, weight: Array) -> float:
    """Return the mean distance of heads in one table over that in another."""
    whole = np.ones_like(first, bool)
    below = mean_distance(second, weight, whole)
    return mean_distance(first, weight, whole) / below if below else np.nan


def mean_distance(distance: Array, weight: Array, pairs: Any) -> float:
    """Return the mean distance over pairs of two heads, each as often as its weight; NaN without any."""
    counted = np.outer(weight, weight) * (pairs & ~np.eye(len(weight), dtype=bool))
    return float((counted * distance).sum() / counted.sum()) if counted.any() else np.nan


def bootstrap_heads(
    function: Callable[[Array], float], layer: Array, *, draws: int = 1000, seed: int = 0
) -> tuple[float, float, float]:
    """Return a function of how often each head counts, with a 95 % interval over draws of the heads of each layer."""
    random, count = np.random.default_rng(seed), int((layer == 0).sum())
    layers = len(layer) // count
    drawn = random.multinomial(count, np.full(count, 1 / count), size=(draws, layers)).reshape(draws, -1)
    low, high = percentile_interval(np.array([function(weight.astype(float)) for weight in drawn]), ignore_nan=True)
    return function(np.ones(len(layer))), float(low), float(high)


def _to_table(distance: xr.DataArray) -> Array:
    """Return the distances of all heads as a square table."""
    values = distance.transpose("layer", "head", "other_layer", "other_head").values
    return np.asarray(values, float).reshape(values.shape[0] * values.shape[1], -1)


def list_heads(values: xr.DataArray, *, above: float | None = None, at_most: float | None = None) -> list[str]:
    """Return the names of the heads whose value, `layer head`, is above a number, or at most one; largest first."""
    table = values.transpose("layer", "head")
    flat = [(float(cell), name_head(int(cell["layer"]), int(cell["head"]))) for row in table for cell in row]
    chosen = [
        (value, name)
        for value, name in flat
        if (above is not None and value > above) or (at_most is not None and value <= at_most)
    ]
    return [name for _, name in sorted(chosen, key=lambda pair: -pair[0])]


def describe_heads(names: Sequence[str], limit: int = 12) -> str:
    """Return how many heads, and which: 3 (L1H2, L1H3, L2H0)."""
    if not names:
        return "none"
    more = f", and {len(names) - limit} more" if len(names) > limit else ""
    return f"{len(names)} ({', '.join(names[:limit])}{more})"

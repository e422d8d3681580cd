"""From the values of every example and head to the numbers of the study's tables and figures."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from headscope.patterns import shares
from headscope.uncertainty.bootstrap import bootstrap_means, percentile_interval
from headscope.uncertainty.intervals import Array, mean_interval

ROLES = ("base", "tuned")
SIZES = ("signed", "absolute")
TOKENS = ("cls", "sep")
LAST = 2
"""The layers that are said to change most: so many of the last."""

SAME = 1e-3
"""Effective attention is attention if they differ by no more than this share of its size."""

TOP = 2
"""[SEP] is said to be among so many types that are attended most."""

Chosen = np.ndarray[Any, np.dtype[np.bool_]]
Lengths = Mapping[str, Chosen]
"""For every class of lengths, which examples are of it."""


def length_classes(tokens: np.ndarray[Any, np.dtype[np.int64]], value_size: int, longest: int) -> Lengths:
    """All inputs; those of no more tokens than value dimensions, and the others; and four classes by length."""
    edges = np.linspace(0, longest, 5).astype(int)
    bins = {f"{low + 1}–{high}": (tokens > low) & (tokens <= high) for low, high in pairwise(edges)}
    return {"all": tokens > 0, "at most d": tokens <= value_size, "more than d": tokens > value_size, **bins}


def numbers_of_role(rows: xr.Dataset, lengths: Lengths, classifier: str) -> xr.Dataset:
    """Everything about one model: shares of patterns, weights on tokens and types, what is the same."""
    parts = [
        xr.merge(
            [_patterns(rows, chosen, classifier), _weights(rows, chosen), _types(rows, chosen), _same(rows, chosen)]
        )
        for chosen in lengths.values()
    ]
    found = xr.concat(parts, "length").assign_coords(length=list(lengths))
    return found.merge(_by_head(rows))


def similarity(rows: xr.Dataset) -> xr.Dataset:
    """How alike maps are before and after tuning, by layer and head; and whether the last layers change most.

    `last_layers_change_most` is the share of draws of examples in which the least similar layers are the last.
    """
    table = rows["similarity_rows"].transpose("example", "lens", "layer", "head").values
    layers = np.nanmean(table, axis=-1)  # example lens layer
    drawn = bootstrap_means(layers)
    many = layers.shape[-1]
    least = np.sort(np.argsort(drawn, axis=-1)[..., :LAST], axis=-1)
    last = np.arange(max(0, many - LAST), many)
    known = np.isfinite(drawn).all(-1)
    agrees = (least == last).all(-1) & known
    mean, low, high = mean_interval(layers)
    return xr.Dataset(
        {
            "similarity": (("lens", "layer", "head"), np.nanmean(table, axis=0)),
            "similarity_layer": (("lens", "layer"), mean),
            "similarity_layer_low": (("lens", "layer"), low),
            "similarity_layer_high": (("lens", "layer"), high),
            "last_layers_change_most": ("lens", agrees.mean(0) if many > LAST else np.full(len(agrees[0]), np.nan)),
        },
        coords={name: rows[name].values for name in ("lens", "layer", "head")},
    )


def agreement(rows: xr.Dataset) -> xr.Dataset:
    """The agreement with norms over all heads, by cosine and by rank, and the rank of types for every lens."""
    found: dict[str, Any] = {}
    for name, variable in (("agreement", "lens_agreement_rows"), ("agreement_rank", "lens_agreement_rank_rows")):
        table = rows[variable].transpose("example", "lens", "layer", "head").values
        found |= _three(name, ("lens",), mean_interval(np.nanmean(table, axis=(2, 3))))
    kinds = _last_layer(rows["token_types_rows"])
    portion = np.abs(kinds) / np.nansum(
        np.abs(kinds), axis=-1, keepdims=True
    )  # units of lenses differ, portions do not
    found |= _three("type_portion", ("lens", "type"), mean_interval(portion))
    whole = xr.Dataset(found, coords={name: rows[name].values for name in ("lens", "type")})
    return whole.rename(lens="beside_norm")


def _patterns(rows: xr.Dataset, chosen: Chosen, classifier: str) -> xr.Dataset:
    """Shares of pattern classes, the classifier's errors taken out, and how far they lie from those of standard.

    Examples are drawn again, for all lenses together, and with each draw the errors of the classifier.
    """
    table = rows["patterns_rows"].transpose("example", "lens", "layer", "head", "pattern").values[chosen]
    every = _mean(table, (2, 3))  # example lens pattern
    counted, dims = mean_interval(every)[0], ("lens", "pattern")
    exact, drawn = _without_errors(every, counted, classifier) if len(every) else (counted, counted[None])
    found: dict[str, Any] = {"counted": (dims, counted)}
    low, high = percentile_interval(drawn)
    found |= _three("share", dims, (exact, np.minimum(low, exact), np.maximum(high, exact)))
    found |= _three("share_change", dims, (exact - exact[:1], *percentile_interval(drawn - drawn[:, :1])))
    return xr.Dataset(found, coords={"lens": rows["lens"].values, "pattern": rows["pattern"].values})


def _without_errors(every: Array, counted: Array, classifier: str) -> tuple[Array, Array]:
    """The likeliest true shares, and those of every draw: lens pattern, draw lens pattern."""
    drawn = bootstrap_means(every)
    rates, drawn_rates = shares.draw_rates(shares.read_confusion(classifier), len(drawn), np.random.default_rng(1))
    exact = shares.estimate_shares(counted[..., None], rates[..., None])[..., 0]
    found = np.moveaxis(shares.estimate_shares(np.moveaxis(drawn, 0, -1), drawn_rates), -1, 0)
    return shares.append_unsure(exact, classifier), shares.append_unsure(found, classifier)


def _weights(rows: xr.Dataset, chosen: Chosen) -> xr.Dataset:
    """The mean weight on [CLS] and [SEP] from all other tokens, over all heads, and its change."""
    parts = [rows[f"special_tokens{end}_rows"].sel(role=list(TOKENS), source="others") for end in ("", "_absolute")]
    table = np.stack([each.transpose("example", "lens", "role", "layer", "head").values[chosen] for each in parts], 2)
    every = _mean(table, (4, 5))  # example lens size role
    return _with_change(
        "weight", every, ("lens", "size", "token"), {"lens": rows["lens"].values, "token": list(TOKENS)}
    )


def _types(rows: xr.Dataset, chosen: Chosen) -> xr.Dataset:
    """The mean weight from [CLS] in the last layer on each type, over its heads, and its change.

    `sep_leads` is the share of draws of examples in which [SEP] is among the types that are attended most.
    """
    table = np.stack([_last_layer(rows[f"token_types{end}_rows"])[chosen] for end in ("", "_absolute")], axis=2)
    kinds = [str(each) for each in rows["type"].values]
    found = _with_change("type_weight", table, ("lens", "size", "type"), {"lens": rows["lens"].values, "type": kinds})
    drawn = np.nan_to_num(np.abs(bootstrap_means(table[:, :, 0])), nan=-1.0)  # draw lens type
    place = (drawn > drawn[..., [kinds.index("sep")]]).sum(-1)
    found["sep_leads"] = ("lens", np.where(len(table), (place < TOP).mean(0), np.nan))
    return found


def _same(rows: xr.Dataset, chosen: Chosen) -> xr.Dataset:
    """The share of heads, and of inputs with all their heads, whose effective attention is attention."""
    table = rows["effective_share_rows"].sel(lens="visible").transpose("example", "layer", "head").values[chosen]
    same = unchanged(table)
    share = rows["effective_share_rows"].transpose("example", "lens", "layer", "head").values[chosen]
    found = _three("effective_share", ("lens",), mean_interval(_mean(share, (2, 3))))
    return xr.Dataset(
        {
            **found,
            "same_heads": same.mean() if len(same) else np.nan,
            "same_inputs": same.all((1, 2)).mean() if len(same) else np.nan,
            "n": len(table),
        },
        coords={"lens": rows["lens"].values},
    )


def unchanged(share: Array) -> Chosen:
    """Where effective attention is attention, from ‖A_eff‖ / ‖A‖: what is lost is orthogonal to what is left."""
    found: Chosen = share.astype(float) ** 2 >= 1 - SAME**2
    return found


def _by_head(rows: xr.Dataset) -> xr.Dataset:
    """What figures show of every head, over all examples."""
    special = rows["special_tokens_rows"].sel(role=list(TOKENS), source="others").mean("example")
    kinds = rows["token_types_rows"].isel(layer=-1).mean("example")
    share = rows["effective_share_rows"].mean("example")
    return xr.Dataset(
        {
            "head_weight": special.drop_vars("source").rename(role="token"),
            "head_type": kinds.drop_vars("layer"),
            "head_share": share,
        }
    )


def _last_layer(rows: xr.DataArray) -> Array:
    """The mean over the heads of the last layer: example lens type."""
    table = rows.isel(layer=-1).transpose("example", "lens", "type", "head").values
    return _mean(table, (3,))


def _mean(table: Array, axes: tuple[int, ...]) -> Array:
    """The mean over axes where there is a value; NaN where there is none."""
    there = np.isfinite(table)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = np.where(there, table, 0.0).sum(axes) / there.sum(axes)
    return found


def _with_change(name: str, every: Array, dims: tuple[str, ...], coords: Mapping[str, Any]) -> xr.Dataset:
    """Means and their change from standard attention, example by example."""
    found = _three(name, dims, mean_interval(every)) | _three(
        f"{name}_change", dims, mean_interval(every - every[:, :1])
    )
    return xr.Dataset(found, coords={**coords, "size": list(SIZES)})


def _three(
    name: str, dims: tuple[str, ...], ends: tuple[Array, Array, Array]
) -> dict[str, tuple[tuple[str, ...], Array]]:
    return {f"{name}{end}": (dims, each) for end, each in zip(("", "_low", "_high"), ends, strict=True)}

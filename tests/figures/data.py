"""Datasets such as Maps.dataset gives, built in place."""

import json

import numpy as np
import xarray as xr


def dataset(tokens="the cat sat", *, layers=2, heads=3, causal=False, shares=None) -> xr.Dataset:
    """The lenses raw and effective over some tokens; effective differs from raw by what `shares` says."""
    words = np.array(tokens.split(" "), dtype=object)
    many = len(words)
    visible = np.tril(np.ones((many, many), bool)) if causal else np.ones((many, many), bool)
    scores = np.random.default_rng(0).random((layers, heads, many, many)) * visible
    raw = scores / scores.sum(-1, keepdims=True)
    share = np.full((layers, heads), 0.5) if shares is None else np.asarray(shares, float)
    other = raw * share[..., None, None] - 0.1 * (share < 1)[..., None, None] * visible
    nothing = np.full(share.shape, np.nan)
    return xr.Dataset(
        {
            "weights": (("lens", "layer", "head", "query", "key"), np.stack([raw, other]).astype("float32")),
            "visible": (("layer", "query", "key"), np.stack([visible] * layers)),
            "n": (("lens", "layer", "head"), np.full((2, *share.shape), float(many))),
            "rank": (("lens", "layer", "head"), np.stack([nothing, many - 1.0 * (share < 1)])),
            "null": (("lens", "layer", "head"), np.stack([nothing, 1.0 * (share < 1)])),
            "share": (("lens", "layer", "head"), np.stack([nothing, share])),
        },
        coords={
            "lens": ["raw", "effective"],
            "signed": ("lens", [False, True]),
            "layer": list(range(layers)),
            "head": list(range(heads)),
            "query_token": ("query", words),
            "key_token": ("key", words),
            "query_special": ("query", np.arange(many) == 0),
            "key_special": ("key", np.arange(many) == 0),
        },
        attrs={"headscope": json.dumps({"site": "self", "example": "0"})},
    )

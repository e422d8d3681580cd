"""BLOOM."""

from torch import Tensor

from headscope.core.family import Family, Hooks


def split_values(projected: Tensor, heads: int) -> Tensor:
    """Return the values; each head's query, key and value are adjacent."""
    return projected.reshape(*projected.shape[:-1], heads, 3, -1)[..., -1, :].transpose(1, 2)


class Bloom(Family):
    """One projection gives queries, keys and values; positions are a bias on the scores (ALiBi)."""

    kinds = ("bloom",)
    projection = "dense"
    hooks = Hooks("BloomAttention", values="query_key_value", split=split_values)

"""GPT-J."""

from headscope.core.family import Family, Hooks


class Gptj(Family):
    """Attention and the feed-forward block read the same input."""

    kinds = ("gptj",)
    projection = "out_proj"
    hooks = Hooks("GPTJAttention", values="v_proj")

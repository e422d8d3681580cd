"""GPT-2."""

from headscope.core.family import Family, HeadWeights


class Gpt2(Family):
    """The output projection is a Conv1D, whose weight is input × output."""

    kinds = ("gpt2",)
    projection = "c_proj"
    head_weights = HeadWeights(("q_attn", "c_attn"), size="head_dim", counts=("num_heads",), widths=("split_size",))

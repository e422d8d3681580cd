"""DistilBERT."""

from headscope.core.family import Family, HeadWeights


class Distilbert(Family):
    """The output projection is in the attention module."""

    kinds = ("distilbert",)
    projection = "out_lin"
    head_weights = HeadWeights(("q_lin", "k_lin", "v_lin"), size="attention_head_size", counts=("n_heads",))

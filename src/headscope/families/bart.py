"""BART and similar translation models."""

from headscope.core.family import Family, HeadWeights


class Bart(Family):
    """Encoder, decoder and cross-attention."""

    kinds = ("bart", "mbart", "marian", "pegasus")
    projection = "out_proj"
    head_weights = HeadWeights(("q_proj", "k_proj", "v_proj"), size="head_dim", counts=("num_heads",))

"""T5."""

from headscope.core.family import Family, HeadWeights


class T5(Family):
    """Encoder, decoder and cross-attention; positions are a bias on the scores."""

    kinds = ("t5", "mt5")
    projection = "o"
    head_weights = HeadWeights(
        ("q", "k", "v"),
        size="key_value_proj_dim",
        counts=("n_heads",),
        widths=("inner_dim",),
        bias="position_bias",
    )

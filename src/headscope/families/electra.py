"""ELECTRA."""

from headscope.core.family import Family, HeadWeights


class Electra(Family):
    """The same as BERT."""

    kinds = ("electra",)
    projection = "../output/dense"
    head_weights = HeadWeights(
        ("query", "key", "value"),
        size="attention_head_size",
        counts=("num_attention_heads",),
        widths=("all_head_size",),
    )

"""BERT, and ELECTRA, which has its attention."""

from headscope.core.family import Family, HeadWeights


class Bert(Family):
    """The output projection is in a sibling of the attention module."""

    kinds = ("bert", "electra")
    projection = "../output/dense"
    head_weights = HeadWeights(
        ("query", "key", "value"),
        size="attention_head_size",
        counts=("num_attention_heads",),
        widths=("all_head_size",),
    )

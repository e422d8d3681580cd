"""RoBERTa and its multilingual versions."""

from headscope.core.family import Family, HeadWeights


class Roberta(Family):
    """The same as BERT, with positions that count from the padding index."""

    kinds = ("roberta", "xlm-roberta", "camembert")
    projection = "../output/dense"
    unused_positions = 2
    head_weights = HeadWeights(
        ("query", "key", "value"),
        size="attention_head_size",
        counts=("num_attention_heads",),
        widths=("all_head_size",),
    )

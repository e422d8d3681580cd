"""RoBERTa and its multilingual versions."""

from headscope.core.family import Family


class Roberta(Family):
    """The same as BERT, with positions that count from the padding index."""

    kinds = ("roberta", "xlm-roberta", "camembert")
    projection = "../output/dense"
    unused_positions = 2

"""RoBERTa and its translations."""

from headscope.core.family import Family


class Roberta(Family):
    """As BERT, with positions counted from the padding index."""

    kinds = ("roberta", "xlm-roberta", "camembert")
    projection = "../output/dense"
    unused_positions = 2

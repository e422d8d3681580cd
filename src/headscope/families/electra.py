"""ELECTRA."""

from headscope.core.family import Family


class Electra(Family):
    """As BERT."""

    kinds = ("electra",)
    projection = "../output/dense"

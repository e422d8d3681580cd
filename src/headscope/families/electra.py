"""ELECTRA."""

from headscope.core.family import Family


class Electra(Family):
    """The same as BERT."""

    kinds = ("electra",)
    projection = "../output/dense"

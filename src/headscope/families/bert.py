"""BERT."""

from headscope.core.family import Family


class Bert(Family):
    """The output projection is in a sibling of the attention module."""

    kinds = ("bert",)
    projection = "../output/dense"

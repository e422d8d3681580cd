"""BERT."""

from headscope.core.family import Family


class Bert(Family):
    """The output projection stands in a sibling of the attention module."""

    kinds = ("bert",)
    projection = "../output/dense"

"""DistilBERT."""

from headscope.core.family import Family


class Distilbert(Family):
    """The output projection is in the attention module."""

    kinds = ("distilbert",)
    projection = "out_lin"

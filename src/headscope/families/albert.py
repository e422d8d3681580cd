"""ALBERT."""

from headscope.core.family import Family


class Albert(Family):
    """One attention module serves all layers."""

    kinds = ("albert",)
    projection = "dense"

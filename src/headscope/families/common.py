"""Models that no other file describes."""

from headscope.core.family import Family


class Common(Family):
    """Attention and values, checked against the heads' context at each capture."""

    kinds = ()

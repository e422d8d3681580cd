"""Models that use the attention interface and that no other file describes."""

from headscope.core.family import Family


class Common(Family):
    """Attention and values, checked against the head's context at each capture; the output projection is unknown."""

    kinds = ()
    projection = None

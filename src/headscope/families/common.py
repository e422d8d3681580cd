"""Any kind of model that goes through the attention interface and that no other file describes."""

from headscope.core.family import Family


class Common(Family):
    """Attention and values, checked against the head's output at each capture; the output projection is not known."""

    kinds = ()
    projection = None

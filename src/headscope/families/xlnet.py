"""XLNet."""

from headscope.core.family import Family


class Xlnet(Family):
    """The output projection is a bare parameter, which is no layer."""

    kinds = ("xlnet",)
    projection = "o"

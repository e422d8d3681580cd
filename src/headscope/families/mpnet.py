"""MPNet."""

from headscope.core.family import Family


class Mpnet(Family):
    """Positions count from the padding index."""

    kinds = ("mpnet",)
    projection = "o"
    unused_positions = 2

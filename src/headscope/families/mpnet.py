"""MPNet."""

from headscope.core.family import Family


class Mpnet(Family):
    """Positions count from the padding index."""

    kinds = ("mpnet",)
    unused_positions = 2

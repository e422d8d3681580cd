"""MPNet."""

from headscope.core.family import Family, Hooks


class Mpnet(Family):
    """Positions are a bias on the scores, and count from the padding index."""

    kinds = ("mpnet",)
    projection = "o"
    hooks = Hooks("MPNetSelfAttention", values="v", editable=True)
    unused_positions = 2

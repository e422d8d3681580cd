"""MPNet."""

from headscope.core.family import Family, Hooks


class Mpnet(Family):
    """Positions are a bias on the scores, and counted from the padding index as well."""

    kinds = ("mpnet",)
    projection = "o"
    hooks = Hooks("MPNetSelfAttention", values="v")
    unused_positions = 2

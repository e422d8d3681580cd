"""ViT."""

from headscope.core.family import Family


class Vit(Family):
    """Patches of an image instead of tokens."""

    kinds = ("vit",)
    projection = "o_proj"

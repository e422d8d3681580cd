"""ModernBERT."""

from headscope.core.family import Family


class Modernbert(Family):
    """Layers differ in what they see: some look through a sliding window."""

    kinds = ("modernbert",)
    projection = "Wo"

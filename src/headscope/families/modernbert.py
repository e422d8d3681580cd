"""ModernBERT."""

from headscope.core.family import Family


class Modernbert(Family):
    """Some layers have a sliding window."""

    kinds = ("modernbert",)
    projection = "Wo"

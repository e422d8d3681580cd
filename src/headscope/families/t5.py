"""T5."""

from headscope.core.family import Family


class T5(Family):
    """Encoder, decoder and cross-attention; positions are a bias on the scores."""

    kinds = ("t5", "mt5")
    projection = "o"

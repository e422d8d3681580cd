"""BART and similar translation models."""

from headscope.core.family import Family


class Bart(Family):
    """Encoder, decoder and cross-attention."""

    kinds = ("bart", "mbart", "marian", "pegasus")
    projection = "out_proj"

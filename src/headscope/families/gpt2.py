"""GPT-2."""

from headscope.core.family import Family


class Gpt2(Family):
    """The output projection is a Conv1D, whose weight is input × output."""

    kinds = ("gpt2",)
    projection = "c_proj"

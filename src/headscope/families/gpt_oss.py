"""gpt-oss."""

from headscope.core.family import Family


class GptOss(Family):
    """A learned sink takes part of each row, so rows sum to less than 1."""

    kinds = ("gpt_oss",)
    projection = "o_proj"

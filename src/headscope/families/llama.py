"""Llama and similar decoders."""

from headscope.core.family import Family


class Llama(Family):
    """Value heads are shared between query heads (GQA)."""

    kinds = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "olmo2", "phi3")
    projection = "o_proj"

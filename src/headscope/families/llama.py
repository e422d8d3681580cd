"""Llama and similar decoders."""

from headscope.core.family import Family, HeadWeights


class Llama(Family):
    """Value heads are shared between query heads (GQA)."""

    kinds = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "olmo2", "phi3")
    projection = "o_proj"
    head_weights = HeadWeights(
        ("q_proj", "k_proj", "v_proj"),
        size="head_dim",
        group="num_key_value_groups",
        config=("num_attention_heads", "num_key_value_heads", "head_dim"),
        kinds=(
            "llama",
            "mistral",
            "qwen2",
            "qwen3",
            "gemma",
            "gemma2",
        ),  # the others normalize over heads, or count them
    )

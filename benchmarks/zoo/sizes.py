"""Configurations of the library with all sizes made small, by the names of their attributes."""

import inspect
from collections.abc import Mapping
from typing import Any

from tests.models import VOCAB

GROUPS: list[tuple[str, int]] = [
    (
        "num_hidden_layers num_layers n_layer n_layers depth num_blocks encoder_layers decoder_layers "
        "num_encoder_layers num_decoder_layers num_hidden_groups num_block_layers num_decoder_blocks",
        2,
    ),
    ("num_key_value_heads num_kv_heads n_head_kv multi_query_group_num", 2),
    (
        "num_attention_heads num_heads n_head n_heads attention_heads linear_num_value_heads linear_num_key_heads "
        "index_n_heads num_query_heads mamba_n_heads",
        4,
    ),
    (
        "head_dim d_kv kv_channels qk_rope_head_dim qk_nope_head_dim v_head_dim qk_head_dim attention_head_dim "
        "linear_key_head_dim linear_value_head_dim index_head_dim head_size rotary_dim kv_lora_rank q_lora_rank "
        "lora_rank q_rank o_lora_rank mamba_d_head",
        8,
    ),
    (
        "hidden_size d_model n_embd dim embed_dim width hidden_dim projection_dim emb_dim embedding_size "
        "text_embed_dim model_dim encoder_hidden_size decoder_hidden_size out_hidden_size output_dim "
        "projector_hidden_size mamba_d_ssm encoder_embed_dim decoder_embed_dim d_embed output_channels "
        "encoder_hidden_dim fusion_hidden_size projection_size cross_attention_hidden_size "
        "speech_decoder_postnet_units bottleneck_channels vq_hidden_size feat_proj_dim",
        32,
    ),
    (
        "intermediate_size ffn_dim d_ff n_inner d_inner mlp_dim ffn_hidden_size feed_forward moe_intermediate_size "
        "shared_expert_intermediate_size dense_intermediate_size feedforward_dim shared_intermediate_size "
        "encoder_ffn_dim decoder_ffn_dim dim_feedforward expert_dim",
        48,
    ),
    (
        "max_position_embeddings n_positions max_seq_len max_source_positions max_target_positions "
        "max_sequence_length original_max_position_embeddings max_length seq_length n_ctx context_size",
        70,
    ),
    ("num_experts n_routed_experts num_local_experts moe_num_experts num_experts_total", 4),
    (
        "num_experts_per_tok num_experts_per_token moe_k top_k_experts moe_topk n_group topk_group index_topk "
        "index_block_size hc_mult",
        2,
    ),
    ("index_topk_blocks index_local_blocks", 1),  # fewer than a text has, so that keys are left out
    ("vocab_size n_vocab text_vocab_size vocab_size_per_layer_input audio_vocab_size", 64),
    ("sliding_window window_size local_attention attention_window", 4),
    ("image_size img_size input_size", 32),
    ("patch_size", 4),
    ("num_pos_feats", 16),
    ("num_mel_bins feature_size num_queries num_query_tokens image_seq_length mm_tokens_per_image", 8),
]
EXACT = {name: size for names, size in GROUPS for name in names.split()}
ENDINGS = [(f"_{name}", size) for name, size in EXACT.items() if name not in ("dim", "width", "depth")]

_FILLED = (
    "head_dim vocab_size num_key_value_heads num_experts_per_tok n_group topk_group kv_lora_rank q_lora_rank "
    "v_head_dim qk_rope_head_dim qk_nope_head_dim moe_intermediate_size n_routed_experts intermediate_size"
)
FILLED = frozenset(_FILLED.split())
"""Sizes that some configurations leave to the checkpoint, with None."""

MROPE = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 1, 1]}
HALF_MROPE = {**MROPE, "partial_rotary_factor": 0.5, "mrope_section": [1, 1, 0]}
RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 8, 8, 8],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
    "out_features": ["stage2", "stage3", "stage4"],
}
DETR = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None, "backbone_config": RESNET}
ONE_SCALE = {**DETR, "backbone_config": {**RESNET, "out_features": ["stage4"]}}
SERIES = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2], "num_time_features": 1}
SWIN = {"depths": [1, 1], "num_heads": [2, 4], "embed_dim": 16, "window_size": 4, "image_size": 32, "patch_size": 4}
FOUR_SWIN = {
    "model_type": "swin",
    "depths": [1, 1, 1, 1],
    "num_heads": [1, 1, 2, 2],
    "embed_dim": 16,
    "window_size": 4,
    "image_size": 128,
    "patch_size": 4,
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
}
THREE_SCALES = {
    "backbone_config": {
        "model_type": "rt_detr_resnet",
        "embedding_size": 8,
        "hidden_sizes": [8, 8, 16, 16],
        "depths": [1, 1, 1, 1],
        "layer_type": "basic",
        "out_features": ["stage2", "stage3", "stage4"],
    },
    "encoder_in_channels": [8, 16, 16],
    "decoder_in_channels": [32, 32, 32],
}

CHANGES: dict[str, dict[str, Any]] = {
    "minimax_m3_vl_text": {"layer_types": ["minimax_m3_sparse", "minimax_m3_sparse"], "index_n_heads": 2},
    "detr": ONE_SCALE,
    "conditional_detr": ONE_SCALE,
    "dab-detr": ONE_SCALE,
    "table-transformer": ONE_SCALE,
    "deformable_detr": DETR,
    "autoformer": {**SERIES, "label_length": 4},
    "informer": SERIES,
    "time_series_transformer": SERIES,
    "swin": SWIN,
    "swinv2": SWIN,
    "donut-swin": SWIN,
    "maskformer-swin": SWIN,
    "swin2sr": {"depths": [1, 1], "num_heads": [2, 2], "embed_dim": 16, "window_size": 4},
    "glm4v_text": {"rope_parameters": HALF_MROPE},
    "glm4v_moe_text": {"rope_parameters": HALF_MROPE},
    "glm_image_text": {"rope_parameters": HALF_MROPE},
    "qwen2_vl_text": {"rope_parameters": MROPE},
    "qwen2_5_vl_text": {"rope_parameters": MROPE},
    "gpt_neo": {"num_layers": 2, "attention_types": [[["global", "local"], 1]]},
    "bit": {"num_groups": 4},
    "whisper": {"max_source_positions": 35},
    "timesfm": {"context_length": 64, "patch_length": 8},
    "patchtst": {"context_length": 32, "patch_length": 4, "patch_stride": 4, "num_input_channels": 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "longcat_flash": {"head_dim": 8, "qk_rope_head_dim": 8},
    "gemma3n_text": {
        "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
        "activation_sparsity_pattern": [0.0] * 4,
        "intermediate_size": 48,
    },
    "granite_speech5_ctc": {"context_size": 16},
    "granite_speech5_encoder": {"context_size": 16},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "mamba2": {"num_heads": 8, "head_dim": 8, "hidden_size": 32, "expand": 2, "n_groups": 1},
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 1, "attn_layer_indices": [1]},
    "granitemoehybrid": {
        "mamba_n_heads": 8,
        "mamba_d_head": 8,
        "mamba_n_groups": 1,
        "layer_types": ["mamba", "attention"],
    },
    "zamba": {"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]},
    "zamba2": {"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]},
    "jamba": {"num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
    "perceiver": {"num_latents": 8, "d_latents": 32, "d_model": 32, "num_self_attends_per_block": 2},
    "efficientnet": {"width_coefficient": 0.1, "depth_coefficient": 0.1, "hidden_dim": 128},
    "ministral": {"head_dim": 8},
    "hunyuan_vl_text": {"head_dim": 8},
    "mask2former": {"feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "backbone_config": FOUR_SWIN},
    "maskformer": {"backbone_config": FOUR_SWIN},
    "nemotron_h": {"n_groups": 1},
    "exaone4_5_vision": {"window_size": 16},
    "qwen2_5_vl_vision": {"window_size": 16},
    "qwen3_asr_encoder": {"n_window": 16, "n_window_infer": 64},
    "rt_detr": THREE_SCALES,
    "rt_detr_v2": THREE_SCALES,
    "d_fine": {**THREE_SCALES, "num_feature_levels": 3, "decoder_n_points": [2, 2, 2]},
    "vitmatte": {"fusion_hidden_sizes": [8, 8, 8, 8], "convstream_hidden_sizes": [8, 8, 8]},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1},
    "esm": {"vocab_size": 64, "pad_token_id": 1, "mask_token_id": 4, "token_dropout": False},
    "cohere_compass_text": {"layer_types": ["sliding_attention", "sliding_attention"]},
    "chameleon": {"vocabulary_map": {"<image>": 50}},
    "emu3": {"vocabulary_map": {"<image>": 50}},
    "speecht5": {"hidden_size": 32},
}
"""What the rules do not make fit, by type; for some also what their defaults leave out that is special about them."""


def shrink(
    kind: type, keep: frozenset[str] = frozenset(), *, fill: bool = False, changes: Mapping[str, Any] | None = None
) -> Any:
    """Return a configuration of a class with small sizes, also in the configurations inside it."""
    default = kind()
    small: dict[str, Any] = {}
    for name, value in vars(default).items():
        if name.startswith("_") or name in keep or name not in _parameters(kind):
            continue
        if name in default.sub_configs:
            small[name] = None if value is None else shrink(type(value), keep, fill=fill).to_dict()
        elif (size := _shrink_value(name, value)) is not None:
            small[name] = size
        elif fill and value is None and name in FILLED:
            small[name] = EXACT[name]
        elif isinstance(value, list) and name.endswith("_types"):
            small[name] = value[:2] if name == "indexer_types" else value[-2:]  # the first indexes for the others
        elif isinstance(value, dict) and "mrope_section" in value:
            small[name] = {**value, "mrope_section": [2, 1, 1]}  # half of a head
    for values, heads in (("num_key_value_heads", "num_attention_heads"), ("num_kv_heads", "num_heads")):
        if values in small and getattr(default, values) == getattr(default, heads, None):
            small[values] = small.get(heads, getattr(default, heads))  # no groups, as before
    return kind(**small | CHANGES.get(default.model_type, {}) | dict(changes or {}))


def _parameters(kind: Any) -> set[str]:
    names = {name for base in kind.__mro__ if base is not object for name in getattr(base, "__annotations__", {})}
    return names | set(inspect.signature(kind.__init__).parameters)


def _shrink_value(name: str, value: Any) -> Any:
    """Return a smaller value of an attribute of a configuration; None to leave it."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        if name.endswith(("_token_id", "_token_index")) or name in ("image_token", "video_token"):
            return value if value < len(VOCAB) else 40 + sum(map(ord, name)) % 20
        size = EXACT.get(name) or next((size for ending, size in ENDINGS if name.endswith(ending)), None)
        return None if size is None else min(size, value) if value > 0 else None
    if isinstance(value, list | tuple) and value and all(isinstance(item, int) for item in value):
        if name in ("depths", "num_layers", "layers"):
            return type(value)([1] * len(value))
        if name in ("hidden_sizes", "embed_dims", "embed_dim", "dims", "conv_dim"):
            return type(value)([32] * len(value)) if name == "conv_dim" else type(value)(32 for _ in value)
        if name in ("image_size", "img_size", "input_size"):
            return type(value)([32] * len(value))
    return None

"""Models whose own code asks whether attention is eager, and selects keys only then."""

import pytest
import torch
import transformers

from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.models import SIZE, SMALL, tokenizer

LATENT = {
    **SMALL,
    **SIZE,
    "num_key_value_heads": 4,
    "moe_intermediate_size": 16,
    "n_routed_experts": 4,
    "n_group": 1,
    "topk_group": 1,
    "num_experts_per_tok": 2,
    "kv_lora_rank": 8,
    "q_lora_rank": 8,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 4,
    "v_head_dim": 8,
    "head_dim": 4,
    "index_topk": 2,
    "index_head_dim": 8,
    "index_n_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
BLOCKS = {
    **SMALL,
    **SIZE,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rotary_dim": 4,
    "num_local_experts": 2,
    "num_experts_per_tok": 1,
    "index_n_heads": 2,
    "index_head_dim": 8,
    "index_block_size": 2,
    "index_topk_blocks": 1,
    "dense_intermediate_size": 48,
    "shared_intermediate_size": 16,
    "max_position_embeddings": 64,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "layer_types": ["minimax_m3_sparse"] * 2,
}
SPARSE = {
    "deepseek_v32": LATENT,
    "glm_moe_dsa": {**LATENT, "indexer_types": ["full", "full"]},
    "hy_v4": {**LATENT, "indexer_types": ["full", "full"]},
    "axk2": {**LATENT, "gated_norm_rank": 4},
    "minimax_m3_vl_text": BLOCKS,
}


def build(kind):
    torch.manual_seed(0)
    network = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(kind, **SPARSE[kind]))
    return network.eval()


@pytest.mark.parametrize("kind", [kind for kind in SPARSE if kind in transformers.CONFIG_MAPPING])
def test_keys_that_eager_attention_does_not_select_get_no_weight(kind):
    network, ids = build(kind), torch.arange(5, 17)[None]
    trace = capture(load(network, tokenizer=tokenizer()), {"input_ids": ids})
    network.set_attn_implementation("eager")
    with torch.no_grad():
        output = network(ids, output_attentions=True)
    causal = ids.shape[1] * (ids.shape[1] + 1) // 2
    for ours, theirs, visible in zip(trace.attention, output.attentions, trace.visible, strict=True):
        assert (theirs[0, 0] > 0).sum() < causal, "this configuration selects every key"
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
        assert not ours.masked_fill(visible[:, None], 0).any()

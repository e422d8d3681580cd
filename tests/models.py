"""Tiny models with random weights, one per kind, built in place."""

import warnings
from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from headscope.engine.load import load
from headscope.engine.model import Model

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
WORDS = (
    "the cat sat on a mat and then it slept because was tired while dog ran fast over hill under blue sky with old man "
    "who sang loud songs of sea"
).split()
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", *WORDS]
SIZE = {"vocab_size": len(VOCAB)}
GQA = {**SMALL, **SIZE, "num_key_value_heads": 2, "head_dim": 8}
TWO = {
    **SIZE,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "decoder_start_token_id": 2,
}
TEXT_TO_TEXT = {
    **SIZE,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "pad_token_id": 0,
    "eos_token_id": 3,
    "decoder_start_token_id": 0,
}
WINDOW = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}

KINDS: dict[str, dict[str, Any]] = {
    "bert": {**SMALL, **SIZE, "max_position_embeddings": 64},
    "roberta": {**SMALL, **SIZE, "max_position_embeddings": 66, "pad_token_id": 1},
    "xlm-roberta": {**SMALL, **SIZE, "max_position_embeddings": 66, "pad_token_id": 1},
    "camembert": {**SMALL, **SIZE, "max_position_embeddings": 66, "pad_token_id": 1},
    "distilbert": {**SIZE, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 64},
    "electra": {**SMALL, **SIZE, "embedding_size": 32, "max_position_embeddings": 64},
    "albert": {**SMALL, **SIZE, "embedding_size": 16, "num_hidden_layers": 3, "max_position_embeddings": 64},
    "modernbert": {
        **SMALL,
        **SIZE,
        "num_hidden_layers": 3,
        "local_attention": 8,
        "global_attn_every_n_layers": 3,
        "pad_token_id": 0,
        "cls_token_id": 2,
        "sep_token_id": 3,
        "bos_token_id": 2,
        "eos_token_id": 3,
    },
    "gpt2": {**SIZE, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 2, "eos_token_id": 3},
    "llama": GQA,
    "mistral": {**GQA, "sliding_window": 4},
    "qwen2": GQA,
    "qwen3": GQA,
    "gemma": GQA,
    "gemma2": {**GQA, **WINDOW, "query_pre_attn_scalar": 8},
    "olmo2": {**GQA, "eos_token_id": 3},
    "phi3": {**GQA, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "original_max_position_embeddings": 64},
    "gpt_oss": {**GQA, **WINDOW, "num_local_experts": 2, "num_experts_per_tok": 1},
    "vit": {**SMALL, "image_size": 12, "patch_size": 4, "num_channels": 3},
    "t5": TEXT_TO_TEXT,
    "mt5": TEXT_TO_TEXT,
    "umt5": TEXT_TO_TEXT,  # described by no family, as are m2m_100, doge and afmoe
    "m2m_100": TWO,
    "bart": TWO,
    "mbart": TWO,
    "marian": {**TWO, "decoder_vocab_size": len(VOCAB)},
    "pegasus": TWO,
    "deberta-v2": {
        **SMALL,
        **SIZE,
        "max_position_embeddings": 64,
        "relative_attention": True,
        "position_buckets": 8,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "conv_kernel_size": 3,
        "position_biased_input": False,
        "type_vocab_size": 2,
    },
    "mpnet": {**SMALL, **SIZE, "max_position_embeddings": 66},
    "gptj": {
        **SIZE,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "rotary_dim": 4,
        "n_positions": 64,
        "bos_token_id": 2,
        "eos_token_id": 3,
    },
    "gpt_neo": {
        **SIZE,
        "hidden_size": 32,
        "num_layers": 2,
        "num_heads": 4,
        "window_size": 4,
        "attention_types": [[["global", "local"], 1]],
        "max_position_embeddings": 64,
        "bos_token_id": 2,
        "eos_token_id": 3,
    },
    "bloom": {**SIZE, "hidden_size": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 2, "eos_token_id": 3},
    "xlnet": {
        **SIZE,
        "d_model": 32,
        "n_layer": 2,
        "n_head": 4,
        "d_inner": 48,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
    },
    "doge": GQA,  # passes the mask by name, as afmoe does
    "afmoe": {**GQA, **WINDOW, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16},
    "cohere": {**GQA, "pad_token_id": 0, "eos_token_id": 3},  # through the interface, and described by no family
}
SITES = dict.fromkeys(
    ("t5", "mt5", "umt5", "m2m_100", "bart", "mbart", "marian", "pegasus"), ("encoder", "decoder", "cross")
)


def sites(kind: str) -> tuple[str, ...]:
    return SITES.get(kind, ("self",))


def network(kind: str, **changes: Any) -> Any:
    """Build a tiny model whose weights are large enough for attention to be far from uniform."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **{**KINDS[kind], **changes})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".torch.jit", DeprecationWarning)  # what DeBERTa's file does on import
        built = transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for name, weight in built.named_parameters():
            if weight.ndim > 1 and "embed" not in name.lower() and not kind.endswith("t5"):
                weight.mul_(6)  # T5's own start is wide enough
            if name.endswith("sinks"):
                weight.normal_()
    return built.eval()


@cache
def tiny(kind: str) -> Model:
    """Return a tiny model loaded from memory; shared between tests, which must not change it."""
    return load(network(kind), tokenizer=None if kind == "vit" else tokenizer())


@cache
def tokenizer() -> Any:
    """Return a word-level tokenizer over a few words, with BERT's special tokens."""
    backend = Tokenizer(models.WordLevel({word: index for index, word in enumerate(VOCAB)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    backend.decoder = decoders.WordPiece()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def text(words: int, seed: int = 0) -> str:
    """Return a text of random words."""
    draw = torch.randint(0, len(WORDS), (words,), generator=torch.Generator().manual_seed(seed))
    return " ".join(WORDS[index] for index in draw)


def batch(kind: str, lengths: tuple[int, ...] = (5, 14, 9)) -> Any:
    """Return texts of mixed lengths, or images for ViT; with a second text for encoder-decoder models."""
    if kind == "vit":
        pixels = torch.randn(len(lengths), 3, 12, 12, generator=torch.Generator().manual_seed(1))
        return {"pixel_values": pixels}
    texts = [text(words, seed=words) for words in lengths]
    return [(source, text(7 + index, seed=index)) for index, source in enumerate(texts)] if kind in SITES else texts

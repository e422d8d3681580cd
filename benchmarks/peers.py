"""A model's forward pass, and what headscope adds to it step by step."""

from collections.abc import Callable
from typing import Any

import torch

from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.edited import edited
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.experiments.timing import Variant

WARMUP = 3


def steps(model: Model, batch: int, length: int, *, on_device: bool = True) -> dict[str, Callable[[], Any]]:
    """The forward pass with attentions, then capture, view and whole maps, each with all that goes before it.

    Inputs are tokenised; `on_device` says where they are when a user hands them in. Each function returns everything
    it made, so that no memory is freed on the clock.
    """
    inputs = random_inputs(model, batch, length)
    moved = {name: tensor.to(model.network.device) for name, tensor in inputs.items()}
    given = moved if on_device else inputs

    @torch.no_grad()
    def forward() -> Any:
        return model.network(**moved, output_attentions=True)

    def captured() -> Any:
        return capture(model, given)

    def factored() -> Any:
        trace = captured()
        return trace, view(trace, "effective")

    def materialised() -> Any:
        trace, maps = factored()
        return trace, [maps.layer(label) for label in maps.layers]

    return {function.__name__: function for function in (forward, captured, factored, materialised)}


def in_place(model: Model, batch: int, length: int) -> Variant:
    """The forward pass with effective attention in place of attention."""
    moved = {name: tensor.to(model.network.device) for name, tensor in random_inputs(model, batch, length).items()}

    @torch.no_grad()
    def forward() -> Any:
        return model.network(**moved)

    return Variant(forward, lambda: edited(model, "effective_attention"), WARMUP)


def random_inputs(model: Model, batch: int, length: int) -> dict[str, torch.Tensor]:
    """Return token ids without padding."""
    ids = torch.randint(5, model.network.config.vocab_size, (batch, length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def load_bert(layers: int = 12, *, hidden: int = 768, heads: int = 12, device: str = "cpu", dtype: Any = None) -> Model:
    """Load a BERT of random weights, with a tokenizer attached as users have it."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        max_position_embeddings=1024,
        attn_implementation="eager",
    )
    network = BertModel(config, add_pooling_layer=False).to(device, dtype).eval()
    return load(network, tokenizer=_tokenizer(config.vocab_size))


def load_llama(
    layers: int, heads: int, value_heads: int, *, intermediate: int, device: str = "cpu", dtype: Any = None
) -> Model:
    """Load a Llama with 64 dimensions a head, of random weights, with a tokenizer attached."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        hidden_size=64 * heads,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=value_heads,
        vocab_size=32000,
        max_position_embeddings=4096,
        attn_implementation="eager",
    )
    return load(LlamaModel(config).to(device, dtype).eval(), tokenizer=_tokenizer(config.vocab_size))


def _tokenizer(size: int) -> Any:
    """Return a word-level tokenizer over as many words as the model has embeddings."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = {word: index for index, word in enumerate([*special, *(f"w{index}" for index in range(5, size))])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)

"""Tiny models with random weights and a head: a classifier, a masked language model, or one that continues texts."""

from functools import cache
from typing import Any

import torch
import transformers

from headscope.engine.load import load
from headscope.engine.model import Model
from tests.models import KINDS, tokenizer

HEADS = {
    "classification": "AutoModelForSequenceClassification",
    "mlm": "AutoModelForMaskedLM",
    "causal": "AutoModelForCausalLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "choice": "AutoModelForMultipleChoice",
}


def headed_network(kind: str, head: str, **changes: Any) -> Any:
    """Build a tiny model whose predictions are far from uniform."""
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(kind, **{**KINDS[kind], "pad_token_id": 0, **changes})
    built = getattr(transformers, HEADS[head]).from_config(config)
    with torch.no_grad():
        for name, weight in built.named_parameters():
            if weight.ndim > 1 and "embed" not in name.lower() and not kind.endswith("t5"):
                weight.mul_(5)
    return built.eval()


@cache
def headed(kind: str, head: str, *, double: bool = False) -> Model:
    """Return a tiny model with a head, shared between tests, which must not change it."""
    network = headed_network(kind, head)
    return load(network.double() if double else network, tokenizer=tokenizer())

"""Save attention calls of tiny models with nnsight, in a process of its own: it gives all objects a method `save`.

python -m tests.core.nnsight_calls folder
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import nnsight
import torch

from tests.models import batch, network, tokenizer

KINDS = ("llama", "gemma2", "gpt_oss", "bert")


def save_calls(kind, folder):
    """Write what the attention function of each layer was given and returned."""
    model = nnsight.NNsight(network(kind))
    encoded = tokenizer()(batch(kind), return_tensors="pt", padding=True, return_token_type_ids=False)
    calls = []
    with model.trace(**encoded):
        for layer in model.encoder.layer if kind == "bert" else model.layers:
            module = layer.attention.self if kind == "bert" else layer.self_attn
            line = module.source.attention_interface_1
            calls.append((line.inputs, line.output))
        calls = nnsight.save(calls)
    plain = [
        ((SimpleNamespace(is_causal=args[0].is_causal), *args[1:]), options, output)
        for (args, options), output in calls
    ]
    torch.save(plain, folder / f"{kind}.pt")


if __name__ == "__main__":
    for name in KINDS:
        save_calls(name, Path(sys.argv[1]))

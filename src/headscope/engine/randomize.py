"""A model with random weights in place of its own."""

from copy import deepcopy

import torch

from headscope.core.errors import InputError
from headscope.engine.load import load, silence_transformers
from headscope.engine.model import Model
from headscope.engine.pruning.pruned_config import pruned_heads


def randomize(model: Model, seed: int = 0) -> Model:
    """Return a model of the same config and tokenizer with new weights, as before any training."""
    if pruned_heads(model.network.config):
        raise InputError("Random weights are drawn for whole models, but some heads of this one were pruned.")
    with torch.random.fork_rng(), silence_transformers():
        torch.manual_seed(seed)
        network = type(model.network)(deepcopy(model.network.config))
    network = network.to(device=model.device, dtype=model.network.dtype).eval()
    return load(network, tokenizer=model.tokenizer)

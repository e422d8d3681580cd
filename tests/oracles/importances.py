"""Importances as their definitions say: one forward pass for each changed token, finite differences for gradients."""

import numpy as np
import torch

from headscope.core.target import parse_target
from headscope.engine.capture import prepare_inputs
from headscope.engine.readout import find_readout


def one_text(model, example, target):
    """Return the inputs of one text alone, and a function from a model's output to the score of the target."""
    inputs = prepare_inputs(model, [example], None, max_length=None, pad_to=None)
    with torch.no_grad():
        output = model.network(**inputs.tensors)
    return inputs, find_readout(model, inputs, output, parse_target(target)).score


@torch.no_grad()
def blank_out(model, example, target, token):
    """Replace one token after the other, and subtract the score after from the score before."""
    inputs, score = one_text(model, example, target)
    before = float(score(model.network(**inputs.tensors)))
    special = inputs.source.special[0].tolist()
    changes = []
    for position, is_special in enumerate(special):
        ids = inputs.tensors["input_ids"].clone()
        ids[0, position] = token
        after = float(score(model.network(**{**inputs.tensors, "input_ids": ids})))
        changes.append(np.nan if is_special else before - after)
    return np.array(changes)


@torch.no_grad()
def input_gradient(model, example, target, layer, step=1e-6):
    """Move each dimension of each token's embedding a little up and down; `layer` holds the word embeddings."""
    inputs, score = one_text(model, example, target)
    tokens, width = inputs.tensors["input_ids"].shape[1], layer.embedding_dim
    gradient = np.zeros((tokens, width))
    for token in range(tokens):
        for dimension in range(width):
            for sign in (1, -1):
                shift = torch.zeros(1, tokens, width, dtype=torch.float64)
                shift[0, token, dimension] = sign * step

                def move(_, args, output, shift=shift):  # GPT-2 embeds segments with the same layer
                    return output + shift if torch.equal(args[0], inputs.tensors["input_ids"]) else output

                with layer.register_forward_hook(move):
                    gradient[token, dimension] += sign * float(score(model.network(**inputs.tensors))) / (2 * step)
    return gradient

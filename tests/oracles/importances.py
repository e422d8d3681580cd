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
def blank_out(model, example, target, token, *, special=False):
    """Replace one token after the other, and subtract the score after from the score before."""
    inputs, score = one_text(model, example, target)
    before = float(score(model.network(**inputs.tensors)))
    kept = [False] * inputs.source.special.shape[1] if special else inputs.source.special[0].tolist()
    changes = []
    for position, is_kept in enumerate(kept):
        ids = inputs.tensors["input_ids"].clone()
        ids[0, position] = token
        after = float(score(model.network(**{**inputs.tensors, "input_ids": ids})))
        changes.append(np.nan if is_kept else before - after)
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


@torch.no_grad()
def summed_gradient(model, example, target, module, step=1e-6):
    """Add a little to all dimensions of one token in what `module` returns; the size of the score's slope."""
    inputs, score = one_text(model, example, target)
    tokens, slopes = inputs.tensors["input_ids"].shape[1], []
    for token in range(tokens):
        scores = []
        for sign in (1, -1):
            shift = torch.zeros(1, tokens, 1, dtype=torch.float64)
            shift[0, token] = sign * step
            with module.register_forward_hook(lambda _, args, output, shift=shift: output + shift):
                scores.append(float(score(model.network(**inputs.tensors))))
        slopes.append(abs(scores[0] - scores[1]) / (2 * step))
    return np.array(slopes)

"""The headline numbers of the effective-attention study by plain loops, from a model of transformers and its tokenizer.

It shares no code with the package: queries, keys and values come from hooks on the model's own linear layers, attention
is a softmax, projections are singular value decompositions in float64, and texts, layers and heads are loops.
"""

from collections import defaultdict
from itertools import product

import numpy as np
import torch

WIDTH = 128  # the width to which the published code pads
CUTOFF = 1.43e-6  # its absolute cut of singular values
FLOAT32 = np.finfo(np.float32).eps


def recompute(network, tokenizer, texts):
    """Return each number as the mean over the texts, each of which is a tuple of one text or two."""
    every = defaultdict(list)
    for text in texts:
        for name, value in recompute_one(network, tokenizer, text).items():
            every[name].append(value)
    return {name: sum(values) / len(values) for name, values in every.items()}


def recompute_one(network, tokenizer, text):
    """Return the numbers of one text: means over layers and heads."""
    ids = tokenizer(*text, truncation=True, max_length=WIDTH, padding="max_length", return_tensors="pt")
    real = int(ids["attention_mask"].sum())  # padding is on the right
    tokens = ids["input_ids"][0].tolist()
    marks = {
        "cls": [at for at in range(real) if tokens[at] == tokenizer.cls_token_id],
        "sep": [at for at in range(real) if tokens[at] == tokenizer.sep_token_id],
    }
    numbers = defaultdict(list)
    layers = read_layers(network, ids)
    for place, heads in enumerate(layers):
        sink = find_sink([attention for attention, _ in heads], real)
        for name in marks:
            numbers["sink is", name].append(float(sink in marks[name]))
        for attention, values in heads:
            whole = {"raw": attention, "paper": project_as_published(attention, values, real)}
            for (lens, weights), (name, keys) in product(whole.items(), marks.items()):
                numbers[f"{name}, all rows", lens].append(max(weights[:, key].mean() for key in keys))
            maps = {lens: weights[:real, :real] for lens, weights in whole.items()}
            maps["effective"] = project(maps["raw"], values[:real])
            for lens, weights in maps.items():
                numbers["change", lens].append(norm(weights - maps["raw"]) / norm(maps["raw"]))
                numbers["entropy", lens].append(entropy(weights))
                numbers["sink", lens].append(np.delete(weights[:, sink], sink).mean())
                for name, keys in marks.items():
                    others = np.delete(weights, keys, axis=0)  # rows of other tokens
                    numbers[name, lens].append(others[:, keys].max(1).mean())
                if place == len(layers) - 1:
                    numbers["cls to cls", lens].append(weights[0, 0])
    return {name: mean(values) for name, values in numbers.items()}


def read_layers(network, ids):
    """Return attention (all rows, padding too) and values of every head, layer by layer, in float64."""
    seen, hooks = defaultdict(list), []
    for layer in network.encoder.layer:
        for name in ("query", "key", "value"):
            module = getattr(layer.attention.self, name)
            hooks.append(module.register_forward_hook(lambda _, __, made, name=name: seen[name].append(made[0])))
    with torch.no_grad():
        network(**ids)
    for hook in hooks:
        hook.remove()
    count = network.config.num_attention_heads
    hidden = (1 - ids["attention_mask"][0].double()) * torch.finfo(torch.float32).min
    layers = []
    for tensors in zip(seen["query"], seen["key"], seen["value"], strict=True):
        queries, keys, values = (tensor.double().view(WIDTH, count, -1).transpose(0, 1) for tensor in tensors)
        heads = []
        for head in range(count):
            scores = queries[head] @ keys[head].T / queries.shape[-1] ** 0.5 + hidden
            heads.append((scores.softmax(-1).numpy(), values[head].numpy()))
        layers.append(heads)
    return layers


def project(attention, values):
    """Return effective attention: the projection of A's rows on the column space of V."""
    left, sizes, _ = np.linalg.svd(values, full_matrices=False)
    basis = left[:, sizes > sizes.max() * max(values.shape) * FLOAT32]
    return attention @ basis @ basis.T


def project_as_published(attention, values, real):
    """Return the projection of A's rows on the column space of V, rows of padding in both; its columns then removed."""
    left, sizes, _ = np.linalg.svd(values, full_matrices=False)
    basis = left[:, : int((sizes > CUTOFF).sum())]
    effective = attention @ basis @ basis.T
    effective[:, real:] = 0
    return effective


def find_sink(heads, real):
    """Return the token that takes most attention from others, all heads together."""
    taken = np.zeros(real)
    for head in heads:
        taken += head[:real, :real].sum(0) - np.diag(head)[:real]
    return int(taken.argmax())


def entropy(weights):
    """Return the mean entropy of the rows |w| / Σ|w|."""
    shares = np.abs(weights) / np.abs(weights).sum(1, keepdims=True)
    logarithms = np.log(shares, where=shares > 0, out=np.zeros_like(shares))
    return -(shares * logarithms).sum(1).mean()


def norm(weights):
    return np.sqrt((weights**2).sum())


def mean(values):
    return sum(values) / len(values)

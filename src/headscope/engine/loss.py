"""The loss of a model on each example: of its label, of its masked tokens, or of its next tokens."""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.tokens import ROLES
from headscope.data.tokenizing.encode import special_roles
from headscope.data.tokenizing.masking import IGNORED, mask_tokens
from headscope.data.tokenizing.readable import make_readable
from headscope.engine.batch import Inputs
from headscope.engine.model import Model


def predicts_masked(model: Model) -> bool:
    """Return whether a model has a head for words but does not continue texts."""
    network = model.network
    generates = bool(getattr(network, "can_generate", lambda: False)())
    return network.get_output_embeddings() is not None and not generates


def mask_inputs(model: Model, inputs: Inputs, seed: int) -> Inputs:
    """Mask 15 % of the tokens of each example, drawn from the seed and its id; other models keep their inputs.

    So the masks of an example do not depend on its batch. A batch that brings token labels is masked already.
    """
    labels = inputs.tensors.get("labels")
    if not predicts_masked(model) or (labels is not None and labels.ndim == 2):
        return inputs
    tokenizer, source = model.tokenizer, inputs.source
    if getattr(tokenizer, "mask_token_id", None) is None or source is None:
        raise InputError("The loss of a masked language model needs a tokenizer with a mask token, and there is none.")
    ids, roles = inputs.tensors["input_ids"].cpu().clone(), special_roles(tokenizer)
    targets, texts, role = torch.full_like(ids, IGNORED), [], source.roles.cpu().clone()
    for row, example in enumerate(inputs.examples):
        real = source.real[row].cpu()
        random = np.random.default_rng((seed, zlib.crc32(example.id.encode(errors="surrogatepass"))))
        changed, answers = mask_tokens(
            tokenizer, ids[row, real].tolist(), source.special[row].cpu()[real].tolist(), random
        )
        ids[row, real], targets[row, real] = torch.tensor(changed), torch.tensor(answers)
        role[row, real] = torch.tensor([roles.get(token, 0) for token in changed])
        texts.append(make_readable(tokenizer, changed))
    word = torch.where(role.to(source.word) == ROLES.index("mask"), -1, source.word)
    masked = replace(source, text=texts, role=role, special=role > 0, word=word)
    tensors = {**inputs.tensors, "input_ids": ids.to(model.device)}
    return replace(inputs, tensors=tensors, source=masked, token_labels=targets.to(model.device))


def token_losses(
    logits: Float[Tensor, "batch token word"], labels: Int[Tensor, "batch token"]
) -> Float[Tensor, " batch"]:
    """Return the mean cross-entropy of the labeled tokens of each example, in float64."""
    selected = labels != IGNORED
    losses = torch.nn.functional.cross_entropy(logits[selected].double(), labels[selected], reduction="none")
    rows = selected.nonzero()[:, 0]
    total = torch.zeros(len(labels), dtype=losses.dtype, device=losses.device).index_add(0, rows, losses)
    return total / selected.sum(-1)


def next_token_labels(inputs: Inputs) -> Int[Tensor, "batch token"]:
    """Return for each token the one that follows it, IGNORED where none does."""
    ids = inputs.tensors["input_ids"]
    assert inputs.source is not None
    real = inputs.source.real.to(ids.device)
    labels = torch.full_like(ids, IGNORED)
    labels[:, :-1] = torch.where(real[:, :-1] & real[:, 1:], ids[:, 1:], IGNORED)
    return labels


def class_losses(logits: Float[Tensor, "batch choice"], labels: Sequence[int]) -> Float[Tensor, " batch"]:
    """Return the cross-entropy of the label of each example, in float64."""
    choice = torch.tensor(labels, device=logits.device)
    return torch.nn.functional.cross_entropy(logits.double(), choice, reduction="none")


def number_losses(logits: Float[Tensor, "batch 1"], labels: Sequence[Any]) -> Float[Tensor, " batch"]:
    """Return the squared error of the number of each example, in float64."""
    return (logits[:, 0].double() - torch.tensor(labels, dtype=torch.float64, device=logits.device)) ** 2

"""The unembedding of a language model: how the logits of words read the last vectors of the residual stream."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.engine.model import Model
from headscope.engine.recording.stream import Stream


def read_unembedding(
    model: Model, tensors: Mapping[str, Any], output: Any, stream: Stream
) -> Float[Tensor, "batch token hidden"] | None:
    """Return what reads the logit of each token's own word, above the mean of all words, off the last vectors.

    None where the logits are no linear function of these vectors, which their own numbers say.
    """
    weight, bias = _find_weight(model.network)
    ids = tensors.get("decoder_input_ids", tensors.get("input_ids"))
    logits = getattr(output, "logits", None)
    vectors = None if stream.last is None else stream.last[1].detach()
    if weight is None or ids is None or logits is None or vectors is None:
        return None
    if vectors.shape != (*ids.shape, weight.shape[-1]) or logits.shape != (*ids.shape, weight.shape[0]):
        return None
    with torch.no_grad():
        directions = (weight - weight.mean(0))[ids]
        expected = (directions.to(vectors) * vectors).sum(-1).float()
        own = (logits.gather(-1, ids[..., None])[..., 0] - logits.mean(-1)).float()
        found = own if bias is None else own - (bias - bias.mean())[ids]
        factor = (expected * found).sum() / (expected * expected).sum()  # some models multiply logits by a number
        tolerance = 2e-2 if vectors.dtype in (torch.float16, torch.bfloat16) else 1e-4
        off = torch.linalg.vector_norm(found - factor * expected)
        if not bool(off <= tolerance * torch.linalg.vector_norm(found)):
            return None
        scaled: Tensor = directions.to(vectors) * factor.to(vectors)
        return scaled


def _find_weight(network: Any) -> tuple[Tensor | None, Tensor | None]:
    """Return the weight of the layer that gives logits of words, and its bias."""
    try:
        head = network.get_output_embeddings()
    except (AttributeError, NotImplementedError):
        return None, None
    weight, bias = getattr(head, "weight", None), getattr(head, "bias", None)
    return (
        (None, None)
        if weight is None or weight.ndim != 2
        else (weight.detach(), None if bias is None else bias.detach())
    )

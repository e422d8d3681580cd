"""Gradients of a prediction with respect to the attention weights of a forward pass."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils._pytree import tree_map

from headscope.core.errors import CaptureError
from headscope.core.trace import at_least_float32
from headscope.engine.readout import Readout
from headscope.engine.recording.recorder import AttentionCall, Recorder
from headscope.engine.recording.stream import Prediction, Stream


@contextmanager
def allow_gradients(tensors: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Enable gradients in this block, whatever the caller's mode; yield inputs without inference tensors."""
    with torch.inference_mode(False), torch.enable_grad():
        yield {
            name: tensor.clone() if isinstance(tensor, Tensor) and tensor.is_inference() else tensor
            for name, tensor in tensors.items()
        }


def compute_gradients(readout: Readout, output: Any, recorder: Recorder) -> list[Tensor]:
    """Return the gradient of each example's score with respect to its attention weights, one tensor per layer.

    Examples do not depend on one another, so one backward pass of the sum gives the gradients of all. Later layers
    depend on the attention of earlier ones: the gradient of a layer includes what its attention changes there.
    """
    scores, factor = readout.factor_gradient(output)
    gradients = torch.autograd.grad(scores.sum(), recorder.graph, allow_unused=True)
    scaled_gradients = []
    for call, gradient in zip(recorder.calls, gradients, strict=True):
        if gradient is None:
            raise CaptureError(
                f"The target has no gradient with respect to the attention of {call.name}: the model does not compute "
                "the prediction from the weights that this module returns. Capture it without a target."
            )
        gradient = at_least_float32(gradient)
        scaled_gradients.append(gradient * _expand_factor(factor.to(gradient), call)[:, None, None, None])
    return scaled_gradients


def read_stream(readout: Readout, output: Any, stream: Stream) -> Prediction | None:
    """Return how the logit of each example reads the last vectors of the stream; None if it does not."""
    vectors = None if stream.last is None else stream.last[1]
    if vectors is None or not vectors.requires_grad:
        return None
    logits = readout.logits(output)
    direction: Tensor | None = torch.autograd.grad(logits.sum(), vectors, create_graph=True, allow_unused=True)[0]
    if direction is None:
        return None
    return Prediction(logits.detach(), direction.detach(), linear=_is_constant(direction, vectors))


def _is_constant(direction: Tensor, vectors: Tensor) -> bool:
    """Whether a gradient with respect to vectors does not depend on them."""
    if not direction.requires_grad:
        return True
    noise = torch.linspace(-1, 1, direction.shape[-1], dtype=direction.dtype, device=direction.device).sin()
    (change,) = torch.autograd.grad((direction * noise).sum(), vectors, allow_unused=True, retain_graph=True)
    return change is None or not bool(change.any())


def _expand_factor(factor: Float[Tensor, " batch"], call: AttentionCall) -> Float[Tensor, " row"]:
    """Return the factor of each row of the maps; windows have that of their picture."""
    rows = len(call.attention)
    if rows == len(factor):
        return factor
    if call.layout is not None and call.layout.pictures == len(factor):
        return factor[call.layout.tokens.amax(-1).to(factor.device) // call.layout.count]
    if bool((factor == factor[0]).all()):
        return factor[:1].expand(rows)
    raise CaptureError(
        f"The maps of {call.name} have {rows} rows for {len(factor)} examples, and nothing says whose target each row "
        "belongs to. Capture without a target, or one example at a time."
    )


def detach_output(output: Any) -> Any:
    """Return a model's output without the graph that gradients were computed with."""
    return tree_map(lambda value: value.detach() if isinstance(value, Tensor) else value, output)

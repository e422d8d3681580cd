"""Make what a trace holds around the heads of a stream that was followed, verified against what the model wrote."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.trace.residual import DirectPath, Normalization, Residual, Unembedding
from headscope.engine.model import Model
from headscope.engine.recording.output_projection import describe_lack, has_projection, output_bias, output_slices
from headscope.engine.recording.recorder import AttentionCall
from headscope.engine.recording.stream import Prediction, Stream, Write

Arrange = Callable[[Tensor], Tensor]
"""Puts vectors, in the axes of the model, into those of a trace: batch, query, hidden."""


class NotFoundError(Exception):
    """What is around the heads was not found; the text says why."""


@dataclass(frozen=True)
class Layer:
    """One attention call with what is known of it."""

    call: AttentionCall
    write: Write
    summed: Float[Tensor, "batch query hidden"]  # what all heads write
    bias: Float[Tensor, " hidden"] | None
    arrange: Arrange

    @property
    def output(self) -> Float[Tensor, "batch query hidden"]:
        """What the heads and the bias wrote."""
        return self.summed if self.bias is None else self.summed + self.bias


def find_layers(
    model: Model, stream: Stream, calls: Mapping[int, AttentionCall], real: Bool[Tensor, "batch query"]
) -> list[Layer]:
    """Return what is known of each call; raise NotFoundError where heads do not write what their projection returned.

    `calls` are attention calls by their place among all of the site.
    """
    return [_find_layer(model, stream, place, call, real) for place, call in calls.items()]


def _find_layer(model: Model, stream: Stream, place: int, call: AttentionCall, real: Tensor) -> Layer:
    if not has_projection(model, call.name):
        raise NotFoundError(describe_lack(call.name))
    if place not in stream.writes:
        raise NotFoundError(f"In {call.name} nothing was found that all heads write through one output projection.")
    write = stream.writes[place]
    output = write.output.tensor.detach()
    batch, heads, queries, _ = call.context.shape
    slices = output_slices(model, call.name, range(heads), heads)
    bias = output_bias(model, call.name)
    dtype = torch.promote_types(output.dtype, torch.float32)
    joined = call.context.nan_to_num().transpose(1, 2).flatten(2).to(dtype)
    summed = joined @ slices.flatten(0, 1).to(dtype)
    for arrange in _list_arrangements(tuple(output.shape), (batch, queries, stream.hidden)):
        layer = Layer(call, write, summed, None if bias is None else bias.to(dtype), arrange)
        if _agree(layer.output, arrange(output), real):
            return layer
    raise NotFoundError(
        f"In {call.name} what the heads write through the output projection is not what it returned, so something else "
        "happens to it, or its tokens are in another order."
    )


def _list_arrangements(shape: tuple[int, ...], wanted: tuple[int, int, int]) -> list[Arrange]:
    batch, queries, hidden = wanted
    found: list[Arrange] = [partial(torch.reshape, shape=wanted)] if prod(shape) == prod(wanted) else []
    if shape == (queries, batch, hidden):
        found.append(partial(torch.transpose, dim0=0, dim1=1))
    return found


def _agree(ours: Tensor, theirs: Tensor, real: Bool[Tensor, "batch query"]) -> bool:
    """Whether two tensors are the same for real queries, but for roundings."""
    mask = real.to(theirs.device)[..., None]
    difference = torch.linalg.vector_norm(torch.where(mask, ours - theirs.to(ours), 0))
    return bool(difference <= _tolerance(theirs) * torch.linalg.vector_norm(torch.where(mask, theirs.to(ours), 0)))


def _tolerance(tensor: Tensor) -> float:
    return 2e-2 if tensor.dtype in (torch.float16, torch.bfloat16) else 1e-4


def make_residual(stream: Stream, layer: Layer, real: Bool[Tensor, "batch query"], *, last: bool) -> Residual:
    """Return what is around the heads of a layer; raise NotFoundError where it cannot be told or does not fit."""
    write, name = layer.write, layer.call.name
    if write.inputs is None or write.sum is None or write.lost:
        raise NotFoundError(
            f"What the heads of {name} write was not seen to be added to what its residual connection carries, so it "
            "is not known what they are added to."
        )
    shared = write.inputs.tensor.shape == write.output.tensor.shape
    norm = stream.find_norm(write)
    if not shared or (norm is None and not last and not stream.goes_on(write)):
        raise NotFoundError(f"It is not known what becomes of the sum of what {name} writes and its input.")
    written, norm = _arrange_norm(write.written, layer), _arrange_norm(norm, layer)
    inputs = layer.arrange(write.inputs.tensor.detach())
    added = layer.output if written is None else written.apply(layer.output)
    added = added if written is None or written.bias is None else added + written.bias.to(added)
    outputs = inputs + added.to(inputs)
    if write.outputs is not None:
        outputs = layer.arrange(write.outputs.tensor.detach())
        if not _agree(inputs + added, outputs, real):
            raise NotFoundError(
                f"After {name} the sum of its input and of what its heads write is not what the model goes on with."
            )
    return Residual(inputs, outputs, layer.bias, written, norm)


def _arrange_norm(norm: Normalization | None, layer: Layer) -> Normalization | None:
    """Return a normalization with its scale in the axes of a trace."""
    if norm is None:
        return None
    wide = norm.scale[..., None].expand(*norm.scale.shape, norm.weight.shape[0])
    return replace(norm, scale=layer.arrange(wide)[..., 0])


def find_direct_path(
    stream: Stream, layers: Sequence[Layer], places: Collection[int], prediction: Prediction | None
) -> DirectPath:
    """Follow the direction in which a prediction reads the last vectors of the stream back to every layer.

    `layers` are all of the site; those whose place is not wanted are among the other parts of the score. Raise
    NotFoundError if the parts of the stream, each along its direction, do not sum to what is read of the stream.
    """
    if stream.last is None or prediction is None:
        raise NotFoundError("The prediction does not read the vectors to which the heads of this site add.")
    direction, score = prediction.direction, prediction.score
    by_write = {id(layer.write): layer for layer in layers}
    arrange = layers[0].arrange
    whole = _sum_rows(arrange(stream.undo_arrangement(direction * stream.last[1].detach())))
    parts = {name: torch.zeros_like(whole) for name in ("input", "others", "biases")}
    directions: dict[int, Tensor] = {}
    heads, other_heads = torch.zeros_like(whole), torch.zeros_like(whole)
    for node, reads in stream.walk_back(direction):
        if node.norm is not None and node.norm.bias is not None:
            parts["biases"] += _sum_rows(arrange(reads * node.norm.bias.to(reads)))
        if node.write is not None and id(node.write) in by_write:
            layer = by_write[id(node.write)]
            directions[node.write.place] = layer.arrange(reads)
            sums = heads if node.write.place in places else other_heads
            sums += _sum_rows(directions[node.write.place] * layer.summed)
            if layer.bias is not None:
                parts["biases"] += _sum_rows(directions[node.write.place] * layer.bias.to(reads))
        elif not node.parents:
            if node.value is None:
                raise NotFoundError("It is not known what the residual stream is made of.")
            parts["input" if node.age < stream.first else "others"] += _sum_rows(
                arrange((reads * node.value.tensor.detach()).expand_as(reads))
            )
    parts["others"] += other_heads
    missing = (whole - heads - sum(parts.values())).abs()
    sizes = _sum_rows(arrange(stream.undo_arrangement((direction * stream.last[1].detach()).abs())))
    if not bool((missing <= _tolerance(direction) * (sizes + heads.abs() + parts["others"].abs())).all()) or len(
        directions
    ) < len(layers):
        raise NotFoundError(
            "What the model adds to its residual stream, followed to the prediction, does not sum to what the "
            "prediction reads there."
        )
    parts["head"] = score.double() - whole
    return DirectPath([directions[place] for place in places], parts, score.double(), prediction.linear)


def find_unembedding(
    stream: Stream, layers: Sequence[Layer], places: Collection[int], real: Bool[Tensor, "batch query"]
) -> Unembedding:
    """Return how the logit of each token's own word reads what the heads of each layer write, at any query.

    On the way are normalizations alone: they do the same to all queries of a layer, but for one number each. What they
    do to a probe says how large that is. Raise NotFoundError where there is no unembedding, or another way.
    """
    if stream.unembedding is None:
        raise NotFoundError(NO_UNEMBEDDING)
    direction = stream.unembedding
    noise = torch.linspace(1, 100, direction.shape[-1], dtype=direction.dtype, device=direction.device).sin()
    paths = []
    for reads in (direction, noise.expand_as(direction)):
        path = find_direct_path(stream, layers, places, Prediction(_sum_rows(reads), reads, linear=True))
        paths.append([part.to(torch.promote_types(part.dtype, torch.float32)) for part in path.directions])
    own, probe = paths
    factors = [torch.linalg.vector_norm(part, dim=-1) for part in probe]
    for part, factor in zip(probe, factors, strict=True):
        units = (part / factor[..., None])[real.to(part.device)]
        if not _is_close(units, units[:1].expand_as(units)):
            raise NotFoundError(
                "What a layer writes reaches the logits in several ways, which differ from query to query, so that "
                "there is no one direction for each word."
            )
    return Unembedding([part / factor[..., None] for part, factor in zip(own, factors, strict=True)], factors)


NO_UNEMBEDDING = (
    "It has no unembedding, through which logits of words are linear in the residual stream: it was loaded without the "
    "head of a language model, or that head has a layer of its own, as BERT's."
)


def _is_close(ours: Tensor, theirs: Tensor) -> bool:
    return bool(torch.linalg.vector_norm(ours - theirs) <= _tolerance(theirs) * torch.linalg.vector_norm(theirs))


def _sum_rows(products: Tensor) -> Float[Tensor, " batch"]:
    return products.double().flatten(1).sum(1)

"""Build a trace from queries, keys and values, and compare A·V with what the heads wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from numbers import Real
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.core.trace import Trace, at_least_float32
from headscope.core.trace.from_tensors import build_trace, to_layers, to_masks, to_tokens
from headscope.version import __version__

NOT_CHECKED = "A·V not checked"
LARGEST = {torch.float16: 2e-2, torch.bfloat16: 2e-2}
"""The largest difference between A·V and a context that counts as rounding, as a share of the largest value."""


@dataclass(frozen=True)
class LayerScores:
    """How the attention of one layer follows from the products of queries and keys."""

    scale: float
    soft_cap: float | None = None
    window: int | None = None
    sinks: Float[Tensor, " head"] | None = None
    bias: Float[Tensor, "_ _ query key"] | None = None

    def __call__(
        self,
        queries: Float[Tensor, "batch head query size"],
        keys: Float[Tensor, "batch _ key size"],
        visible: Bool[Tensor, "batch query key"],
    ) -> Float[Tensor, "batch head query key"]:
        """Return the softmax over visible keys and the sink; rows that see nothing are 0."""
        batch, _, count, size = queries.shape
        grouped = at_least_float32(queries).reshape(batch, keys.shape[1], -1, count, size)  # batch group head …
        scores = (grouped @ at_least_float32(keys)[:, :, None].mT).flatten(1, 2) * self.scale
        if self.soft_cap is not None:
            scores = torch.tanh(scores / self.soft_cap) * self.soft_cap
        if self.bias is not None:
            scores = scores + self.bias
        scores = scores.masked_fill(~visible[:, None], -torch.inf)
        if self.sinks is None:
            weights = scores.softmax(-1)
        else:  # the sink is one more key, which has no value
            sinks = self.sinks.to(scores)[:, None, None].expand(*scores.shape[:3], 1)
            weights = torch.cat([scores, sinks], dim=-1).softmax(-1)[..., :-1]
        masked: Tensor = weights.masked_fill(~visible.any(-1)[:, None, :, None], 0)
        return masked

    def describe(self) -> dict[str, Any]:
        """Return what is plain of it, for the provenance."""
        facts = {"scale": self.scale, "soft_cap": self.soft_cap, "window": self.window}
        flags = {"sinks": self.sinks is not None, "bias": self.bias is not None}
        return {name: fact for name, fact in (facts | flags).items() if fact is not None and fact is not False}


@dataclass
class GivenTensors:
    """The source of a trace that is computed from queries, keys and values: how, and whether that was checked."""

    facts: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        """Return the facts."""
        return self.facts


def compute_trace(
    queries: Any,
    keys: Any,
    values: Any,
    tokens: Any,
    *,
    scale: Any,
    visible: Any,
    window: Any = None,
    soft_cap: Any = None,
    sinks: Any = None,
    bias: Any = None,
    context: Any = None,
    output: Any = None,
    key_tokens: Any = None,
) -> Trace:
    """See `Trace.from_qkv`."""
    sides = {
        name: _to_heads(layers, name) for name, layers in (("queries", queries), ("keys", keys), ("values", values))
    }
    query_layers, key_layers, value_layers = sides.values()
    _check_sides(query_layers, key_layers, value_layers)
    batch, heads, count, _ = query_layers[0].shape
    width, layers, device = key_layers[0].shape[2], len(query_layers), query_layers[0].device
    query_side = to_tokens(tokens, batch, count, "tokens", device)
    if key_tokens is None and count != width:
        raise InputError(f"There are {count} queries for {width} keys; give the tokens attended to as key_tokens=…")
    key_side = query_side if key_tokens is None else to_tokens(key_tokens, batch, width, "key_tokens", device)
    shape = batch, heads, count, width
    rules = _read_rules(layers, shape, scale=scale, soft_cap=soft_cap, window=window, sinks=sinks, bias=bias)
    masks = _make_masks(visible, rules, query_side.real[:, :, None] & key_side.real[:, None, :])
    written = None if context is None else _to_context(context, query_layers, value_layers)
    attention, differences = [], []
    for layer, rule in enumerate(rules):
        weights = rule(query_layers[layer], key_layers[layer], masks[layer])
        if written is not None:
            tensors = weights, value_layers[layer], written[layer], masks[layer]
            differences.append(check_context(layer, *tensors, explain=_explain(rule)))
        attention.append(weights.to(query_layers[layer].dtype))
    trace = build_trace(
        attention,
        query_side,
        values=value_layers,
        visible=masks,
        output=output,
        keys=None if key_tokens is None else key_side,
    )
    facts = {"attention": "computed from queries, keys and values", "scores": _describe(rules)}
    groups = {heads // layer.shape[1] for layer in value_layers}
    trace = replace(trace, group=groups.pop() if len(groups) == 1 else 1)
    return add_context(trace, facts, written, differences)


def add_context(
    trace: Trace, facts: Mapping[str, Any], context: Sequence[Tensor] | None, differences: Sequence[float]
) -> Trace:
    """Return a trace with what the heads wrote, and with a source that says where it is from and how it was checked."""
    checked = f"A·V differs by {max(differences):.1e} at most" if differences else NOT_CHECKED
    hidden = None if context is None else _hide_padding(context, trace.visible)
    source = GivenTensors({"version": __version__, **facts, "context": checked})
    return replace(trace, context=hidden, source=source, note="" if differences else NOT_CHECKED)


def _to_heads(layers: Any, name: str) -> list[Tensor]:
    """Return one tensor `batch head token size` per layer."""
    tensors = [tensor[None] if tensor.ndim == 3 else tensor for tensor in to_layers(layers, name)]
    for layer, tensor in enumerate(tensors):
        if tensor.ndim != 4 or 0 in tensor.shape:
            raise InputError(
                f"{name}[{layer}] has shape {list(tensor.shape)}, not [batch, head, token, size]. Heads side by side "
                "are put apart with tensor.unflatten(-1, (heads, -1)).transpose(1, 2)."
            )
    return tensors


def _check_sides(queries: Sequence[Tensor], keys: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Raise InputError unless queries, keys and values of each layer fit, and all layers are of one site."""
    for name, side in (("keys", keys), ("values", values)):
        if len(side) != len(queries):
            raise InputError(f"{name} has {len(side)} layer(s), but queries has {len(queries)}.")
    first = (*queries[0].shape[:3], keys[0].shape[2])
    for layer, (query, key, value) in enumerate(zip(queries, keys, values, strict=True)):
        shapes = f"queries {list(query.shape)}, keys {list(key.shape)} and values {list(value.shape)}"
        if key.shape[:3] != value.shape[:3] or query.shape[0] != key.shape[0] or query.shape[3] != key.shape[3]:
            raise InputError(
                f"In layer {layer} the shapes do not fit: {shapes}. Give [batch, head, token, size], with as many keys "
                "as values, and queries as wide as keys."
            )
        if query.shape[1] % key.shape[1]:
            raise InputError(
                f"In layer {layer} {query.shape[1]} query heads cannot share {key.shape[1]} key heads: {shapes}. Where "
                "heads share keys and values, each is for the same number of consecutive query heads."
            )
        if (*query.shape[:3], key.shape[2]) != first:
            raise InputError(
                f"Layer {layer} has {shapes}, which does not fit layer 0 with queries {list(queries[0].shape)} and "
                f"keys {list(keys[0].shape)}. Give the layers of one site; other sites make a trace of their own."
            )


def _read_rules(
    layers: int, shape: tuple[int, int, int, int], *, scale: Any, soft_cap: Any, window: Any, sinks: Any, bias: Any
) -> list[LayerScores]:
    """Return how each layer computes its attention; what is given once is for all layers."""
    columns = {
        "scale": _read_numbers(scale, "scale", layers),
        "soft_cap": _read_numbers(soft_cap, "soft_cap", layers, optional=True),
        "window": _read_numbers(window, "window", layers, optional=True),
        "sinks": _read_tensors(sinks, "sinks", layers, (shape[1],)),
        "bias": _read_tensors(bias, "bias", layers, shape),
    }
    for layer, number in enumerate(columns["window"]):
        if number is not None and number != int(number):
            raise InputError(f"window[{layer}] is {number:g}, not a number of keys.")
    columns["window"] = [None if number is None else int(number) for number in columns["window"]]
    return [LayerScores(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _read_numbers(numbers: Any, name: str, layers: int, *, optional: bool = False) -> list[Any]:
    """Return one positive number per layer, or None where a layer may have none."""
    per_layer = [numbers] * layers if numbers is None or isinstance(numbers, Real) else list(numbers)
    none = "None for a layer without, " if optional else ""
    wrong = [number for number in per_layer if not (_is_positive(number) or (optional and number is None))]
    if wrong or len(per_layer) != layers:
        raise InputError(
            f"{name} must be a positive number, or a list with one for each of {layers} layers, {none}but got "
            f"{numbers!r}. It is what the model uses, and is in its config or code."
        )
    return [None if number is None else float(number) for number in per_layer]


def _is_positive(number: Any) -> bool:
    return not isinstance(number, bool) and isinstance(number, Real) and 0 < float(number) < inf


def _read_tensors(tensors: Any, name: str, layers: int, shape: tuple[int, ...]) -> list[Tensor | None]:
    """Return one tensor per layer that can be expanded to a shape; None where a layer has none."""
    if tensors is None:
        return [None] * layers
    if not isinstance(tensors, Sequence) or len(tensors) != layers:
        raise InputError(f"{name} must be a list with a tensor, or None, for each of {layers} layers.")
    read: list[Tensor | None] = []
    for layer, tensor in enumerate(tensors):
        values = None if tensor is None else to_layers([tensor], f"{name} of layer {layer}")[0]
        if values is not None and len(shape) == 4 and values.ndim == 3:
            values = values[None]
        if values is not None and not _fits(values, shape):
            raise InputError(f"{name}[{layer}] has shape {list(values.shape)}, which does not fit {list(shape)}.")
        if values is not None and bool((values < torch.finfo(values.dtype).min / 2).any()):
            raise InputError(f"{name}[{layer}] hides keys. Say which keys a query sees with visible=…")
        read.append(values)
    return read


def _fits(tensor: Tensor, shape: Sequence[int]) -> bool:
    """Whether a tensor has a shape, or 1 in place of the batch or the heads."""
    if tensor.ndim != len(shape):
        return False
    exact = len(shape) - 2 if len(shape) == 4 else 0
    sizes = enumerate(zip(tensor.shape, shape, strict=True))
    return all(actual == size or (actual == 1 and axis < exact) for axis, (actual, size) in sizes)


def _make_masks(visible: Any, rules: Sequence[LayerScores], real: Tensor) -> list[Tensor]:
    """Return which keys each query sees; layers with the same window and mask share a tensor."""
    windows = [rule.window for rule in rules]
    if any(windows) and not (isinstance(visible, str) and visible == "causal"):
        raise InputError(
            "window= is the number of keys that a query sees under a causal mask, its own included: say "
            "visible='causal'. Give any other window as a boolean tensor for each layer: visible=[…]."
        )
    if visible is None:
        raise InputError("Say which keys a query sees: visible='causal', 'all', or a boolean tensor, or one per layer.")
    masks = to_masks(visible, len(rules), real)
    shared: dict[Any, Tensor] = {}
    for mask, window in zip(masks, windows, strict=True):
        if (id(mask), window) not in shared:
            seen = mask & real
            first = real.shape[2] - real.shape[1] + 1  # the key of the first query, and one
            shared[id(mask), window] = seen if window is None else seen.triu(first - window)
    return [shared[id(mask), window] for mask, window in zip(masks, windows, strict=True)]


def _to_context(context: Any, queries: Sequence[Tensor], values: Sequence[Tensor]) -> list[Tensor]:
    tensors = _to_heads(context, "context")
    expected = [[*query.shape[:3], value.shape[3]] for query, value in zip(queries, values, strict=True)]
    if (shapes := [list(tensor.shape) for tensor in tensors]) != expected:
        raise InputError(
            f"context has the shapes {join_words(map(str, shapes), limit=4)}, but the layers need "
            f"{join_words(map(str, expected), limit=4)}: what each head wrote, [batch, head, query, value], before the "
            "output projection."
        )
    return tensors


def check_context(
    layer: int, weights: Tensor, values: Tensor, context: Tensor, visible: Tensor, *, explain: str
) -> float:
    """Return by how much A·V differs from what the heads wrote; raise InputError where that is more than a rounding."""
    heads, groups = weights.shape[1], values.shape[1]
    product = at_least_float32(weights) @ at_least_float32(values).repeat_interleave(heads // groups, dim=1)
    rows = visible.any(-1)[:, None, :, None]
    largest = at_least_float32(context).masked_fill(~rows, 0).abs().amax((0, 2, 3))
    floor = 1e-3 * at_least_float32(values).abs().max()  # values that cancel leave roundings of themselves
    gap = (product - at_least_float32(context)).masked_fill(~rows, 0).abs().amax((0, 2, 3))
    shares = gap / torch.maximum(largest, floor).clamp_min(1e-30)  # head
    allowed = max(LARGEST.get(tensor.dtype, 1e-4) for tensor in (values, context))
    if (difference := float(shares.max())) <= allowed:
        return difference
    wrong = join_words((shares > allowed).nonzero()[:, 0].tolist(), limit=6)
    raise InputError(
        f"A·V of layer {layer} is not the context that was given: it differs by {difference:.2g} of its largest value "
        f"in head {int(shares.argmax())}, and a rounding is {allowed:g} at most (heads {wrong} differ). {explain}"
    )


def _explain(rule: LayerScores) -> str:
    return (
        f"Computed with {_name_rule(rule)}. Likely causes: another scale; a soft cap, sinks or a bias that were not "
        "given; a window or a mask that hides other keys; queries and keys from before rotary positions were applied; "
        "query heads in another order than their key heads."
    )


def _name_rule(rule: LayerScores) -> str:
    """Return what a layer was computed with.

    >>> _name_rule(LayerScores(0.5, window=4))
    'scale 0.5, no soft cap, window 4, no sinks, no bias'
    """
    facts = rule.describe()
    return ", ".join(
        f"{name.replace('_', ' ')} {facts[name]:.6g}" if name in facts and facts[name] is not True
        else f"{'' if name in facts else 'no '}{name.replace('_', ' ')}"
        for name in ("scale", "soft_cap", "window", "sinks", "bias")
    )  # fmt: skip


def _describe(rules: Sequence[LayerScores]) -> Any:
    """Return the facts of all layers, once where they are the same."""
    facts = [rule.describe() for rule in rules]
    return facts[0] if all(fact == facts[0] for fact in facts) else facts


def _hide_padding(layers: Sequence[Tensor], masks: Sequence[Tensor]) -> list[Tensor]:
    """Return contexts with zeros in rows that see nothing."""
    return [layer * mask.any(-1)[:, None, :, None] for layer, mask in zip(layers, masks, strict=True)]

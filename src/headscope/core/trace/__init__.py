"""The attention of one batch at one attention site."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, Protocol, SupportsIndex, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.catalog import HasCard
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import count_noun, join_words
from headscope.core.tokens import Tokens

Visible = Bool[Tensor, "batch query key"]


@runtime_checkable
class CaptureSource(Protocol):
    """The model that a trace comes from."""

    facts: dict[str, Any]  # such as its name

    def describe(self) -> dict[str, Any]:
        """Return the facts with hashes of the weights and all else that decides the maps, which may take seconds."""


@dataclass(frozen=True)
class Trace(HasCard):
    """Attention, values and masks of one batch, layer by layer.

    Layers are separate tensors: their masks may differ, and so may the number of value dimensions (Gemma 4); stacking
    would copy them all. `output` shares memory with the model's weights: view a trace before you train the model.

    >>> trace.attention[0].shape  # of one layer: batch head query key
    torch.Size([1, 12, 70, 70])
    """

    site: str  # "self" | "encoder" | "decoder" | "cross", or a tower's name
    layers: tuple[int, ...]  # 0-based labels, shown as L3H7
    heads: tuple[int, ...]
    attention: Sequence[Float[Tensor, "batch head query key"]]  # A, one per layer
    visible: Sequence[Visible]  # True where a query may attend to a key
    queries: Tokens
    keys: Tokens
    examples: tuple[Example, ...]
    values: Sequence[Float[Tensor, "batch head key _"]] | None = None  # V, shared value heads repeated; _ is value
    gradient: Sequence[Float[Tensor, "batch head query key"]] | None = None  # d target / d A, 0 where no key is visible
    context: Sequence[Float[Tensor, "batch head query _"]] | None = None  # Z = A·V as the model computed it
    output: Sequence[Float[Tensor, "head _ hidden"]] | None = None  # slices of W_O
    held: frozenset[str] = frozenset({"attention"})
    sites: tuple[str, ...] = ("self",)  # all sites of the model
    group: int = 1  # consecutive heads that share their values (grouped-query attention)
    source: CaptureSource | None = None  # the model, for the provenance of saved maps
    pruned: frozenset[tuple[int, int]] = frozenset()  # layer and head of pruned heads, whose attention is NaN
    modules: tuple[str, ...] = ()  # the attention module of each layer, as the network names it
    absent: Mapping[str, str] = field(default_factory=dict)  # what the model does not have, such as "output", and why
    model_output: Any = None  # what the network's forward returned: logits, loss, last_hidden_state, …
    other_layers: tuple["Trace", ...] = ()  # layers whose maps have other shapes or hold other tokens (Swin, SAM 2)

    def __repr__(self) -> str:
        others = [site for site in self.sites if site != self.site]
        also = f"; also: {', '.join(others)}" if others else ""
        also += f"; {count_noun(len(self.pruned), 'head')} pruned" if self.pruned else ""
        also += f"; other_layers: {self.describe_other_layers()}" if self.other_layers else ""
        return (
            f"Trace({self.site} attention of {count_noun(len(self.examples), 'example')}, "
            f"{count_noun(len(self.layers), 'layer')} × {count_noun(len(self.heads), 'head')}, "
            f"up to {int(self.keys.counts.max())} tokens; holds {', '.join(sorted(self.held))}{also})"
        )

    def describe_other_layers(self) -> str:
        """Return which layers the traces of `other_layers` hold, such as "[2, 3] and [4]"."""
        return join_words(str(list(trace.layers)) for trace in self.other_layers)

    @classmethod
    def of(
        cls,
        attentions: Any,
        tokens: Any,
        *,
        values: Any = None,
        visible: Any = None,
        output: Any = None,
        keys: Any = None,
        gradient: Any = None,
    ) -> "Trace":
        """Build a trace from tensors, such as a model's `attentions`.

        Parameters
        ----------
        attentions
            One tensor `[batch, head, query, key]` or `[head, query, key]` for each layer.
        tokens
            The tokens of the queries: strings, a list of them for each row, or Tokens.
        values
            One tensor `[batch, head, key, value]` for each layer.
        visible
            "all", "causal", or a boolean tensor `[batch, query, key]` for all layers, or one for each.
        output
            One tensor `[head, value, hidden]` for each layer: W_O.
        keys
            The tokens attended to, where they are not `tokens`.
        gradient
            One tensor like that of `attentions` for each layer.

        >>> import torch
        >>> trace = Trace.of([torch.full((1, 2, 3, 3), 1 / 3)], ["a", "b", "c"])
        >>> trace.layers, trace.heads
        ((0,), (0, 1))
        """
        from headscope.core.trace.from_tensors import build_trace

        optional = {"values": values, "output": output, "gradient": gradient}
        return build_trace(attentions, tokens, visible=visible, keys=keys, **optional)


def select_labels(labels: Sequence[int], wanted: Any, what: str) -> tuple[int, ...]:
    """Return the wanted labels: an integer, several, or None for all. Negative numbers count from the end of `labels`.

    >>> select_labels((2, 4), [4, -2], "layer")
    (4, 2)
    """
    if wanted is None:
        return tuple(labels)
    wanted_list = [wanted] if np.ndim(wanted) == 0 else list(wanted)
    if not wanted_list:
        raise InputError(f"{what}s={wanted!r} asks for no {what} at all. Leave it out to get every {what}.")
    if strange := [
        number for number in wanted_list if not isinstance(number, SupportsIndex) or isinstance(number, bool)
    ]:
        raise InputError(f"A {what} is an integer from {labels[0]} to {labels[-1]}, but got {strange[0]!r}.")
    return tuple(_select_label(labels, index(number), what) for number in wanted_list)


def _select_label(labels: Sequence[int], number: int, what: str) -> int:
    if number in labels:
        return number
    if -len(labels) <= number < 0:
        return labels[number]
    contiguous = len(labels) > 2 and list(labels) == list(range(labels[0], labels[-1] + 1))
    listed = f"{labels[0]} to {labels[-1]}" if contiguous else join_words(labels)
    plural = "s" if len(labels) > 1 else ""
    raise InputError(f"There is no {what} {number} here, only {what}{plural} {listed}.")


def at_least_float32(tensor: Tensor) -> Tensor:
    """Convert half precision to float32; float64 stays."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()

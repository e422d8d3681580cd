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
from headscope.core.trace.residual import DirectPath, Residual, Unembedding

Visible = Bool[Tensor, "batch query key"]


@runtime_checkable
class CaptureSource(Protocol):
    """The model that a trace comes from."""

    facts: dict[str, Any]  # such as its name

    def describe(self) -> dict[str, Any]:
        """Return the facts with hashes of the weights and all else that decides the maps, which may take seconds."""


@runtime_checkable
class Block(Protocol):
    """The whole of a layer around its heads, with feed-forward, norms and residual connections, to be run again."""

    @property
    def output(self) -> Float[Tensor, "batch query hidden"]:
        """What it returned when it was captured."""

    def __call__(self, contexts: Float[Tensor, "row head query value"]) -> Float[Tensor, "row query hidden"]:
        """Return what it returns if all its heads write something else, with the weights that the model has now.

        Parameters
        ----------
        contexts
            What the heads write instead of `Trace.context`, for one or more copies of the batch, one after the other.
        """


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
    blocks: Sequence[Block] | None = None  # the layers around the heads, to run them again
    residual: Sequence[Residual] | None = None  # what is around the heads of each layer
    readout: DirectPath | None = None  # how the target reads what they write
    unembedding: Unembedding | None = None  # how the logits of the text's own words read what they write
    held: frozenset[str] = frozenset({"attention"})
    sites: tuple[str, ...] = ("self",)  # all sites of the model
    group: int = 1  # consecutive heads that share their values (grouped-query attention)
    source: CaptureSource | None = None  # the model, for the provenance of saved maps
    pruned: frozenset[tuple[int, int]] = frozenset()  # layer and head of pruned heads, whose attention is NaN
    modules: tuple[str, ...] = ()  # the attention module of each layer, as the network names it
    absent: Mapping[str, str] = field(default_factory=dict)  # what the model does not have, such as "output", and why
    model_output: Any = None  # what the network's forward returned: logits, loss, last_hidden_state, …
    other_layers: tuple["Trace", ...] = ()  # layers whose maps have other shapes or hold other tokens (Swin, SAM 2)
    note: str = ""  # what a reader of this trace should know of it, such as that nothing confirms its maps

    def __repr__(self) -> str:
        others = [site for site in self.sites if site != self.site]
        also = f"; also: {', '.join(others)}" if others else ""
        also += f"; {count_noun(len(self.pruned), 'head')} pruned" if self.pruned else ""
        also += f"; {self.queries.real.shape[1]:,} of its queries" if self.queries.position is not None else ""
        also += f"; other_layers: {self.describe_other_layers()}" if self.other_layers else ""
        also += f"; {self.note}" if self.note else ""
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

    @classmethod
    def from_qkv(
        cls,
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
    ) -> "Trace":
        """Compute attention from queries, keys and values, for engines that show no more than these.

        Attention is softmax(cap · tanh(scale · q·k / cap) + bias) over visible keys. Nothing of it is guessed from the
        tensors: None says that the model has no soft cap, window, sinks or bias. Give `context` where you can: then
        A·V of each layer is compared with it, and an error says in which layer they differ. Without it the trace says
        that nothing confirms its maps.

        Parameters
        ----------
        queries, keys, values
            One tensor `[batch, head, token, size]` or `[head, token, size]` for each layer, after rotary positions and
            norms of queries and keys. Fewer heads of keys and values are shared by consecutive heads of queries.
        tokens
            The tokens of the queries: strings, a list of them for each row, or Tokens.
        scale
            What products of queries and keys are multiplied with: a number, or one for each layer.
        visible
            "all", "causal", or a boolean tensor `[batch, query, key]` for all layers, or one for each.
        window
            How many keys a query sees at most under a causal mask, its own included: a number, or a number or None for
            each layer.
        soft_cap
            The cap of the scores (Gemma 2): a number, or a number or None for each layer.
        sinks
            A tensor `[head]` of scores of a key without a value (gpt-oss), or None, for each layer.
        bias
            A tensor `[batch, head, query, key]`, with 1 in place of batch or head where they share it, that is added to
            the scores (T5, ALiBi), or None, for each layer.
        context
            What the heads wrote, before the output projection: one tensor `[batch, head, query, value]` for each layer.
            A·V may differ by 1e-4 of the largest number of a head, in half precision by 2e-2.
        output
            One tensor `[head, value, hidden]` for each layer: W_O.
        key_tokens
            The tokens attended to, where they are not `tokens`.

        >>> import torch
        >>> queries, keys, values = torch.ones(1, 4, 3, 8), torch.ones(1, 2, 3, 8), torch.ones(1, 2, 3, 8)
        >>> Trace.from_qkv([queries], [keys], [values], ["a", "b", "c"], scale=8**-0.5, visible="causal")
        Trace(self attention of 1 example, 1 layer × 4 heads, up to 3 tokens; holds attention, values; A·V not checked)
        """
        from headscope.core.trace.from_qkv import compute_trace

        rules = {"scale": scale, "visible": visible, "window": window, "soft_cap": soft_cap, "sinks": sinks}
        return compute_trace(
            queries, keys, values, tokens, **rules, bias=bias, context=context, output=output, key_tokens=key_tokens
        )

    @classmethod
    def from_transformer_lens(cls, model: Any, cache: Any, tokens: Any, *, visible: Any = None) -> "Trace":
        """Read a cache of TransformerLens, of a HookedTransformer, a HookedEncoder or a TransformerBridge.

        Patterns are taken as the model computed them, and compared with what its heads wrote (`hook_z`). Which keys
        each query sees is read from the scores after the mask (`hook_attn_scores`). A cache without patterns gives
        them from queries and keys, with the scale, the soft cap, the windows and the sinks of a HookedTransformer.

        Parameters
        ----------
        model
            The model that filled the cache.
        cache
            What `model.run_with_cache` returns, of all layers or some; all of them must be on one device.
        tokens
            The ids that the model read, or strings: a list of them for each row, without padding.
        visible
            "all", "causal", or a boolean tensor `[batch, query, key]` for all layers, or one for each. Needed only
            where the cache holds no scores, and the config does not say it.

        >>> trace = hs.Trace.from_transformer_lens(hooked, hooked.run_with_cache(ids)[1], ids)  # doctest: +SKIP
        """
        from headscope.core.trace.from_transformer_lens import read_cache

        return read_cache(model, cache, tokens, visible=visible)

    @classmethod
    def from_nnsight(cls, calls: Any, tokens: Any, *, output: Any = None, key_tokens: Any = None) -> "Trace":
        """Read calls of the attention functions of transformers, as nnsight saves them.

        A call says all that attention is computed from: queries, keys and values after rotary positions, mask, scale,
        soft cap, window and sinks, and what the heads wrote, with which A·V is compared.

        Parameters
        ----------
        calls
            For each layer `(inputs, output)` of the line of its source that calls `attention_interface`.
        tokens
            The tokens that the model read, as strings: a list of them for each row, without padding.
        output
            One tensor `[head, value, hidden]` for each layer: W_O.
        key_tokens
            The tokens attended to, where they are not `tokens`.

        >>> with model.trace(text):  # doctest: +SKIP
        ...     lines = [layer.self_attn.source.attention_interface_1 for layer in model.model.layers]
        ...     calls = nnsight.save([(line.inputs, line.output) for line in lines])
        >>> trace = hs.Trace.from_nnsight(calls, tokens)  # doctest: +SKIP
        """
        from headscope.core.trace.from_nnsight import read_calls

        return read_calls(calls, tokens, output=output, key_tokens=key_tokens)


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

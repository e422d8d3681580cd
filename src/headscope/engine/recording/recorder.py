"""Record what a model's attention modules compute during a forward pass."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from headscope.core.errors import CaptureError, InputError
from headscope.engine.model import Model
from headscope.engine.pruning.kept_heads import KeptHeads
from headscope.engine.recording.layout import Arguments, Layout, expand_regions, join_layouts

if TYPE_CHECKING:
    from headscope.engine.recording.blocks import Blocks


@dataclass(frozen=True)
class AttentionCall:
    """What one attention module computed in one call."""

    name: str  # of the module
    attention: Float[Tensor, "batch head query key"]
    values: Float[Tensor, "batch _ key value"]  # _ is less than head where heads share values (GQA)
    context: Float[Tensor, "batch head query value"]
    mask: Tensor | None
    group: int = 1  # number of consecutive heads whose values were repeated
    missing: tuple[int, ...] = ()  # heads that were pruned, which are zero here
    line: int = 0  # of the module's code, which tells several computations of one call apart
    layout: Layout | None = None  # which tokens of pictures its rows hold, where that is known

    def visible(self) -> Bool[Tensor, "#batch #query key"] | None:
        """Return which keys each query may see, from the mask that the module was given; None means all."""
        if self.mask is None:
            return None
        mask = self.mask[..., : self.attention.shape[-1]]
        # a mask of numbers is added to the scores: about 0 for visible keys, about the lowest number for hidden ones
        visible = mask if mask.dtype == torch.bool else mask > lowest_score(mask.dtype) / 2
        if visible.shape[1] > 1 and not torch.equal(visible, visible[:, :1].expand_as(visible)):
            raise CaptureError(f"In {self.name} heads differ in the keys they see, which a trace cannot hold.")
        return visible[:, 0]


def find_module(name: str) -> str:
    """Return the name of the module that computed what has a name.

    >>> find_module("layers.0.attention#2")
    'layers.0.attention'
    """
    return name.partition("#")[0]


def lowest_score(dtype: torch.dtype) -> float:
    """Return what a mask adds to the scores of hidden keys; some softmax functions compute in float32, also of float64.

    >>> lowest_score(torch.float64) == torch.finfo(torch.float32).min
    True
    """
    return torch.finfo(torch.float32 if dtype == torch.float64 else dtype).min


def repeat_value_heads(
    values: Float[Tensor, "batch _ key value"], heads: int
) -> Float[Tensor, "batch {heads} key value"]:
    """Repeat values that several heads share (grouped-query attention), so that each head has its own."""
    groups = heads // max(1, values.shape[1])
    return values.repeat_interleave(groups, dim=1) if groups > 1 else values


def restore_heads(call: AttentionCall, kept_heads: KeptHeads, *, keeps_graph: bool) -> AttentionCall:
    """Return a call with the heads that a module had before some were pruned; those are zero.

    With `keeps_graph`, the context is computed again from the attention, so that its gradient can be asked for.
    """
    attention = kept_heads.expand(call.attention)
    attention = start_graph(attention) if keeps_graph else attention  # of a layer without heads
    values = kept_heads.expand(repeat_value_heads(call.values, call.attention.shape[1]))
    context = attention @ values if keeps_graph else kept_heads.expand(call.context)
    return replace(call, attention=attention, values=values, context=context, missing=tuple(kept_heads.missing))


@dataclass
class Recorder:
    """Keeps the attention calls at one site, in order, and counts those of every module.

    The order of calls numbers the layers: one module may serve all of them (ALBERT), and some modules have no number.
    Only where some layers have no attention (Qwen3-Next), the numbers of the modules do: see `Sites.number`.
    """

    names: Mapping[Any, str]  # of the model's modules
    find_site: Callable[[str], str]  # from a module's name
    site: str
    on_call: Callable[["Recorder"], None] | None = None  # called after each call at the site
    on_context: Callable[[str, Tensor], None] | None = None  # called with a module's name and context, at whatever site
    marks_forwards: bool = False  # whether hooks reset `running` when a module is called
    keeps_graph: bool = False  # whether a gradient will be asked for
    reads_pictures: bool = False
    blocks: "Blocks | None" = None  # where queries are seen some at a time, and `calls` stays empty
    calls: list[AttentionCall] = field(default_factory=list)
    graph: list[Tensor] = field(default_factory=list)  # the attention of `calls`, as the model goes on with it
    gradients: list[Tensor] = field(default_factory=list)  # of a target, with respect to `graph`
    modules: Counter[str] = field(default_factory=Counter)  # number of calls of each module
    followed: Counter[str] = field(default_factory=Counter)  # of those, calls without the attention interface
    stream: Any = None  # the Stream that was followed in the same pass
    model_output: Any = None  # what the network's forward returned
    running: str = ""  # the module that computed attention last, until it is called again
    lines: list[int] = field(default_factory=list)  # where it did in this call
    arguments: Arguments = field(default_factory=Arguments)  # of the module that runs
    sequences: list[AttentionCall] = field(default_factory=list)  # those of the running module that are done
    paused: bool = False  # while `on_call` runs: what it calls itself is not part of the pass

    @property
    def sites(self) -> list[str]:
        """The sites at which attention was computed."""
        return sorted(set(map(self.find_site, self.modules)))

    def begin(self, arguments: Arguments) -> None:
        """Note that an attention module is called."""
        self.check_sequences_are_complete()
        self.running, self.arguments = "", arguments

    def record(self, call: AttentionCall) -> None:
        """Keep a call if it is at the requested site; of sequences that lie end to end, when the last is there."""
        if self.paused:
            return
        if self._is_sequence(call):
            self.sequences.append(call)
            if len(self.sequences) < len(self.arguments.lengths):
                return
            self._check_sequences_have_no_graph(call.name)
            context = torch.cat([part.context for part in self.sequences], dim=2)
            call = join_sequences(self.sequences, self.arguments.lengths)
            self.sequences.clear()
        else:
            self.check_sequences_are_complete()
            context = call.context
        call, repeats = self._name(call)
        self.modules[call.name] += 1
        if self.on_context is not None:
            self.on_context(call.name, context)
        if self.find_site(call.name) != self.site:
            return
        if repeats:
            raise several_maps(call.name, reads_pictures=self.reads_pictures)
        self.calls.append(self._add_layout(_prepare_call(call)))
        if self.keeps_graph:
            self.graph.append(find_base(call.attention))
        if self.on_call is not None:
            self.paused = True
            try:
                self.on_call(self)
            finally:
                self.paused = False

    def begin_blocks(self, call: AttentionCall, queries: int) -> bool:
        """Count a call whose queries come in blocks, here without any; return whether the blocks are wanted."""
        if self.paused:
            return False
        if self.arguments.layout is not None or len(self.arguments.lengths) > 1:
            raise CaptureError(
                f"{call.name} attends within windows or within sequences that lie end to end, which are no blocks of "
                "queries. Capture all queries at once."
            )
        self.modules[call.name] += 1
        wanted = self.find_site(call.name) == self.site
        if wanted and self.blocks is not None:
            self.blocks.begin(_prepare_call(call), queries)
        return wanted

    def record_block(self, call: AttentionCall, rows: slice) -> None:
        """Hand on what a module computed for some of its queries; the values are those of the keys they see."""
        assert self.blocks is not None
        self.paused = True
        try:
            self.blocks.see(_mark_missing(call), rows)
        finally:
            self.paused = False

    def finish_blocks(self, name: str, context: Float[Tensor, "batch head query value"]) -> None:
        """Note the context of all queries of a call."""
        if self.on_context is not None and not self.paused:
            self.on_context(name, context)

    def _name(self, call: AttentionCall) -> tuple[AttentionCall, bool]:
        """Return a call with the name of its computation, and whether that was done before in the module's call.

        Some modules compute attention in several places, as of a text and of its layout: each is a site of its own.
        What one place computes several times, such as for each picture, has no name.
        """
        if not self.marks_forwards:
            return call, False
        if call.name != self.running:
            self.running, self.lines = call.name, []
        repeats = call.line in self.lines
        self.lines += [] if repeats else [call.line]
        number = self.lines.index(call.line) + 1
        return (replace(call, name=f"{call.name}#{number}") if number > 1 else call), repeats

    def _is_sequence(self, call: AttentionCall) -> bool:
        """Whether a call is of the next of several sequences that lie end to end."""
        lengths, done = self.arguments.lengths, len(self.sequences)
        batch, _, queries, keys = call.attention.shape
        return len(lengths) > 1 and batch == 1 and queries == keys == lengths[done]

    def check_sequences_are_complete(self) -> None:
        """Raise CaptureError if a module has computed the attention of some of its sequences only."""
        if self.sequences and self.find_site(self.sequences[0].name) == self.site:
            raise several_maps(self.sequences[0].name, reads_pictures=self.reads_pictures)
        self.sequences.clear()

    def _check_sequences_have_no_graph(self, name: str) -> None:
        if self.keeps_graph and self.find_site(name) == self.site:
            raise CaptureError(
                f"{name} computes the attention of {len(self.sequences)} sequences one after the other, and a gradient "
                "is known for one map of each layer. Capture a single picture, or leave out the target."
            )

    def _add_layout(self, call: AttentionCall) -> AttentionCall:
        """Return a call with what the arguments of its module say of its tokens."""
        layout, regions = self.arguments.layout, self.arguments.regions
        if layout is not None and call.layout is None and len(layout.tokens) == len(call.attention):
            call = replace(call, layout=layout)
        visible = None if regions is None else expand_regions(regions, call.attention)
        if visible is None:
            return call
        seen = call.visible()
        return replace(call, mask=(visible if seen is None else visible & seen)[:, None])


def _prepare_call(call: AttentionCall) -> AttentionCall:
    """Return a call without a graph, with the values of each head, and with NaN for heads that were pruned."""
    call = _mark_missing(call)
    heads = call.attention.shape[1]
    values = _detach(repeat_value_heads(call.values, heads))
    return replace(call, values=values, group=heads // call.values.shape[1])


def _mark_missing(call: AttentionCall) -> AttentionCall:
    """Return a call without a graph, with NaN for heads that were pruned."""
    attention, context = _detach(call.attention), _detach(call.context)
    if call.missing:  # zeros would count as attention in every mean, NaN is left out
        attention, context = (
            tensor.index_fill(1, torch.tensor(call.missing, device=tensor.device), torch.nan)
            for tensor in (attention, context)
        )
    return replace(call, attention=attention, context=context)


def several_maps(name: str, *, reads_pictures: bool) -> CaptureError:
    """Return the error for a module with several maps."""
    single = "If that is once for each image, give a single one; otherwise this" if reads_pictures else "This"
    return CaptureError(
        f"{name} computes attention several times in one call, and a trace holds one map for each layer. "
        f"{single} site cannot be captured."
    )


def join_sequences(calls: Sequence[AttentionCall], lengths: Sequence[int]) -> AttentionCall:
    """Return the attention of several sequences as rows of one call; shorter ones are filled up with zeros.

    >>> sizes = [(torch.ones(1, 1, size, size), torch.ones(1, 1, size, 3)) for size in (1, 2)]
    >>> calls = [AttentionCall("", attention, values, values, None) for attention, values in sizes]
    >>> join_sequences(calls, [1, 2]).attention[:, 0].tolist()
    [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]]
    """
    longest = max(lengths)

    def join(tensors: Sequence[Tensor], axes: int) -> Tensor:
        """Fill up the token axes, which are the last or the last but one."""
        rows = [
            functional.pad(tensor, (0, longest - size) * 2 if axes == 2 else (0, 0, 0, longest - size))
            for tensor, size in zip(tensors, lengths, strict=True)
        ]
        return torch.cat(rows)

    attention = join([call.attention for call in calls], 2)
    values, context = join([call.values for call in calls], 1), join([call.context for call in calls], 1)
    mask = None
    if len(set(lengths)) > 1:
        real = torch.arange(longest, device=attention.device) < torch.tensor(lengths, device=attention.device)[:, None]
        mask = (real[:, :, None] & real[:, None, :])[:, None]
    layout = join_layouts(lengths, attention.device)
    return replace(calls[0], attention=attention, values=values, context=context, mask=mask, layout=layout)


def _detach(tensor: Tensor) -> Tensor:
    return tensor.detach() if tensor.requires_grad else tensor


def start_graph(tensor: Tensor) -> Tensor:
    """Return a tensor that gradients can be traced back to, also where no weight of the model requires them."""
    return tensor if tensor.requires_grad else tensor.detach().requires_grad_()


def find_base(tensor: Tensor) -> Tensor:
    """Return what a tensor is a view of, if that has the same shape and memory: XLNet goes on with it."""
    base = tensor._base
    same = base is not None and base.shape == tensor.shape and base.stride() == tensor.stride()
    return base if base is not None and same else tensor


def check_recording(model: Model, recorder: Recorder) -> None:
    """Raise an error if the site is missing, or if attention times values is not what the heads computed."""
    model_type, site = model.network.config.model_type, recorder.site
    recorder.check_sequences_are_complete()
    if not recorder.modules:
        raise CaptureError(
            f"Nothing was captured: while this model of type '{model_type}' ran, no softmax over tokens was multiplied "
            "with values. Models of convolutions or recurrences have no attention; some others compute it in a way "
            "that headscope cannot follow."
        )
    if site not in recorder.sites:
        if site not in map(recorder.find_site, recorder.names.values()):
            raise InputError(f"This model has no attention site '{site}'. Its sites: {', '.join(recorder.sites)}.")
        raise InputError(
            f"Nothing was captured at site '{site}'. This input reaches these sites of the model: "
            f"{', '.join(recorder.sites)}. Choose one: site='{recorder.sites[0]}'."
        )
    if not model.family.kinds:  # what no test has checked for this model type
        for call in recorder.calls:
            _check_context(call, model_type)


def _check_context(call: AttentionCall, model_type: str) -> None:
    product = (call.attention.float() @ call.values.float()).to(call.context.dtype)
    tolerance = 1e-4 if call.context.dtype in (torch.float32, torch.float64) else 2e-2
    if call.context.shape != product.shape or not torch.allclose(
        product, call.context, tolerance, tolerance, equal_nan=True
    ):
        raise CaptureError(
            f"In {call.name} of this model of type '{model_type}' attention times values is not what the head "
            "computed: something else happens to it, such as a gate, and a map would not say what the head writes."
        )

"""Follow the residual stream while a model runs: what is added to what the heads write, and what happens to the sum.

Nothing is known of a model beforehand but its output projections. Vectors of their size are followed by identity
through additions, multiplications by numbers and vectors, normalizations, and functions that leave them as they are. A
layer's `x` is what existed, as part of the stream, before its attention module was called. Normalizations are
recognised by their numbers, see `measure_normalization`.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from headscope.core.trace.residual import Normalization, measure_normalization
from headscope.engine.model import Model
from headscope.engine.recording.interface import is_recording
from headscope.engine.recording.output_projection import find_projection, known_projections
from headscope.engine.recording.recorder import Recorder, find_module

ADDITIONS = frozenset({"add", "__add__", "__radd__", "add_", "__iadd__"})
PRODUCTS = frozenset({"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"})
QUOTIENTS = frozenset({"div", "__truediv__", "div_", "__itruediv__", "true_divide"})
NORMALIZATIONS = frozenset({"layer_norm", "rms_norm"})
SAME = frozenset(
    {
        *("view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "squeeze", "unsqueeze", "expand_as"),
        *("contiguous", "clone", "detach", "to", "type", "type_as", "float", "half", "double", "bfloat16", "cpu"),
        *("__getitem__", "narrow", "alias", "expand"),
    }
)
"""Functions that leave vectors as they are, if their number stays; they may only be arranged in other axes."""

TURNS = frozenset({"transpose", "permute", "swapaxes", "movedim", "__get__"})
"""Functions that exchange axes."""

Pull = Callable[[Tensor], Tensor]
"""Takes a direction that reads a result to the direction that reads what it is made of."""

Parent = tuple["Node", Pull]


@dataclass(eq=False)
class Kept:
    """A tensor as it was when it was kept, also where the model goes on to change it in place."""

    tensor: Tensor


@dataclass(eq=False)
class Node:
    """Vectors of the size of the stream, and what they are made of linearly."""

    age: int  # when it was computed; what is multiplied, or arranged in other axes, is as old as before
    order: int  # after the nodes that it is made of
    parents: tuple[Parent, ...] = ()
    write: "Write | None" = None  # whose output this is
    pending: "Write | None" = None  # whose output has not been added to the stream
    on_stream: bool = False  # whether what the heads of some layer wrote is in it
    value: Kept | None = None  # of vectors that are added to the stream
    children: list[tuple[Literal["add", "norm", "same", "other"], "Node | None"]] = field(default_factory=list)
    norm: Normalization | None = None  # that made it


@dataclass(eq=False)
class Write:
    """What the heads of one layer wrote, and where it went."""

    place: int  # of the attention call
    started: int  # age of what was computed last before the attention module was called
    output: Kept
    node: Node
    written: Normalization | None = None
    lost: bool = False  # whether something happened to it that is not understood
    additions: int = 0
    inputs: Kept | None = None
    outputs: Kept | None = None  # None where something else was added first, as in parallel blocks
    sum: Node | None = None


@dataclass(frozen=True)
class Prediction:
    """How a prediction reads the last vectors of the stream."""

    score: Tensor  # batch
    direction: Tensor  # its gradient with respect to these vectors
    linear: bool  # whether that is the same wherever they are


def _same(direction: Tensor) -> Tensor:
    return direction


class Stream(TorchFunctionMode):
    """Follows the stream of one forward pass."""

    def __init__(self, recorder: Recorder, hidden: int, *, reads_path: bool) -> None:
        super().__init__()
        self.recorder, self.hidden, self.reads_path = recorder, hidden, reads_path
        self.nodes: Any = WeakIdKeyDictionary()  # by tensor, while it lives
        self.kept: Any = WeakIdKeyDictionary()  # by tensor: the Kept that hold it
        self.writes: dict[int, Write] = {}  # by the place of the attention call
        self.parameters: dict[int, Any] = {}  # of output projections that are no modules, by id (XLNet)
        self.clock = self.started = self.first = 0
        self.paused = self.inside_norm = False
        self.last: tuple[Node, Tensor] | None = None  # the youngest vectors of the stream
        self.prediction: Prediction | None = None
        self.unembedding: Tensor | None = None  # for each of the last vectors, what reads the logit of its own word

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, and follow its result."""
        options = kwargs or {}
        if self.paused or self.inside_norm or not args:
            return function(*args, **options)
        name = getattr(function, "__name__", "")
        before = self._prepare(name, args)
        result = function(*args, **options)
        if isinstance(result, Tensor) and self._is_vectors(result):
            self._follow(name, [before, *args[1:]], options, result)
        return result

    def _is_vectors(self, value: Any) -> bool:
        return (
            isinstance(value, Tensor)
            and value.ndim > 1
            and value.shape[-1] == self.hidden
            and value.is_floating_point()
        )

    def _prepare(self, name: str, args: Any) -> Any:
        """Return the first argument; a copy of it, with its node, before a function changes it in place."""
        first = args[0]
        changes = (name.endswith("_") and not name.endswith("__")) or name == "__setitem__"
        if not (changes and self.started and self._is_vectors(first) and first in self.nodes):
            return first
        copy = first.clone()
        self.nodes[copy] = self.nodes.pop(first)
        self.kept[copy] = self.kept.pop(first, [])
        for kept in self.kept[copy]:
            kept.tensor = copy
        return copy

    def _follow(self, name: str, args: list[Any], options: Any, result: Tensor) -> None:
        """Give the result of a function a node."""
        if any(result is value for value in args) and result in self.nodes:
            return
        self.clock += 1
        node = self._make_node(name, args, options, result) if self.started else None
        self._note(result, node or Node(self.clock, self.clock))

    def _note(self, tensor: Tensor, node: Node) -> None:
        self.nodes[tensor] = node
        if node.on_stream:
            self.last = node, tensor

    def _make_node(self, name: str, args: list[Any], options: Any, result: Tensor) -> Node | None:
        if name == "einsum" and any(id(value) in self.parameters for value in args):
            return self._begin_write(result)
        vectors = [value for value in args if self._is_vectors(value)]
        if name in ADDITIONS and len(args) == 2 and isinstance(args[1], Tensor) and not options:
            return self._add(args[0], args[1], result)
        if vectors and vectors[0] is args[0] and (name in PRODUCTS or name in QUOTIENTS) and len(args) == 2:
            return self._scale(args[0], args[1], result, divides=name in QUOTIENTS)
        if len(vectors) == 2 and name in PRODUCTS:
            return None
        if name in PRODUCTS and vectors and vectors[0] is args[1]:
            return self._scale(args[1], args[0], result, divides=False)
        if vectors and name in NORMALIZATIONS:
            found = [*args[2:4], options.get("weight"), options.get("bias")]
            weight, bias = (next((v for v in pair if v is not None), None) for pair in (found[::2], found[1::2]))
            return self._normalize(args[0], result, weight, bias)
        if vectors and name in SAME | TURNS and (node := self._arrange(name, args, result)):
            return node
        for value in vectors:
            self._find(value).children.append(("other", None))
        return None

    def _find(self, tensor: Tensor) -> Node:
        """Return the node of a tensor; of one that nobody has seen, a node that is older than all."""
        if tensor not in self.nodes:
            self.nodes[tensor] = Node(0, 0)
        node: Node = self.nodes[tensor]
        return node

    def _keep(self, tensor: Tensor) -> Kept:
        kept = Kept(tensor)
        self.kept.setdefault(tensor, []).append(kept)
        return kept

    def _add(self, left: Tensor, right: Tensor, result: Tensor) -> Node | None:
        """Return the node of a sum; where one of the two was written by heads, note what the other is."""
        if not (self._is_vectors(left) and self._is_vectors(right)):
            return None
        ends = [(self._find(left), left), (self._find(right), right)]
        stream = any(node.on_stream for node, _ in ends)
        if self.reads_path and stream:
            for node, tensor in ends:
                if not node.parents and node.write is None and node.value is None:
                    node.value = self._keep(tensor)
        parents = tuple((node, _same) for node, _ in ends) if stream else ()
        sum_node = Node(self.clock, self.clock, parents, on_stream=stream)
        for (node, _), (other, tensor) in (ends, ends[::-1]):
            node.children.append(("add", sum_node))
            if node.pending is not None and other.pending is None:
                self._add_to_stream(node.pending, other, tensor, sum_node, result)
        return sum_node

    def _add_to_stream(self, write: Write, other: Node, tensor: Tensor, total: Node, result: Tensor) -> None:
        """Note that something is added to what heads wrote: the stream, or another part of the block."""
        write.additions += 1
        if other.age <= write.started and (other.on_stream or not write.place):
            write.inputs, write.sum = self._keep(tensor), total
            write.outputs = self._keep(result) if write.additions == 1 else None
            total.pending = None
        else:
            total.pending = write

    def _scale(self, vectors: Tensor, factor: Any, result: Tensor, *, divides: bool) -> Node | None:
        """Return the node of a multiple of vectors; `factor` is a number, or a tensor that is the same for all."""
        node = self._find(vectors)
        if isinstance(factor, Tensor) and result.shape == vectors.shape and self._is_mask(factor):
            made = self._pass_on(node, None, factor.detach().__mul__)
            node.children.append(("same", made))
            return made
        one = not isinstance(factor, Tensor) or factor.numel() == 1
        if result.shape != vectors.shape or not (one or factor.numel() == factor.shape[-1] == self.hidden):
            return self._lose(node)
        with self._pause():
            number = torch.as_tensor(factor, dtype=result.dtype, device=result.device).detach()
            weight = (1 / number if divides else number).expand(*number.shape[:-1], self.hidden).reshape(self.hidden)
            ones = torch.ones(vectors.shape[:-1], dtype=result.dtype, device=result.device)
        made = self._pass_on(node, Normalization(weight, ones, centered=False))
        made.age = node.age
        node.children.append(("same", made))
        return made

    def _is_mask(self, factor: Tensor) -> bool:
        """Whether a factor leaves some tokens as they are, and makes others, as of padding, zero."""
        if factor.ndim < 2 or factor.shape[-1] != 1 or factor.numel() == 1:
            return False
        with self._pause():
            return bool(((factor == 0) | (factor == 1)).all())

    def _lose(self, node: Node) -> Node | None:
        """Note that something that is not understood happens to a node, which may be what heads wrote."""
        node.children.append(("other", None))
        if node.pending is not None:
            node.pending.lost = True
        return None

    def _pass_on(self, node: Node, norm: Normalization | None, pull: Pull = _same) -> Node:
        """Return the node of what a normalization, or a function that changes nothing, makes of a node."""
        if norm is not None:
            pull = norm.pull_back
        if node.pending is not None and norm is not None:
            node.pending.written = compose(node.pending.written, norm)
            node.pending.lost |= node.pending.written is None
        parents = ((node, pull),) if node.on_stream else ()
        return Node(self.clock, self.clock, parents, pending=node.pending, on_stream=node.on_stream, norm=norm)

    def _normalize(self, vectors: Tensor, result: Tensor, weight: Any, bias: Any) -> Node | None:
        """Return the node of normalized vectors."""
        node = self._find(vectors)
        if not node.on_stream or vectors.shape != result.shape:
            return None
        if not (self.reads_path or node.pending is not None or self._is_sum(node)):
            made = Node(self.clock, self.clock, ((node, _same),), on_stream=True)
        else:
            with self._pause():
                weight, bias = (None if part is None else part.detach() for part in (weight, bias))
                norm = measure_normalization(vectors.detach(), result.detach(), weight, bias)
            if norm is None:
                return self._lose(node)
            made = self._pass_on(node, norm)
        node.children.append(("norm", made))
        return made

    def _is_sum(self, node: Node) -> bool:
        return any(write.sum is node for write in reversed(self.writes.values()))

    def _arrange(self, name: str, args: list[Any], result: Tensor) -> Node | None:
        """Return the node of vectors that are all there still, in other axes perhaps."""
        vectors = args[0]
        if not self._is_vectors(vectors) or result.numel() != vectors.numel():
            return None
        node, shape = self._find(vectors), tuple(vectors.shape)
        if name == "__getitem__" and not _takes_all(args[1]):
            return None
        pull: Pull = _same
        if name in TURNS and tuple(result.shape) != shape:
            if result.ndim != 3 or result.shape[:2] != shape[1::-1]:
                return None
            pull = _turn
        elif name in TURNS and len(shape) > 2 and result.stride() != vectors.stride():
            pull = _turn  # of two axes of one size
        elif tuple(result.shape) != shape:
            pull = _Reshape(shape)
        made = self._pass_on(node, None, pull)
        made.age = node.age
        node.children.append(("same", made))
        return made

    def _begin_write(self, result: Tensor) -> Node | None:
        """Return the node of what the heads of a layer wrote."""
        place = len(self.recorder.calls) - 1
        if place < 0 or place in self.writes:
            return None
        node = Node(self.clock, self.clock, on_stream=True)
        node.write = node.pending = self.writes[place] = Write(place, self.started, self._keep(result), node)
        return node

    @contextmanager
    def _pause(self) -> Iterator[None]:
        paused, self.paused = self.paused, True
        try:
            with torch.no_grad():
                yield
        finally:
            self.paused = paused

    def begin_attention(self, *_: Any) -> None:
        """Note that an attention module is called."""
        if is_recording(self.recorder):
            self.clock += 1
            self.started = self.clock
            self.first = self.first or self.started

    def end_projection(self, _: Any, __: Any, output: Any) -> None:
        """Note that an output projection has written."""
        if is_recording(self.recorder) and self._is_vectors(output) and self.started:
            self.clock += 1
            if node := self._begin_write(output):
                self._note(output, node)

    def begin_norm(self, *_: Any) -> None:
        """Note that what follows happens inside a module that may be a normalization."""
        if is_recording(self.recorder):
            self.inside_norm = True

    def end_norm(self, module: Any, args: Any, output: Any) -> None:
        """Note what a module made of vectors, if it is a normalization."""
        if not is_recording(self.recorder):
            return
        self.inside_norm = False
        if not (self.started and self._is_vectors(output)) or any(output is value for value in args):
            return
        self.clock += 1
        found = dict(module.named_parameters(recurse=False))
        bias = next((value for name, value in found.items() if "bias" in name or "beta" in name), None)
        weight = next((value for value in found.values() if value is not bias), None)
        node = self._normalize(args[0], output, weight, bias) if args and self._is_vectors(args[0]) else None
        self._note(output, node or Node(self.clock, self.clock))

    def find_norm(self, write: Write) -> Normalization | None:
        """Return the normalization of the sum, if the stream goes on from it alone (post-LN)."""
        if write.sum is None:
            return None
        children = [*_list_children(write.sum)]
        if len(children) != 1 or children[0][0] != "norm" or children[0][1] is None:
            return None
        after = children[0][1]
        return after.norm if any(kind == "add" for kind, _ in _list_children(after)) else None

    def goes_on(self, write: Write) -> bool:
        """Whether a later part of the model adds to the sum."""
        return write.sum is not None and any(kind == "add" for kind, _ in _list_children(write.sum, scaled=True))

    def undo_arrangement(self, products: Tensor) -> Tensor:
        """Return products of the last vectors of the stream in the axes in which the model added to it."""
        assert self.last is not None
        node = self.last[0]
        while len(node.parents) == 1 and node.norm is None:
            node, pull = node.parents[0]
            products = pull(products)
        return products

    def walk_back(self, direction: Tensor) -> Iterator[tuple[Node, Tensor]]:
        """Yield what the last vectors of the stream are made of, youngest first, each with the direction that reads it.

        Every node comes once, after all that is made of it.
        """
        assert self.last is not None
        top = self.last[0]
        order = _Order()
        order.push(top, direction)
        while order.heap:
            node, reads = order.pop()
            yield node, reads
            for parent, pull in node.parents:
                order.push(parent, pull(reads))


class _Order:
    """Nodes with the sums of their directions; a node is given out after all nodes that are made of it."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int]] = []
        self.found: dict[int, tuple[Node, Tensor]] = {}
        self.depths: dict[int, int] = {}

    def push(self, node: Node, direction: Tensor) -> None:
        if id(node) in self.found:
            known = self.found[id(node)][1]
            self.found[id(node)] = node, known + direction
            return
        self.found[id(node)] = node, direction
        heapq.heappush(self.heap, (-node.order, id(node)))

    def pop(self) -> tuple[Node, Tensor]:
        return self.found.pop(heapq.heappop(self.heap)[1])


@dataclass(frozen=True)
class _Reshape:
    """Takes directions back to the axes that vectors had."""

    shape: tuple[int, ...]

    def __call__(self, direction: Tensor) -> Tensor:
        return direction.reshape(self.shape) if direction.numel() == prod(self.shape) else direction


def _turn(direction: Tensor) -> Tensor:
    return direction.transpose(0, 1)


def _takes_all(index: Any) -> bool:
    """Return True for an index of slices that take everything in order."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is Ellipsis or (isinstance(part, slice) and part.step in (None, 1)) for part in parts)


def _list_children(node: Node, *, scaled: bool = False) -> Iterator[tuple[str, Node | None]]:
    """Yield what is made of a node, also after functions that change nothing; `scaled`: or multiply it."""
    for kind, child in node.children:
        if kind == "same" and child is not None and (scaled or child.norm is None):
            yield from _list_children(child, scaled=scaled)
        else:
            yield kind, child


def compose(first: Normalization | None, second: Normalization) -> Normalization | None:
    """Return the normalization that two come to after each other; None if it is none.

    >>> norm = Normalization(torch.ones(2), torch.ones(1, 1), centered=True)
    >>> double = Normalization(2 * torch.ones(2), torch.ones(1, 1), centered=False)
    >>> compose(norm, double).weight.tolist(), compose(double, norm)
    ([2.0, 2.0], None)
    """
    if first is None:
        return second
    if second.centered:
        return None
    bias = None if first.bias is None else first.bias * second.weight
    if bias is not None and second.bias is None and not bool((second.scale == 1).all()):
        return None
    bias = second.bias if bias is None else bias if second.bias is None else bias + second.bias
    return Normalization(first.weight * second.weight, first.scale * second.scale, first.centered, bias)


@contextmanager
def follow_stream(model: Model, recorder: Recorder, *, reads_path: bool) -> Iterator[Stream]:
    """Follow the residual stream of the recorder's site in a block; output projections must be known."""
    projections = _find_projections(model, recorder)
    modules = {name: module for module, name in recorder.names.items()}
    sizes = [_output_size(projection) for projection in projections.values()]
    stream = Stream(recorder, sizes[0] if sizes else 0, reads_path=reads_path)
    with ExitStack() as stack:
        for name, projection in projections.items():
            stack.enter_context(modules[find_module(name)].register_forward_pre_hook(stream.begin_attention))
            if not isinstance(projection, nn.Module):
                stream.parameters[id(projection)] = projection
        for projection in {id(layer): layer for layer in projections.values()}.values():
            if isinstance(projection, nn.Module):
                stack.enter_context(projection.register_forward_hook(stream.end_projection))
        for module in filter(lambda module: _may_normalize(module, stream.hidden), recorder.names):
            stack.enter_context(module.register_forward_pre_hook(stream.begin_norm))
            stack.enter_context(module.register_forward_hook(stream.end_norm, always_call=True))
        with stream:
            yield stream


def _find_projections(model: Model, recorder: Recorder) -> Mapping[str, Any]:
    names = [name for name in known_projections(model) if recorder.find_site(name) == recorder.site]
    return {name: find_projection(model, name) for name in names}


def _output_size(projection: Any) -> int:
    if isinstance(projection, nn.Module):
        size = getattr(projection, "out_features", getattr(projection, "nf", None))
        weight: Any = getattr(projection, "weight", None)
        return int(weight.shape[0] if size is None else size)
    return int(projection.shape[0])  # XLNet: hidden × head × value


def _may_normalize(module: Any, hidden: int) -> bool:
    """Return True for modules whose only parameters are one or two vectors of the size of the stream."""
    parameters = [value for value in module._parameters.values() if value is not None]
    return not module._modules and 0 < len(parameters) < 3 and all(p.shape == (hidden,) for p in parameters)

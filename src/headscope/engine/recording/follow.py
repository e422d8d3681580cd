"""Find attention that is computed without the attention interface: follow the result of softmax to a product.

While such a module runs, a `TorchFunctionMode` sees its calls of torch. Weights are what softmax returned, through
dropout, views and the like; hidden keys are those whose score was about the lowest number; values are what the weights
are multiplied with. PyTorch's own attention functions are written out, so that they have weights.
"""

import dis
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import isfunction, unwrap
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from headscope.core.errors import CaptureError
from headscope.engine.recording.recorder import AttentionCall, repeat_value_heads, start_graph

WHOLE = frozenset({"scaled_dot_product_attention", "multi_head_attention_forward"})
"""Functions of PyTorch that compute attention as a whole."""

PRODUCTS = frozenset({"matmul", "__matmul__", "bmm", "einsum"})
"""Functions that multiply weights with values."""

RESHAPING = frozenset(
    {
        *("view", "reshape", "view_as", "reshape_as", "expand", "expand_as", "contiguous", "clone", "detach"),
        *("flatten", "unflatten", "squeeze", "unsqueeze", "transpose", "permute", "swapaxes", "movedim"),
        *("__getitem__", "narrow", "index_select", "__get__"),
    }
)
"""Functions that move weights without changing them; what is hidden moves with them."""

SCALING = frozenset(
    {
        *("dropout", "to", "type", "type_as", "float", "half", "double", "bfloat16"),
        *("nan_to_num", "masked_fill", "masked_fill_", "mul", "__mul__", "__rmul__", "div", "__truediv__", "where"),
    }
)
"""Functions that change weights where they are."""

LOWEST = -9e3
"""Scores below are of hidden keys: masks add -10,000 or less."""

HEAD_COUNTS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "num_head", "heads", "nhead")
"""Attributes of attention modules, or of their config, that hold the number of heads."""

Take = Callable[[AttentionCall], Tensor]
"""Takes what a module computed, and returns the context to go on with."""

_running = threading.local()  # the followers of this thread, innermost last; None within the attention interface


@cache
def is_followed(module_class: Any) -> bool:
    """Return True if the code of a class computes a softmax and a product, and does not use the attention interface."""
    from transformers import PreTrainedModel

    if issubclass(module_class, PreTrainedModel):  # whose losses compute both
        return False
    codes = list(_list_codes(module_class))
    names = {name for code in codes for name in code.co_names}
    if "ALL_ATTENTION_FUNCTIONS" in names and ("get_interface" in names or "getattr" not in names):
        return False  # Kosmos-2.5 asks for an attribute that the interface does not have, and always computes itself
    if names & WHOLE:
        return True
    has_softmax = any(name.lower().endswith("softmax") and "log" not in name.lower() for name in names)
    return has_softmax and (bool(names & PRODUCTS) or any(map(_multiplies, codes)))


def _list_codes(module_class: Any) -> Iterator[CodeType]:
    """Yield the code of a class's methods, of the functions of its file that they name, and of products as modules."""
    for base in module_class.__mro__:
        if base.__module__ in ("torch.nn.modules.module", "builtins"):
            continue
        methods = [unwrap(getattr(method, "__func__", method)) for method in vars(base).values()]
        for method in filter(isfunction, methods):
            named: list[Any] = [method.__globals__.get(name) for name in method.__code__.co_names]
            if method.__name__ == "__init__":
                yield from (part.forward.__code__ for part in named if _is_product(part))
                continue
            yield method.__code__
            yield from (function.__code__ for function in map(_unwrap_function, named) if function is not None)


def _unwrap_function(named: Any) -> FunctionType | None:
    return unwrap(named) if isfunction(named) else None


def _is_product(part: Any) -> bool:
    """Return True for a class of modules that do nothing but multiply (SqueezeBERT)."""
    forward = getattr(part, "forward", None) if isinstance(part, type) else None
    return (
        isfunction(forward)
        and set(forward.__code__.co_names) - {"torch"} <= PRODUCTS
        and any(name in PRODUCTS for name in forward.__code__.co_names)
    )


def _multiplies(code: CodeType) -> bool:
    return any(step.argrepr in ("@", "@=") for step in dis.get_instructions(code))


def count_heads(module: Any) -> int | None:
    """Return the number of heads that a module, or its config, names; None if neither does."""
    holders = (module, getattr(module, "config", None))
    counts = (getattr(holder, name, None) for holder in holders for name in HEAD_COUNTS)
    return next((count for count in counts if isinstance(count, int) and count > 0), None)


class pause_following:  # noqa: N801  # a context manager
    """Follow nothing in a block: what the attention interface computes is recorded by itself."""

    def __enter__(self) -> None:
        _followers().append(None)

    def __exit__(self, *error: Any) -> None:
        _followers().pop()


def _followers() -> list["Follower | None"]:
    if not hasattr(_running, "followers"):
        _running.followers = []
    followers: list[Follower | None] = _running.followers
    return followers


class Follower(TorchFunctionMode):
    """Hands what one attention module computes to `take`, and lets the module go on with what that returns."""

    def __init__(self, name: str, heads: int | None, take: Take, *, keeps_graph: bool = False) -> None:
        super().__init__()
        self.name, self.heads, self.take, self.keeps_graph = name, heads, take, keeps_graph
        self.weights = WeakIdKeyDictionary()  # by weights, while they live: a _Mark
        self.products = WeakIdKeyDictionary()  # what the module goes on with, while it lives

    def __enter__(self) -> "Follower":
        _followers().append(self)
        mode: Any = super()
        mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        _followers().pop()
        mode: Any = super()
        mode.__exit__(*error)

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, or what stands for it, and follow its result."""
        name, options = getattr(function, "__name__", ""), kwargs or {}
        if _followers()[-1] is not self:  # a module inside this one is followed by itself
            return function(*args, **options)
        if name in WHOLE:
            with self:
                return _WRITTEN_OUT[name](*args, **options)
        if name == "__setitem__":
            self._check_order(args[1], args[2])
        result = function(*args, **options)
        if name == "softmax":
            scores = args[0] if args else options["input"]
            dim = args[1] if len(args) > 1 else options.get("dim", -1)
            if dim in (-1, result.ndim - 1):  # over others a softmax mixes kernels (ConvBERT) or heads
                self._begin(scores, result)
        elif name in PRODUCTS:
            return self._multiply(name, args, options, result)
        elif isinstance(result, Tensor) and (name in RESHAPING or name in SCALING):
            self._follow(function, name, args, options, result)
        return result

    def _begin(self, scores: Tensor, weights: Tensor) -> None:
        if weights.ndim > 2:
            hidden = _find_hidden(scores.detach(), weights.detach(), self.heads)
            self.weights[weights] = _Mark(hidden if bool(hidden.any()) else None)

    def _follow(self, function: Any, name: str, args: Any, options: Any, result: Tensor) -> None:
        """Note that a result is weights if one of the arguments is."""
        index = next((index for index, value in enumerate(args) if self._is_weights(value)), None)
        if index is None:
            return
        mark = self.weights[args[index]]
        hidden = mark.hidden
        if hidden is not None and name in RESHAPING:
            moved = [hidden if position == index else argument for position, argument in enumerate(args)]
            hidden = function(*moved, **options)
        if name in ("masked_fill", "masked_fill_") and not args[2]:
            hidden = args[1] if hidden is None else hidden | args[1]
        dropped = mark.dropped or (name == "dropout" and result is not args[index] and self._drops(args, options))
        self.weights[result] = _Mark(None if hidden is None else hidden.expand(result.shape), dropped)

    @staticmethod
    def _drops(args: Any, options: Any) -> bool:
        """Return True for dropout in training, after which rows do not sum to 1."""
        share = args[1] if len(args) > 1 else options.get("p", 0.5)
        return bool(options.get("training", args[2] if len(args) > 2 else True)) and share > 0

    def _is_weights(self, value: Any) -> bool:
        return isinstance(value, Tensor) and value in self.weights

    def _multiply(self, name: str, args: Any, options: Any, product: Tensor) -> Tensor:
        """Hand on weights, values and their product; return what the module goes on with."""
        operands = [*args, *options.values()]
        if name == "einsum" and isinstance(operands[1], list | tuple):
            operands = [operands[0], *operands[1]]
        tensors = [operand for operand in operands if isinstance(operand, Tensor)]
        weights = next((tensor for tensor in tensors if self._is_weights(tensor)), None)
        if weights is None or len(tensors) != 2:
            return product
        axes = _Axes.of_einsum(operands[0], product.ndim) if name == "einsum" else _Axes.of_matmul(product.ndim)
        arrangement = _arrange(axes, tensors, weights, product, self.heads)
        if arrangement is None:
            return product
        attention, values, context = arrangement.attention, arrangement.values, arrangement.context
        mark = self.weights[weights]
        if not (mark.dropped or _sums_over_keys(attention.detach())):
            return product
        if self.keeps_graph:
            attention = start_graph(attention)
            context = attention @ repeat_value_heads(values, attention.shape[1]).to(attention)
        visible = None if mark.hidden is None else ~arrangement.arrange_weights(mark.hidden)
        changed = self.take(AttentionCall(self.name, attention, values, context, visible))
        product = product if changed is arrangement.context else arrangement.restore(changed).to(product.dtype)
        self.products[product] = True
        return product

    def _check_order(self, index: Any, value: Any) -> None:
        """Raise CaptureError if rows of a product are put at places that are known while the model runs only."""
        if not (isinstance(value, Tensor) and value in self.products):
            return
        if any(isinstance(part, Tensor) for part in (index if isinstance(index, tuple) else (index,))):
            raise CaptureError(
                f"{self.name} computes attention of the queries that it picks, in an order of its own, and headscope "
                "would name their rows wrongly. Sparse attention such as Informer's cannot be captured or edited."
            )


def _find_hidden(scores: Tensor, weights: Tensor, heads: int | None) -> Tensor:
    """Return which keys are hidden: those with about the lowest score.

    Older masks add less, or are divided like the scores: their keys have a score below LOWEST, or one so far below the
    best of the row that no weight is left, in all heads. The scores of a sharp head are so low in that head only.
    """
    hidden = scores <= torch.finfo(scores.dtype).min / 2
    far = (scores <= LOWEST) & ~hidden
    unweighted = (weights == 0) & ~hidden & ~far
    if bool(unweighted.any()):
        finite = scores.nan_to_num(neginf=torch.finfo(scores.dtype).min)
        far |= unweighted & (finite.amax(-1, keepdim=True) - finite > 1e3)
    if not bool(far.any()):
        return hidden
    by_head = far.reshape(-1, heads or 1, *far.shape[1:]) if far.ndim == 3 and len(far) % (heads or 1) == 0 else far
    return hidden | by_head.all(-3, keepdim=True).expand(by_head.shape).reshape(far.shape)


def _sums_over_keys(attention: Tensor) -> bool:
    """Return True if the weights of a query sum to 1, or to less, where a sink takes the rest; not those of a key."""
    rows = attention.float().sum(-1).nan_to_num(1)
    if bool((rows - 1).abs().max() < 1e-2):
        return True
    columns = attention.float().sum(-2)
    return bool(rows.max() < 1 + 1e-2) and not bool((columns - 1).abs().max() < 1e-2)


@dataclass(frozen=True)
class _Mark:
    """What is known of weights."""

    hidden: Tensor | None  # which keys each query does not see; None if it sees all
    dropped: bool = False  # whether some are zero by chance, in training


@dataclass(frozen=True)
class _Axes:
    """Which axes of two operands and of their product are what, in letters; those of both and the product lead."""

    operands: tuple[str, str]
    product: str

    @classmethod
    def of_matmul(cls, ndim: int) -> "_Axes":
        lead = "ABCDEFG"[: ndim - 2]
        return cls((f"{lead}qk", f"{lead}kd"), f"{lead}qd")

    @classmethod
    def of_einsum(cls, equation: Any, ndim: int) -> "_Axes | None":
        if not isinstance(equation, str) or equation.count(",") != 1 or "->" not in equation:
            return None
        if "..." in equation:  # stands for the same axes in both operands and in the product
            named = equation.split("->")[1].replace(".", "").strip()
            equation = equation.replace("...", "ABCDEFG"[: ndim - len(named)])
        operands, product = equation.replace(" ", "").split("->")
        left, right = operands.split(",")
        return cls((left, right), product)


@dataclass(frozen=True)
class _Arrangement:
    """Weights, values and product of a multiplication as `batch head …`, and the way back."""

    attention: Tensor
    values: Tensor
    context: Tensor
    arrange_weights: Callable[[Tensor], Tensor]
    restore: Callable[[Tensor], Tensor]


def _arrange(
    axes: _Axes | None, tensors: Sequence[Tensor], weights: Tensor, product: Tensor, heads: int | None
) -> _Arrangement | None:
    """Return a product of weights and values by batch and head; None if its axes are not those of attention."""
    first = tensors[0] is weights
    other = tensors[1] if first else tensors[0]
    if axes is None or weights.ndim != product.ndim or other.ndim != product.ndim:
        return None
    ours, theirs = axes.operands if first else axes.operands[::-1]
    lead = [letter for letter in ours if letter in theirs and letter in axes.product]
    keys = [letter for letter in ours if letter in theirs and letter not in axes.product]
    queries = [letter for letter in ours if letter not in theirs and letter in axes.product]
    dimensions = [letter for letter in theirs if letter not in ours and letter in axes.product]
    if not lead or len(keys) != 1 or len(queries) != 1 or len(dimensions) != 1:
        return None
    sizes = [weights.shape[ours.index(letter)] for letter in lead]
    head_axis = _find_head_axis(sizes, heads)
    if head_axis is None:
        return None

    def arrange(tensor: Tensor, letters: str, last: list[str]) -> Tensor:
        ordered = tensor.permute([letters.index(letter) for letter in [*lead, *last]])
        if len(lead) == 1:
            return ordered.reshape(-1, heads or 1, *ordered.shape[1:])
        moved = ordered.movedim(head_axis, len(lead) - 1)
        others = [size for axis, size in enumerate(sizes) if axis != head_axis]
        return moved.expand(*others, *moved.shape[len(lead) - 1 :]).flatten(0, len(lead) - 2)

    def restore(context: Tensor) -> Tensor:
        if len(lead) == 1:
            ordered = context.flatten(0, 1)
        else:
            others = [size for axis, size in enumerate(sizes) if axis != head_axis]
            ordered = context.reshape(*others, *context.shape[1:]).movedim(len(lead) - 1, head_axis)
        letters = [*lead, *queries, *dimensions]
        return ordered.permute([letters.index(letter) for letter in axes.product])

    return _Arrangement(
        arrange(weights, ours, queries + keys),
        arrange(other, theirs, keys + dimensions),
        arrange(product, axes.product, queries + dimensions),
        lambda tensor: arrange(tensor, ours, queries + keys),
        restore,
    )


def _find_head_axis(sizes: Sequence[int], heads: int | None) -> int | None:
    """Return which of the leading axes is that of heads, the last that has their number; None if none can be.

    One axis holds batch and heads, the heads of an example after each other.

    >>> _find_head_axis([2, 4], 4), _find_head_axis([4, 2], 4), _find_head_axis([8], 4), _find_head_axis([8], 3)
    (1, 0, 0, None)
    """
    if len(sizes) == 1:
        return 0 if sizes[0] % (heads or 1) == 0 else None
    if heads is None:
        return len(sizes) - 1
    return next((axis for axis in reversed(range(len(sizes))) if sizes[axis] == heads), None)


def _write_out_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # the arguments of PyTorch's function
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute what `scaled_dot_product_attention` does, with a softmax and a product."""
    if enable_gqa:
        key, value = (tensor.repeat_interleave(query.shape[-3] // tensor.shape[-3], -3) for tensor in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = functional.softmax(scores, dim=-1).nan_to_num(0)  # a query that sees no key gets nothing
    return functional.dropout(weights, dropout_p) @ value


_WRITTEN_OUT: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": _write_out_attention,
    # the same code, which does not hand itself on to the mode again
    "multi_head_attention_forward": FunctionType(
        functional.multi_head_attention_forward.__code__,
        {**vars(functional), "has_torch_function": lambda _: False},
        argdefs=functional.multi_head_attention_forward.__defaults__,
    ),
}

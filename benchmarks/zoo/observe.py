"""What a plain pass of a network shows, whoever computes its attention: a softmax whose result multiplies a matrix."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from headscope.engine.main_input import forward_parameters
from headscope.engine.model import name_modules
from headscope.engine.recording.verify import relative_difference

LIMIT = 1e-3
"""Outputs of two passes that are the same differ by less, as a share of the largest."""

PRODUCTS = frozenset({"bmm", "mm", "matmul", "baddbmm", "addmm", "einsum"})
_SHAPES = (
    "view _unsafe_view reshape expand clone copy transpose t permute slice select unsqueeze squeeze constant_pad_nd "
    "cat alias as_strided split chunk contiguous split_with_sizes stack copy_ detach"
)
SHAPES = frozenset(_SHAPES.split())
"""Operations that give attention another shape."""

_NUMBERS = "_to_copy mul div masked_fill where native_dropout nan_to_num mul_ masked_fill_ div_ add"
KEEPS = SHAPES | frozenset(_NUMBERS.split())
"""Operations whose result is still attention if they are given attention."""


@dataclass
class Plain:
    """What a plain pass with eager attention shows."""

    weights: list[tuple[str, torch.Tensor]]  # that modules return, with their names
    returned: list[list[torch.Tensor]]  # that the network returns, by field
    products: list[list[str]]  # the modules that run when attention multiplies a matrix, outermost first
    output: Any

    @property
    def has_attention(self) -> bool:
        """Whether there was any."""
        return bool(self.products or self.weights)


class ProductLog(TorchDispatchMode):
    """Notes which modules run when the result of a softmax multiplies a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[str] = []
        self.products: list[list[str]] = []
        self.weights = WeakIdKeyDictionary()

    def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if "scaled_dot_product" in name:
            self.products.append(list(self.running))
        elif name in ("_softmax", "softmax", "_safe_softmax") and result.ndim > 2:
            self.weights[result] = True
        elif name in PRODUCTS and self._has_weights(args):
            self.products.append(list(self.running))
        elif name in KEEPS and self._has_weights(args, None if name in SHAPES else result):
            for part in result if isinstance(result, list | tuple) else [result]:
                if isinstance(part, torch.Tensor):
                    self.weights[part] = True
        return result

    def _has_weights(self, args: Any, like: Any = None) -> bool:
        """Whether one of the arguments is attention, and of the shape of `like`."""
        parts = (part for argument in args for part in (argument if isinstance(argument, list | tuple) else [argument]))
        found = [part for part in parts if isinstance(part, torch.Tensor) and part in self.weights]
        return any(like is None or part.shape == like.shape for part in found)


def run_plainly(network: Any, inputs: Mapping[str, Any]) -> Plain:
    """Run a copy of the network with eager attention."""
    eager = copy.deepcopy(network)
    try:
        eager.set_attn_implementation("eager")
    except Exception:
        eager.config._attn_implementation = "eager"
    torch.manual_seed(0)  # some models draw random numbers
    names, weights, log = name_modules(eager), dict[int, tuple[str, torch.Tensor]](), ProductLog()
    held: list[torch.Tensor] = []  # so that no memory is used again

    def begin(module: Any, _: Any) -> None:
        log.running.append(names[module])

    def end(module: Any, _: Any, output: Any) -> None:
        log.running.pop()
        for part in output if isinstance(output, list | tuple) else ():
            if is_attention(part):
                weights.setdefault(part.data_ptr(), (names[module], part.clone()))
                held.append(part)

    for module in names:
        module.register_forward_pre_hook(begin)
        module.register_forward_hook(end, always_call=True)

    def run(**options: Any) -> Any:
        weights.clear()
        log.running.clear()
        log.products.clear()
        with torch.no_grad(), log:
            return eager(**inputs, **options)

    cache = {"use_cache": False} if "use_cache" in forward_parameters(eager) else {}  # as a capture runs it
    plain = run(**cache)
    try:
        output = run(output_attentions=True, **cache)
    except (TypeError, ValueError):
        output = plain
    if relative_difference(plain, output) > LIMIT:  # in Falcon, which forgets its mask: weights of something else
        return Plain([], [], log.products, plain)
    fields = output.items() if isinstance(output, Mapping) else ()
    returned = [list(value) for name, value in fields if name.endswith("attentions") and isinstance(value, tuple)]
    returned = [layers for layers in returned if all(map(is_attention, layers))]
    return Plain(list(weights.values()), returned, log.products, output)


def is_attention(part: Any) -> bool:
    """Whether a tensor can only be attention: four axes, and rows that sum to one."""
    if not isinstance(part, torch.Tensor) or part.ndim != 4 or not part.is_floating_point() or not part.numel():
        return False
    sums = part.sum(-1)
    return bool((part >= 0).all() and (sums <= 1 + 1e-4).all() and sums.max() > 0.2 and part.shape[-1] > 1)

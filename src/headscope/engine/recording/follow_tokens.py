"""Find which tokens of a picture a window holds.

Between the input of a block and its attention tokens are reshaped, rolled and padded. A `TorchFunctionMode` repeats
that on their numbers while the block runs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from headscope.engine.recording.follow import RESHAPING
from headscope.engine.recording.layout import PADDED, Layout, bind_arguments

SAME_PLACES = frozenset({"layer_norm", "rms_norm", "dropout", "to", "float", "type", "type_as"})
"""Functions that change tokens where they are."""


class TokenFollower(TorchFunctionMode):
    """Follows the numbers of tokens from the input of a block to the attention inside it."""

    def __init__(self, block: Any, args: Sequence[Any], options: Mapping[str, Any]) -> None:
        super().__init__()
        self.numbers = WeakIdKeyDictionary()  # by tensor, while it lives: the number of each of its entries
        named = bind_arguments(block, args, options)
        self.shape = (0, 0, 0)
        self.grid: tuple[int, int] | None = None
        hidden = next((value for value in named.values() if _holds_tokens(value)), None)
        if hidden is not None:
            self.numbers[hidden] = torch.arange(hidden.numel(), device=hidden.device).view(hidden.shape)
            self.shape = (len(hidden), hidden[0, ..., 0].numel(), hidden.shape[-1])
            self.grid = _read_grid(named, hidden)

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, and do to the numbers what it does to the tokens."""
        options = kwargs or {}
        result = function(*args, **options)
        if args and isinstance(args[0], Tensor) and isinstance(result, Tensor) and args[0] in self.numbers:
            numbers = self._repeat(function, self.numbers[args[0]], result, args[1:], options)
            if numbers is not None and numbers.shape == result.shape:
                self.numbers[result] = numbers
        return result

    def _repeat(
        self, function: Callable[..., Any], numbers: Tensor, result: Tensor, rest: Any, options: Any
    ) -> Tensor | None:
        name = getattr(function, "__name__", "")
        if name in SAME_PLACES:
            return numbers.to(result.device)
        if name == "pad":
            constant = "constant" in (*rest[1:2], options.get("mode", "constant"))
            amounts = rest[0] if rest else options["pad"]
            return functional.pad(numbers, amounts, value=PADDED) if constant else None
        moved: Tensor | None = function(numbers, *rest, **options) if name in RESHAPING or name == "roll" else None
        return moved

    def find_layout(self, named: Mapping[str, Any]) -> Layout | None:
        """Return which tokens the first argument that is followed holds; None if it holds parts of tokens."""
        found = (value for value in named.values() if isinstance(value, Tensor) and value in self.numbers)
        hidden = next(found, None)
        channels = self.shape[2]
        if hidden is None or hidden.ndim not in (3, 4) or hidden.shape[-1] != channels:
            return None
        numbers = self.numbers[hidden].flatten(1, -2)
        whole = numbers[..., :1] + torch.arange(channels, device=numbers.device)
        if not bool(((numbers == whole) | (numbers == PADDED)).all()):
            return None
        tokens = numbers[..., 0].div(channels, rounding_mode="floor").clamp(min=PADDED)
        return Layout(tokens, *self.shape[:2], self.grid)


def _holds_tokens(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim in (3, 4)


def _read_grid(named: Mapping[str, Any], hidden: Tensor) -> tuple[int, int] | None:
    """Return the rows and columns of tokens: axes of the tokens, or arguments of the block beside them."""
    if hidden.ndim == 4:
        return hidden.shape[1], hidden.shape[2]
    told = named.get("input_dimensions", (named.get("height"), named.get("width")))
    if not isinstance(told, tuple | list) or len(told) != 2 or not all(isinstance(size, int) for size in told):
        return None
    rows, columns = told
    return (rows, columns) if rows * columns == hidden.shape[1] else None

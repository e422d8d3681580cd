"""Whether a pass could be run a second time, and nobody would notice."""

from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as every_module

_PLAIN = (Tensor, str, int, float, type(None))
_KNOWN = ("headscope.", "transformers.")  # whose hooks may hear a pass twice


def repeatable(modules: Iterable[Any], call: FrameType | None, given: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether a pass of these modules, called in this frame with these arguments, leaves no trace but its output.

    It must want no gradients and draw no random numbers. Nothing that it could change may go in, such as a cache of
    keys; no other module may have called it, and nobody may listen.
    """
    if torch.is_grad_enabled() or every_module._global_forward_hooks or every_module._global_forward_pre_hooks:
        return False
    for module in modules:  # in one loop, for there are hundreds
        if module.training or "forward" in module.__dict__:  # somebody put one of their own there
            return False
        if (module._forward_hooks or module._forward_pre_hooks) and _heard(module):
            return False
    return all(isinstance(each, _PLAIN) for each in (*given, *named.values())) and _by_itself(call)


def _by_itself(call: FrameType | None) -> bool:
    """Whether one module was called at most, on the way to what runs now."""
    code, calls = nn.Module._call_impl.__code__, 0
    while call is not None:
        calls += call.f_code is code
        call = call.f_back
    return calls <= 1


def _heard(module: Any) -> bool:
    """Whether anybody hears a module but us and the library."""
    hooks = (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    return not all(str(getattr(each, "__module__", "")).startswith(_KNOWN) for each in hooks)

"""Models that accelerate spreads over devices: where layers run, and weights that it has stored elsewhere."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import LoadError


def _list_hooks(module: Any) -> Sequence[Any]:
    """Return the hooks of accelerate on a module; a SequentialHook has several."""
    hook = getattr(module, "_hf_hook", None)
    return () if hook is None else getattr(hook, "hooks", (hook,))


def find_hook_device(module: Any) -> torch.device | None:
    """Return the device on which accelerate runs a module; None where it has no say."""
    devices = (getattr(hook, "execution_device", None) for hook in _list_hooks(module))
    return next((torch.device(device) for device in devices if device is not None), None)


def list_devices(network: Any) -> list[torch.device]:
    """Return the devices on which the weights of a network are when they are used, each once.

    >>> list_devices(torch.nn.Linear(2, 3))
    [device(type='cpu')]
    """
    devices: dict[torch.device, None] = {}
    for module in network.modules():
        for weight in module._parameters.values():
            if weight is not None:
                device = find_hook_device(module) if weight.is_meta else weight.device
                devices |= {} if device is None else {device: None}
    return list(devices)


def is_spread(network: Any) -> bool:
    """Return True if weights are on several devices, or offloaded while the model does not run."""
    return len(list_devices(network)) > 1 or any(weight.is_meta for weight in network.parameters())


def read_weight(module: Any, name: str) -> Tensor:
    """Return a weight of a module, also one that accelerate has offloaded to the host or to disk."""
    weight: Tensor = getattr(module, name)
    if not weight.is_meta:
        return weight
    maps = (getattr(hook, "weights_map", None) for hook in _list_hooks(module))
    stored = next((weights for weights in maps if weights is not None), None)
    if stored is None:
        raise LoadError(
            f"The weight {name} of {type(module).__name__} is on the meta device, and accelerate has no place where it "
            "is stored. Load the model with from_pretrained(device_map=…), or offload it with accelerate.disk_offload."
        )
    value: Tensor = stored[name]
    return value


def read_weights(network: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield what `network.state_dict()` holds, by name in order; offloaded weights are read one by one."""
    for name, tensor in sorted(network.state_dict().items()):
        parent, _, leaf = name.rpartition(".")
        yield name, read_weight(network.get_submodule(parent), leaf) if tensor.is_meta else tensor

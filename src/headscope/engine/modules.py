"""All modules of a network, many times as fast as the library's own recursion: every capture asks for them."""

from typing import Any


def named_modules(network: Any) -> list[tuple[str, Any]]:
    """Every module once, with the first name that leads to it, in the order of `torch.nn.Module.named_modules`.

    >>> import torch
    >>> shared = torch.nn.ReLU()
    >>> [name for name, _ in named_modules(torch.nn.Sequential(torch.nn.Sequential(shared), shared))]
    ['', '0', '0.0']
    """
    found: list[tuple[str, Any]] = []
    known: set[int] = set()
    waiting = [("", network)]
    while waiting:
        here = name, module = waiting.pop()
        if id(module) in known:
            continue
        known.add(id(module))
        found.append(here)
        if inside := module._modules:
            before = f"{name}." if name else ""
            waiting += [(before + part, each) for part, each in reversed(inside.items()) if each is not None]
    return found


def all_modules(network: Any) -> list[Any]:
    """Every module once, in no order that matters.

    >>> import torch
    >>> len(all_modules(torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()), torch.nn.ReLU())))
    4
    """
    found = {id(network): network}
    waiting = [network]
    while waiting:
        for each in waiting.pop()._modules.values():
            if each is not None and id(each) not in found:
                found[id(each)] = each
                if each._modules:
                    waiting.append(each)
    return list(found.values())

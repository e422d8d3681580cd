"""The numbers of layers in a model where some layers have no attention.

In a hybrid such as Qwen3-Next only every fourth layer attends, and its first attention is in `layers.3`. Users, and the
model's own config, call that layer 3.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any


def number_modules(network: Any, sites: Iterable[Sequence[str]]) -> dict[str, int]:
    """Return the layer of each attention module at sites that number theirs with gaps.

    Elsewhere the order of calls numbers the layers. `sites` are the names of the modules of each site. A module that is
    in several places computes several layers, so that its name numbers none.
    """
    places = Counter(module for _, module in network.named_modules(remove_duplicate=False))
    numbers: dict[str, int] = {}
    for names in sites:
        found = read_numbers(names)
        shared = any(places[network.get_submodule(name)] > 1 for name in names)
        if not shared and sorted(found) != list(range(len(found))):
            numbers |= zip(names, found, strict=True)
    return numbers


def read_numbers(names: Sequence[str]) -> list[int]:
    """Return the one number in which the names of modules differ; none if they differ in more.

    >>> read_numbers(["layers.3.self_attn", "layers.7.self_attn"]), read_numbers(["layers.3.self_attn"])
    ([3, 7], [3])
    >>> read_numbers(["stages.0.blocks.0", "stages.1.blocks.1"])
    []
    """
    split = [[part for part in name.split(".") if part != "_orig_mod"] for name in names]  # torch.compile
    if len({len(parts) for parts in split}) > 1:
        return []
    columns = list(zip(*split, strict=True))
    numbered = [column for column in columns if all(part.isdigit() for part in column)]
    varying = [column for column in columns if len(set(column)) > 1] or numbered
    return [int(part) for part in varying[0]] if len(varying) == 1 and varying[0] in numbered else []

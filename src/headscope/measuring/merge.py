"""Putting the parts of one measurement together."""

from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from headscope.core.errors import InputError
from headscope.measuring.checkpoint import CIRCUMSTANCES, Checkpoint, added, read
from headscope.measuring.finish import finished
from headscope.measuring.observe import States
from headscope.results.resume import find_difference, shorten

OWN = CIRCUMSTANCES | {"shard", "n", "plan"}
"""Facts that each part has for itself."""


def merge(*states: str | Path) -> xr.Dataset:
    """The result of a measurement whose shards were saved as .state files, every one of them once."""
    if not states:
        raise InputError("There is nothing to merge. Give the .state files of all shards.")
    parts = {Path(each): read(Path(each)) for each in states}
    for path, each in parts.items():
        if not each.complete:
            raise InputError(
                f"{path} is not finished: {each.done} of {each.total} batches are in it. Go on with it (resume=True, "
                "in the shell --resume) before you merge."
            )
    _check_alike(parts)
    _check_shards(parts)
    whole: States = {}
    for each in sorted(parts.values(), key=lambda part: int(part.facts["shard"][0])):
        whole = added(whole, each.states)
    first = next(iter(parts.values())).facts
    facts = {name: value for name, value in first.items() if name not in OWN}
    many = sum(int(each.facts["n"]) for each in parts.values())
    return finished(whole, {"command": "hs.merge", **facts, "n": many, "shards": len(parts)})


def _check_alike(parts: dict[Path, Checkpoint]) -> None:
    (first, one), *rest = parts.items()
    for path, other in rest:
        name = find_difference(one.facts, other.facts, OWN)
        if name is not None:
            raise InputError(
                f"{first} and {path} are not parts of one measurement: their {name} differs, "
                f"{shorten(one.facts.get(name))} and {shorten(other.facts.get(name))}. Measure both alike."
            )


def _check_shards(parts: dict[Path, Checkpoint]) -> None:
    found: Sequence[tuple[int, int]] = [tuple(each.facts["shard"]) for each in parts.values()]
    many = found[0][1]
    if any(whole != many for _, whole in found):
        raise InputError(f"These shards are of different wholes: {', '.join(f'{a}/{b}' for a, b in found)}.")
    twice = sorted({part for part, _ in found if found.count((part, many)) > 1})
    if twice:
        raise InputError(f"Shard {twice[0]}/{many} was given twice. Give every shard once.")
    missing = sorted(set(range(1, many + 1)) - {part for part, _ in found})
    if missing:
        named = ", ".join(f"{part}/{many}" for part in missing[:5])
        raise InputError(f"{len(missing)} of {many} shards are missing: {named}. Measure them, then merge all.")

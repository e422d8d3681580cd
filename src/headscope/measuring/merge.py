"""From states to a result, and from the shards of a measurement to the whole."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.catalog import statistics
from headscope.core.errors import InputError
from headscope.core.example import example_coordinates
from headscope.core.prose import join_words
from headscope.core.provenance import stamp
from headscope.core.spec import to_spec
from headscope.core.statistic import Statistic
from headscope.measuring.checkpoint import DAMAGED, ENVIRONMENT, Checkpoint, add_states, read_checkpoint
from headscope.measuring.observe import States
from headscope.results.hashes import hash_configs
from headscope.results.resume import find_difference

SHARD_FACTS = ENVIRONMENT | {"shard", "n", "plan"}
"""Facts that differ between shards."""


def merge(*states: str | Path) -> xr.Dataset:
    """Return the result of a measurement from the .state files of all its shards.

    Parameters
    ----------
    states
        The .state files of all shards.

    >>> for part in ("1/2", "2/2"):
    ...     texts, out = ["One.", "And two.", "Three."], f"part-{part[0]}.state"
    ...     data = hs.measure(model, texts, statistics=["entropy"], shard=part, out=out, progress=False)
    >>> hs.merge("part-1.state", "part-2.state")["entropy_n"].max().item()
    3
    """
    if not states:
        raise InputError("There is nothing to merge. Give the .state files of all shards.")
    if not all(isinstance(path, str | Path) for path in states):
        raise InputError("hs.merge takes paths one by one. Give a list of them with a star: hs.merge(*paths).")
    checkpoints = {Path(path): read_checkpoint(Path(path)) for path in states}
    for path, checkpoint in checkpoints.items():
        if not _counts_shards(checkpoint.facts):
            raise InputError(f"Cannot open {path}: {DAMAGED}")
        if not checkpoint.complete:
            raise InputError(
                f"{path} is not finished: it holds {checkpoint.done} of {checkpoint.total} examples. Resume it "
                "(resume=True, in the shell --resume) before you merge."
            )
    _check_same_measurement(checkpoints)
    _check_shards([tuple(checkpoint.facts["shard"]) for checkpoint in checkpoints.values()])
    total: States = {}
    for checkpoint in sorted(checkpoints.values(), key=lambda checkpoint: int(checkpoint.facts["shard"][0])):
        total = add_states(total, checkpoint.states)
    first = next(iter(checkpoints.values())).facts
    facts = {name: value for name, value in first.items() if name not in SHARD_FACTS}
    n = sum(int(checkpoint.facts["n"]) for checkpoint in checkpoints.values())
    examples = _join_examples([checkpoint.examples for checkpoint in checkpoints.values()])
    return to_dataset(total, {"command": "hs.merge", **facts, "n": n, "shards": len(checkpoints)}, examples=examples)


def to_dataset(
    states: States,
    facts: Mapping[str, Any],
    entries: Iterable[Statistic] = (),
    *,
    examples: Mapping[str, Sequence[Any]] = MappingProxyType({}),
) -> xr.Dataset:
    """Return all statistics along `lens` and `site`, stamped; a head that a lens does not have is NaN with n = 0.

    Statistics that are not among `entries` are found by name. The values of single examples are in the order of
    `examples`, with their texts and labels as coordinates.
    """
    by_spec = {to_spec(entry): entry for entry in entries}
    tables = []
    for lens in dict.fromkeys(lens for lens, _ in states):
        results = {
            spec: (by_spec.get(spec) or statistics.make(spec)).finish(replace(state, lens=lens))
            for (name, spec), state in states.items()
            if name == lens
        }
        _check_names(results)
        merged = xr.merge(list(results.values()), join="outer", compat="no_conflicts")
        tables.append(merged.expand_dims({"lens": [lens], "site": [facts["site"]]}))
    data = xr.concat(tables, "lens", join="outer") if len(tables) > 1 else tables[0]
    counts = [str(name) for name in data.data_vars if str(name).endswith(("_n", "_nan"))]
    data = data.assign({name: data[name].fillna(0).astype(np.int64) for name in counts})  # integers, also after a join
    if examples:
        coords = example_coordinates({name: column for name, column in examples.items() if name != "row"})
        data = data.sel(example=list(examples["id"])).assign_coords(coords)
    return stamp(data, kind="measurement", **hash_configs(facts))


def _check_names(results: Mapping[str, xr.Dataset]) -> None:
    """Raise InputError where two statistics give results of one name."""
    owners: dict[str, str] = {}
    for spec, result in results.items():
        for name in map(str, result.data_vars):
            if (owner := owners.setdefault(name, spec)) != spec:
                raise InputError(
                    f"The statistics '{owner}' and '{spec}' both give a result that is called '{name}'. Rename it in "
                    "one of them, or measure them one after the other."
                )


def _join_examples(tables: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Return the examples of all shards in the order of the data; nothing if a shard, of an older version, has none."""
    if not all(tables):
        return {}
    names = dict.fromkeys(name for table in tables for name in table)
    joined = {name: [v for table in tables for v in table.get(name, [None] * len(table["row"]))] for name in names}
    order = sorted(range(len(joined["row"])), key=joined["row"].__getitem__)
    return {name: [values[index] for index in order] for name, values in joined.items()}


def _check_same_measurement(checkpoints: Mapping[Path, Checkpoint]) -> None:
    (first_path, first), *rest = checkpoints.items()
    for path, checkpoint in rest:
        difference = find_difference(first.facts, checkpoint.facts, SHARD_FACTS)
        if difference is not None:
            raise InputError(
                f"{first_path} and {path} are not parts of one measurement: {difference.describe()}. Measure both "
                "alike."
            )


def _counts_shards(facts: Mapping[str, Any]) -> bool:
    """Return whether a state says which of how many shards it is, and of how many examples."""
    shard = facts.get("shard")
    return (
        isinstance(shard, list | tuple)
        and len(shard) == 2
        and {type(count) for count in (*shard, facts.get("n"))} == {int}
    )


def _check_shards(shards: list[tuple[int, int]]) -> None:
    total = shards[0][1]
    if any(count != total for _, count in shards):
        raise InputError(f"These shards are of different wholes: {', '.join(f'{a}/{b}' for a, b in shards)}.")
    repeated = sorted({shard for shard, _ in shards if shards.count((shard, total)) > 1})
    if repeated:
        raise InputError(f"Shard {repeated[0]}/{total} was given twice. Give every shard once.")
    missing = sorted(set(range(1, total + 1)) - {shard for shard, _ in shards})
    if missing:
        names = join_words((f"{shard}/{total}" for shard in missing), limit=5)
        raise InputError(f"{len(missing)} of {total} shards are missing: {names}. Measure them, then merge all.")

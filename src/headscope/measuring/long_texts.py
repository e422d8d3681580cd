"""Say how texts are measured whose maps do not fit in memory, before it begins."""

import warnings
from collections.abc import Sequence

from headscope.core.errors import DataWarning, InputError
from headscope.core.prose import count_noun, format_bytes
from headscope.engine.memory import count_map_bytes, free_memory
from headscope.measuring.observe import Observer
from headscope.measuring.plan import PlannedBatch


def check_blocks(observer: Observer, batches: Sequence[PlannedBatch]) -> None:
    """Say that queries are measured in blocks, once; raise InputError where whole maps are needed and cannot be had."""
    why, block = observer.why_whole(), observer.settings.block
    if block is not None:
        _check_possible(block, why)
        return
    sizes = [(len(batch), batch.length) for batch in batches]
    large = [(count, length) for count, length in sizes if count * length**2 > (observer.max_cells or 0)]
    if not large:
        return
    count, length = max(large, key=lambda size: size[0] * size[1] ** 2)
    if why is None:
        warnings.warn(
            f"{count_noun(len(large), 'batch', 'batches')} of texts of up to {length:,} tokens are measured in blocks "
            f"of queries: whole maps of a layer would take {_describe_maps(observer, count, length, layers=1)} for "
            "each lens. The numbers are the same but for rounding.",
            DataWarning,
            stacklevel=2,
        )
    else:
        _check_fits(observer, count, length, why)


def _check_possible(block: int, why: str | None) -> None:
    if block < 1:
        raise InputError(f"block must be at least 1, but got {block}.")
    if why is not None:
        raise InputError(
            f"block={block} measures some queries at a time, but {why} needs whole maps. Leave out one of the two."
        )


def _check_fits(observer: Observer, count: int, length: int, why: str) -> None:
    """Raise InputError if the maps of one lens alone take more memory than is free."""
    layers, free = 1 if observer.streams_always and observer.settings.streams else None, free_memory(observer.model)
    if count_map_bytes(observer.model, length, batch=count, layers=layers) > free:
        what = "a layer" if layers else "all layers"
        texts = f"a text of {length:,} tokens" if count == 1 else f"{count} texts of {length:,} tokens"
        raise InputError(
            f"{why[0].upper()}{why[1:]} needs whole maps. Those of {what} take "
            f"{_describe_maps(observer, count, length, layers=layers)} for {texts}, of {format_bytes(free)} that are "
            f"free. Give max_length{'' if count == 1 else ' or batch_size'}, or measure with lenses and statistics "
            "that read one row at a time, such as raw, effective and entropy."
        )


def _describe_maps(observer: Observer, count: int, length: int, layers: int | None) -> str:
    return format_bytes(count_map_bytes(observer.model, length, batch=count, layers=layers))

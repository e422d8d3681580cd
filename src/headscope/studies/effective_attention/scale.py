"""How many inputs and maps the numbers are over, and whether that is fewer than the paper's."""

import xarray as xr

from headscope.studies.effective_attention.paper import MAPS


def counted(numbers: xr.Dataset, *, length: str = "all", maps: bool = False) -> str:
    """How many inputs of each task, or maps, as a caption says it."""
    heads = numbers.sizes["layer"] * numbers.sizes["head"] if maps else 1
    parts = [f"{task} {heads * int(numbers['n'].sel(task=task, length=length)):,}" for task in numbers["task"].values]
    return f"{', '.join(parts)}{' maps' if maps else ' inputs'}"


def reduced(numbers: xr.Dataset) -> str | None:
    """Why inputs are fewer than the paper's: not all of the dev set was studied."""
    few = [
        f"{int(one['n'].sel(length='all')):,} of {int(one['whole_dev']):,} inputs of {task}"
        for task in numbers["task"].values
        for one in [numbers.sel(task=task)]
        if int(one["n"].sel(length="all")) < int(one["whole_dev"])
    ]
    return f"{', '.join(few)} were studied" if few else None


def reduced_maps(numbers: xr.Dataset, length: str = "all") -> str | None:
    """Why maps are fewer than the paper's 1,000."""
    heads = numbers.sizes["layer"] * numbers.sizes["head"]
    few = [
        f"{heads * many:,} maps of {task}"
        for task in numbers["task"].values
        for many in [int(numbers["n"].sel(task=task, length=length))]
        if heads * many < MAPS
    ]
    return f"{', '.join(few)}, where the paper has {MAPS:,} of each task" if few else None

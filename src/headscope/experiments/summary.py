"""From one value per example and head to means over examples with their intervals."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import interval_names, name_ends, with_interval
from headscope.uncertainty.bootstrap import bootstrap_means, percentile_interval
from headscope.uncertainty.intervals import Array, mean_interval, relative_margin
from headscope.uncertainty.order import smallest_interval

SAME = 1e-3
"""Effective attention equals attention if they differ by at most this fraction of its norm."""

TOKENS_PER_BIN = 8
"""Width of the ranges of lengths by which relative changes are shown; d is a multiple of it in common models."""


def list_tasks(numbers: xr.Dataset) -> list[str]:
    """Return the names of the tasks."""
    return [str(task) for task in numbers["task"].values]


def count_inputs(numbers: xr.Dataset, length: str = "all") -> dict[str, int]:
    """Return the number of inputs of each task; of a range of lengths where there are such."""
    n = numbers["n"].sel(length=length) if "length" in numbers["n"].dims else numbers["n"]
    return dict(zip(list_tasks(numbers), n.values.astype(int).tolist(), strict=True))


def average(values: xr.DataArray, *dims: str) -> xr.DataArray:
    """Return the mean over dimensions, without NaN; NaN where there is no value."""
    table = values.transpose(..., *dims)
    axes = tuple(range(-len(dims), 0))
    finite = np.isfinite(table.values)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(finite, table.values, 0.0).sum(axes) / finite.sum(axes)
    return table.isel(dict.fromkeys(dims, slice(0))).sum(dims, keep_attrs=True).copy(data=mean)  # of no layers, too


def summarise(name: str, values: xr.DataArray, *, baseline: str | None = None) -> xr.Dataset:
    """Return the mean of `example lens …` over examples with Student's interval.

    With a `baseline` lens also `<name>_change`, the mean difference from it, example by example.
    """
    table = values.transpose("example", "lens", ...)
    dims = tuple(map(str, table.dims[1:]))
    variables = with_interval(name, dims, mean_interval(table.values))
    if baseline is not None:
        change = table.values - table.sel(lens=[baseline]).values
        variables |= with_interval(f"{name}_change", dims, mean_interval(change))
    return xr.Dataset(variables, coords={dim: table[dim].values for dim in dims if dim in table.coords})


def relative_changes(numbers: xr.Dataset, name: str, baseline: str = "raw") -> xr.Dataset:
    """Return `<name>_relative`, the change of a mean as a part of its absolute value with the baseline lens.

    Its interval takes into account that the baseline is a mean of the same inputs. There is none where the interval of
    the baseline holds 0. With several seeds, combine the result, not the numbers.
    """
    stems = (name, f"{name}_change")  # read as variables: to align their labels takes most of the time
    tables = [[numbers[end].variable.astype(float) for end in interval_names(stem)] for stem in stems]
    (value, *_), (change, *_) = tables
    margins = [(high - low) / 2 for _, low, high in tables]
    at = numbers.get_index("lens").get_loc(baseline)
    base, margin = (table.isel(lens=at) for table in (value, margins[0]))
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = change / base.copy(data=np.where(base.values == 0, np.nan, abs(base.values)))
        reach = xr.apply_ufunc(relative_margin, base, change, margin, *margins)
    relatives = name_ends(f"{name}_relative", (relative, relative - reach, relative + reach))
    return xr.Dataset(relatives, numbers[f"{name}_change"].coords)


def summarise_by(
    axis: str, groups: Mapping[Any, Any], rows: xr.Dataset, *summaries: Callable[[xr.Dataset], xr.Dataset]
) -> xr.Dataset:
    """Return summaries of groups of examples, given by masks, along a new axis with the number of examples `n`."""
    selected = [rows.isel(example=mask) for mask in groups.values()]
    parts = [xr.merge([summary(part) for summary in summaries]).assign(n=part.sizes["example"]) for part in selected]
    return xr.concat(parts, axis).assign_coords({axis: list(groups)})


def group_lengths(tokens: Any, value_size: int, longest: int) -> dict[str, Any]:
    """Group inputs by length: all, at most and more than the value dimensions of a head, and four equal ranges."""
    edges = np.linspace(0, longest, 5).astype(int)
    ranges = {f"{low + 1}–{high}": (tokens > low) & (tokens <= high) for low, high in pairwise(edges)}
    return {"all": tokens > 0, "at most d": tokens <= value_size, "more than d": tokens > value_size, **ranges}


def summarise_drawn(name: str, values: xr.DataArray, function: Callable[[Array], Array]) -> xr.Dataset:
    """Return a function of the means of `example lens …`, with the percentile interval of bootstrap draws of examples.

    The function maps `… lens …` to `… lens`.
    """
    table = values.transpose("example", "lens", ...)
    ends = percentile_interval(function(bootstrap_means(table.values)))
    exact = function(mean_interval(table.values)[0])
    return xr.Dataset(with_interval(name, ("lens",), (exact, *ends)), coords={"lens": table["lens"].values})


def summarise_similarity(rows: xr.Dataset) -> xr.Dataset:
    """Return how similar the maps of two models are, by layer and head.

    `layer_margin` is the lowest similarity of the other layers minus the highest of the last two: positive where the
    last two layers changed most. It is NaN where there are no other layers.
    """
    similarity = rows["similarity_rows"].transpose("example", "lens", "layer", "head")
    by_layer = summarise("similarity_layer", similarity.mean("head"))
    return by_layer.merge(compare_layers(by_layer, len(similarity))).assign(similarity=similarity.mean("example"))


def compare_layers(numbers: xr.Dataset, n: int) -> xr.Dataset:
    """Return `layer_margin` from the mean similarity of each layer and its interval, over `n` inputs."""
    value, low, high = (
        numbers[name].transpose(..., "layer").astype(float) for name in interval_names("similarity_layer")
    )
    means, margins, dims = value.values, (high - low).values / 2, list(map(str, value.dims[:-1]))
    if means.shape[-1] <= 2:
        ends = (np.full(means.shape[:-1], np.nan),) * 3
    else:
        differences = means[..., :-2, None] - means[..., None, -2:]
        reach = margins[..., :-2, None] + margins[..., None, -2:]  # at least that of inputs compared one by one
        flat = (*means.shape[:-1], -1)
        ends = smallest_interval(differences.reshape(flat), reach.reshape(flat), n)
    return xr.Dataset(with_interval("layer_margin", dims, ends))


def compare_types(numbers: xr.Dataset, n: int) -> xr.Dataset:
    """Return `sep_margin` from the weight on each type and its interval, over `n` inputs."""
    largest = numbers[interval_names("type_weight")].sel(size="signed", several="max", drop=True)
    value, low, high = (largest[name].transpose(..., "type").astype(float) for name in largest)
    means, margins, dims = value.values, (high - low).values / 2, list(map(str, value.dims[:-1]))
    at = [str(name) for name in value["type"].values].index("sep")
    others, theirs = np.delete(means, at, -1), np.delete(margins, at, -1)
    differences = np.abs(means[..., [at]]) - np.abs(np.nan_to_num(others))  # a type that never occurs counts as 0
    reach = margins[..., [at]] + np.where(np.isnan(others), 0, theirs)
    ends = smallest_interval(differences, reach, n, rank=2)
    return xr.Dataset(with_interval("sep_margin", dims, ends))


def stack_sizes(rows: xr.Dataset, name: str) -> xr.DataArray:
    """Return the signed and the absolute values of a statistic along `size`."""
    parts = [rows[f"{name}_rows"], rows[f"{name}_absolute_rows"]]
    return xr.concat(parts, "size", coords="minimal", compat="override").assign_coords(size=["signed", "absolute"])


def select_special(table: xr.DataArray) -> xr.DataArray:
    """Return the weights on [CLS] and [SEP] from all other tokens."""
    return table.sel(role=["cls", "sep"], source="others").drop_vars("source").rename(role="token")


def summarise_special(rows: xr.Dataset) -> xr.Dataset:
    """Return the mean weight on [CLS] and [SEP] from all other tokens, over all heads, and its change."""
    special = average(select_special(stack_sizes(rows, "special_tokens")), "layer", "head")
    return summarise("weight", special.transpose(..., "size", "token", "several"), baseline="raw")


def summarise_types(rows: xr.Dataset) -> xr.Dataset:
    """Return the mean weight from [CLS] on each type of token, over the heads of one layer, and its change.

    `sep_margin` is the weight on [SEP] minus the second largest of the other types, both absolute: positive where
    [SEP] is among the two types that are attended to most. A type that never occurs counts as 0.
    `published_type_weight` is the mean over heads of what the published figure shows: the absolute value of each
    head's mean. The constant factor by which that code divides too much is left out.
    """
    types = stack_sizes(rows, "token_types")
    result = summarise("type_weight", average(types, "head").transpose(..., "size", "type", "several"), baseline="raw")
    largest = types.sel(size="signed", several="max").transpose("example", "lens", "head", "type")
    published = np.abs(mean_interval(largest.values)[0]).mean(1)
    return result.merge(compare_types(result, types.sizes["example"])).assign(
        published_type_weight=(("lens", "type"), published)
    )


def summarise_sink(rows: xr.Dataset) -> xr.Dataset:
    """Return the mean weight on the sink of each layer and of all layers, its change, and what it is how often."""
    sink = rows["sink_rows"]
    by_layer = average(sink, "head", "kind")
    is_sink = sink.sel(lens="raw", drop=True).notnull().any("head")  # example layer kind
    known = is_sink.where(is_sink.any("kind")).transpose("example", "layer", "kind")
    shares = (("layer", "sink"), mean_interval(known.values)[0])
    parts = [summarise("sink_weight", by_layer, baseline="raw")]
    parts.append(summarise("sink_mean", average(by_layer, "layer"), baseline="raw"))
    return xr.merge(parts).assign(sink_kind=shares).assign_coords(sink=sink["kind"].values)


def summarise_dispersion(rows: xr.Dataset) -> xr.Dataset:
    """Return the mean entropy of the rows of all heads, and its change."""
    return summarise("dispersion", average(rows["entropy_rows"], "layer", "head"), baseline="raw")


def summarise_distance(rows: xr.Dataset, name: str = "distance") -> xr.Dataset:
    """Return the mean change of all heads relative to raw attention."""
    return summarise(name, average(rows["relative_change_rows"], "layer", "head"))


def summarise_distance_by_tokens(rows: xr.Dataset, tokens: Any, longest: int) -> xr.Dataset:
    """Return the mean relative change of inputs of 1–8 tokens, 9–16 and so on, at the middle of each range."""
    ranges = range(0, longest, TOKENS_PER_BIN)
    groups = {low + (TOKENS_PER_BIN + 1) / 2: (tokens > low) & (tokens <= low + TOKENS_PER_BIN) for low in ranges}
    summary = partial(summarise_distance, name="distance_by_tokens")
    return summarise_by("tokens", groups, rows, summary).rename(n="count_by_tokens")


def summarise_published_weights(rows: xr.Dataset) -> xr.Dataset:
    """Return the mean weight on [CLS] and [SEP] as the published code averages it; NaN for other lenses."""
    return summarise("published_weight", rows["published_rows"])


def find_unchanged(share: Array) -> Any:
    """Return where effective attention equals attention, from ‖A_eff‖ / ‖A‖: the lost part is orthogonal to it."""
    return share.astype(float) ** 2 >= 1 - SAME**2


def summarise_share(rows: xr.Dataset) -> xr.Dataset:
    """Return the share of attention that is effective, and of heads and of whole inputs where all of it is."""
    share = rows["effective_share_rows"].transpose("example", "lens", "layer", "head")
    same = find_unchanged(share.sel(lens="effective").values)
    counts = (same.mean(), same.all((1, 2)).mean()) if len(same) else (np.nan, np.nan)
    summarised = summarise("effective_share", average(share, "layer", "head"))
    return summarised.assign(same_heads=counts[0], same_inputs=counts[1])


def compare_norms(rows: xr.Dataset) -> xr.Dataset:
    """Return the agreement with the norm-based analysis, and the portion of [CLS]'s attention on each type."""
    cosine, rank = (rows[f"lens_agreement{end}_rows"].mean(("layer", "head")) for end in ("", "_rank"))
    types = abs(average(rows["token_types_rows"].isel(layer=-1), "head"))
    portion = types / types.sum("type")  # the units of lenses differ, portions do not
    parts = [summarise("agreement", cosine), summarise("agreement_rank", rank), summarise("type_portion", portion)]
    return xr.merge(parts).rename(lens="beside_norm")


def time_ratios(times: xr.Dataset) -> xr.Dataset:
    """Return the time of every variant over raw attention's, turn by turn: the median, the least and the most."""
    turns = times["seconds"] / times["seconds"].sel(way="raw")
    return xr.Dataset(name_ends("ratio", (turns.median("turn"), turns.min("turn"), turns.max("turn"))))


def pool_ratios(times: xr.Dataset) -> xr.Dataset:
    """Return the mean ratio of all tasks with its interval over tasks, their number `n`, and the median of each.

    Turns of one task are not independent, so their mean counts once. The smallest batch of each task counts.
    """
    ratios = times["seconds"] / times["seconds"].sel(way="raw")
    smallest = ratios.isel(batch=ratios.notnull().any("turn").argmax("batch"))
    means = average(smallest, "turn").transpose("task", "way")
    medians = smallest.median("turn").transpose("way", "task").values
    texts = [
        ", ".join(f"{task} {value:.2f}×" for task, value in zip(list_tasks(times), row, strict=True)) for row in medians
    ]
    pooled = xr.Dataset({**with_interval("ratio", ("way",), mean_interval(means.values)), "text": ("way", texts)})
    return pooled.assign(n=times.sizes["task"]).assign_coords(way=times["way"]).expand_dims(task=["all tasks"])

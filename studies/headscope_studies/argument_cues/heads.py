"""Where attention to the words of a cue differs between points that a model gets by the cue and the others."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import estimate, name_ends
from headscope.core.example import Example
from headscope.data.tokenizing.words import split_words
from headscope.engine.model import Model
from headscope.experiments.tuned import ignore_truncation
from headscope.measuring.measure import measure
from headscope.statistics.marked_words import MarkedWords
from headscope.uncertainty.corrections import correct_p_values, simultaneous_factor
from headscope.uncertainty.intervals import student_margin, t_test
from headscope_studies.argument_cues.cue import Cue, Pointed
from headscope_studies.argument_cues.parts import Part, select_part

LENSES = ("raw", "effective", "norm")
FEWEST = 10
"""Both groups have at least so many points, or no head is compared."""


def mark_cue(examples: Sequence[Example], part: Part, cue: Cue) -> list[Example]:
    """Return the inputs with the words of the cue marked: of a choice that with the cue, of a classification the text.

    Examples are those to which the cue applies.
    """
    marked = []
    for example, pointed in zip(select_part(examples, part), cue.point(examples).tolist(), strict=True):
        first, second = example.text, example.pair
        if "choices" in example.columns:
            choice = str(example.columns["choices"][pointed])
            first, second = (example.text, choice) if example.text.strip() else (choice, None)
        spans, pair_spans = split_words(first), split_words(second or "")
        own = cue.mark(first) if second is None or "choices" not in example.columns else []
        words = [*own, *(len(spans) + word for word in cue.mark(second or ""))]
        columns = {"spans": tuple(spans), "pair_spans": tuple(pair_spans), "marked": tuple(words)}
        marked.append(replace(example, text=first, pair=second, words=None, columns=columns))
    return marked


def compare_attention(
    model: Model, examples: Sequence[Example], part: Part, cue: Cue, predicted: Pointed, *, max_length: int
) -> xr.Dataset:
    """Return the weight on the cue of every head at points got by the cue, at others, and the difference.

    A point is got by the cue if the cue points to the right answer and the model gives it; the others are all other
    points with the cue. `difference` has Welch's 95 % interval, and p-values corrected by Holm for all heads of a lens
    and a query. Nothing is known where one of the groups has fewer than `FEWEST` points.
    """
    pointed = cue.point(examples)
    rows = np.flatnonzero(pointed >= 0).tolist()
    label = np.array([int(example.label or 0) for example in examples])
    by_cue = ((pointed == label) & (predicted == label))[rows]
    marked = [
        replace(example, id=str(row))
        for row, example in zip(rows, mark_cue([examples[row] for row in rows], part, cue), strict=True)
    ]
    with ignore_truncation():
        measured = measure(
            model,
            marked,
            lens=list(LENSES),
            statistics=[MarkedWords()],
            rows=True,
            max_length=max_length,
            progress=False,
        ).isel(site=0, drop=True)
    table = measured["marked_words_rows"].sel(example=[str(row) for row in rows])
    table = table.assign_coords(lens=list(LENSES)).rename(source="query")
    table = table.transpose("example", "lens", "query", "layer", "head")
    return compare_groups(table, by_cue)


def compare_groups(table: xr.DataArray, by_cue: np.ndarray[Any, np.dtype[np.bool_]]) -> xr.Dataset:
    """Return means of both groups along `example`, their difference by Welch's test, and corrected p-values."""
    groups = [table.values[by_cue], table.values[~by_cue]]
    sizes = [int(by_cue.sum()), int((~by_cue).sum())]
    dims, shape = table.dims[1:], table.shape[1:]
    empty = np.full(shape, np.nan)
    if min(sizes) >= FEWEST:
        means = [np.nanmean(group, axis=0) for group in groups]
        most = np.nanmax(table.values, axis=0)  # weights that are all the same differ by exactly 0, without rounding
        errors = [np.nanvar(group - most, axis=0, ddof=1) / np.isfinite(group).sum(0) for group in groups]
        error = np.sqrt(errors[0] + errors[1])
        with np.errstate(invalid="ignore", divide="ignore"):
            degrees = error**4 / sum(part**2 / (size - 1) for part, size in zip(errors, sizes, strict=True))
        degrees = np.where(np.isfinite(degrees), degrees, 1.0)
        margin = student_margin(error * np.sqrt(degrees + 1), degrees + 1)
        difference = np.nanmean(groups[0] - most, axis=0) - np.nanmean(groups[1] - most, axis=0)
        p = t_test(difference, error, degrees)
        adjusted = np.stack([[correct_p_values(source.ravel()).reshape(source.shape) for source in lens] for lens in p])
    else:
        means, difference, margin, p, adjusted = [empty, empty], empty, empty, empty, empty
    ends = name_ends("difference", (difference, difference - margin, difference + margin))
    tests = {"difference_p": p, "difference_p_adjusted": adjusted}
    variables = {"weight_by_cue": means[0], "weight_others": means[1], **ends, **tests}
    coords = {name: table[name].values for name in dims}
    heads = xr.Dataset({name: (dims, values) for name, values in variables.items()}, coords)
    return heads.assign(by_cue=sizes[0], others=sizes[1])


def summarise_heads(heads: xr.Dataset) -> xr.Dataset:
    """Return the largest difference of all heads for every lens and query, without its sign, over seeds.

    `head_difference_change` is the mean over seeds of the head whose mean difference is the largest in size; its
    interval holds those of all seeds, each simultaneous for all heads. `significant` counts heads with p < 0.05 in most
    seeds, and `significant_seeds` the seeds with any such head.
    """
    count = heads.sizes["layer"] * heads.sizes["head"]
    factor = simultaneous_factor(count, int((heads["by_cue"] + heads["others"]).min()))
    mean = heads["difference"].mean("seed")
    stacked = abs(mean).stack(one=("layer", "head"))
    known = bool(np.isfinite(stacked.values).any())
    best = stacked.fillna(-1.0).argmax("one")
    differences = estimate(heads, "difference").ends
    picked = [end.stack(one=("layer", "head")).isel(one=best, drop=True) for end in differences]
    mean = picked[0].mean("seed").reset_coords(drop=True)
    sign = mean.copy(data=np.sign(mean.values))
    value, low, high = (sign * end.reset_coords(drop=True) for end in picked)
    low, high = low.where(low < high, high), high.where(low < high, low)
    ends = (
        value.mean("seed"),
        (value - factor * (value - low)).min("seed"),
        (value + factor * (high - value)).max("seed"),
    )
    variables: dict[str, Any] = name_ends("head_difference_change", ends)
    significant = heads["difference_p_adjusted"] < 0.05
    positions = np.unravel_index(best.values, (heads.sizes["layer"], heads.sizes["head"]))
    variables |= {
        f"best_{name}": (best.dims, heads[name].values[at])
        for name, at in zip(("layer", "head"), positions, strict=True)
    }
    variables["significant"] = (significant.mean("seed") > 0.5).sum(("layer", "head"))
    variables["significant_seeds"] = significant.any(("layer", "head")).sum("seed")
    summary = xr.Dataset(variables).assign(by_cue=heads["by_cue"].mean("seed"), others=heads["others"].mean("seed"))
    return summary if known else summary.assign({name: np.nan * summary[name] for name in list(summary)[:3]})

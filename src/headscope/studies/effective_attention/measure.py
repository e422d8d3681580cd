"""What is measured of one task: every head of the base and the tuned model, scores, times, and one example."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.core.example import Example
from headscope.core.trace import Trace
from headscope.engine.model import Model
from headscope.experiments import summary
from headscope.experiments.example import choose_example, map_head
from headscope.experiments.scores import score_edits
from headscope.experiments.summary import average, select_special, stack_sizes, summarise
from headscope.experiments.timing import time_evaluation
from headscope.experiments.tuned import TaskRun, find_example, ignore_truncation
from headscope.results.stamp import fingerprint
from headscope.uncertainty.bootstrap import bootstrap_means
from headscope.uncertainty.intervals import Array

LENSES = {"raw": "raw", "effective": "effective", "padded": "effective:keys=padded", "paper": "effective:keys=paper"}
NORM_LENSES = {"raw": "raw", "effective": "effective", "norm": "norm"}
IN_PLACE = "effective_attention"
EDITS = {"raw": None, "effective": IN_PLACE, "padded": f"{IN_PLACE}:keys=padded", "paper": f"{IN_PLACE}:keys=paper"}
STATISTICS = ("special_tokens:several=max", "token_types", "effective_share")
BATCHES = {"cpu": (8,), "cuda": (8, 64)}  # sizes that are timed; the paper's is 8
SAME = 1e-3  # effective attention equals attention if they differ by at most this fraction of its norm
TOP = 2  # [SEP] is said to be among this number of types that are attended to most


def measure_task(run: TaskRun, classifier: str, example: str | None) -> dict[str, xr.Dataset]:
    """Return the numbers, times and maps of one task."""
    shown = find_example(run, example)
    maps = f"maps-{fingerprint([str(example)])}" if shown else "maps"
    return {
        "numbers": run.steps.keep("numbers", partial(measure_numbers, run, classifier), discard="*.state"),
        "maps": run.steps.keep(maps, partial(measure_maps, run, shown)),
        "times": run.steps.keep("times", partial(measure_times, run)),
    }


def measure_numbers(run: TaskRun, classifier: str) -> xr.Dataset:
    """Return everything that is the same whenever the study is repeated."""
    statistics = (f"patterns:classifier={classifier}", *STATISTICS)
    tuned, padded = run.tuned, {"pad_to": run.max_length}  # padded as in the paper's code
    run.steps.say(2, f"measuring every head of the tuned model and of the base, {len(run.examples):,} inputs")
    both = run.measure(tuned, "tuned", LENSES, (*statistics, "similarity"), against=run.base, **padded)
    run.steps.say(3, "measuring the base alone")
    base = run.measure(run.base, "base", LENSES, statistics, **padded)
    run.steps.say(4, "comparing with the norm-based analysis")
    norms = run.measure(tuned, "norms", NORM_LENSES, ["lens_agreement", "token_types"])
    run.steps.say(5, "scoring with every attention in place")
    options: dict[str, Any] = {"max_length": run.max_length, "progress": run.steps.bars, **padded}
    with ignore_truncation():
        scored = run.steps.keep("scores", lambda: score_edits(tuned, run.examples, EDITS, **options))
    groups = summary.group_lengths(run.lengths["tokens"].values, int(run.lengths["value_size"]), run.max_length)
    roles = {name: rows.sel(example=run.lengths["example"]) for name, rows in (("base", base), ("tuned", both))}
    parts = [summarise_role(rows, groups, classifier) for rows in roles.values()]
    whole = xr.concat(parts, "role").assign_coords(role=list(roles))
    whole["n"] = whole["n"].isel(role=0)
    about = run.describe(metric=str(scored.attrs["metric"]))
    parts = [whole, summary.summarise_similarity(roles["tuned"]), compare_norms(norms), scored.drop_attrs(), about]
    return xr.merge(parts, compat="no_conflicts", join="outer").expand_dims(task=[run.task.name]).drop_attrs()


def measure_maps(run: TaskRun, example: Example | None) -> xr.Dataset:
    """Return the maps of the head that attends most to [SEP], raw and effective, on one example."""
    run.steps.say(6, "one head on one example")
    with ignore_truncation():
        tokens, size = run.lengths["tokens"].values.tolist(), int(run.lengths["value_size"])
        shown = example or choose_example(run.examples, tokens, size)
        return map_head(run.tuned, shown, ("raw", "effective"), run.max_length)


def measure_times(run: TaskRun) -> xr.Dataset:
    """Return evaluation times, which differ from run to run."""
    run.steps.say(7, "timing evaluation with raw and with effective attention")
    with ignore_truncation():
        return time_model(run.tuned, run.examples, run.max_length).expand_dims(task=[run.task.name])


def summarise_role(rows: xr.Dataset, groups: Mapping[str, Any], classifier: str) -> xr.Dataset:
    """Return everything about one model: shares of patterns, weights on tokens and types, what is the same."""
    summaries = (
        partial(summary.summarise_patterns, classifier=classifier),
        summary.summarise_special,
        _summarise_types,
        _count_same,
    )
    heads = {
        "head_weight": select_special(rows["special_tokens_rows"]).mean("example"),
        "head_type": rows["token_types_rows"].isel(layer=-1, drop=True).mean("example"),
        "head_share": rows["effective_share_rows"].mean("example"),
    }
    return summary.summarise_by("length", groups, rows, *summaries).merge(xr.Dataset(heads))


def compare_norms(rows: xr.Dataset) -> xr.Dataset:
    """Return the agreement with the norm-based analysis, and the portion of [CLS]'s attention on each type."""
    cosine, rank = (rows[f"lens_agreement{end}_rows"].mean(("layer", "head")) for end in ("", "_rank"))
    types = abs(average(rows["token_types_rows"].isel(layer=-1), "head"))
    portion = types / types.sum("type")  # the units of lenses differ, portions do not
    parts = [summarise("agreement", cosine), summarise("agreement_rank", rank), summarise("type_portion", portion)]
    return xr.merge(parts).rename(lens="beside_norm")


def find_unchanged(share: Array) -> Any:
    """Return where effective attention equals attention, from ‖A_eff‖ / ‖A‖: the lost part is orthogonal to it."""
    return share.astype(float) ** 2 >= 1 - SAME**2


def _summarise_types(rows: xr.Dataset) -> xr.Dataset:
    """Return the mean weight from [CLS] in the last layer on each type, over its heads, and its change.

    `sep_leads` is the share of bootstrap draws in which [SEP] is among the types that are attended to most.
    """
    types = average(stack_sizes(rows, "token_types").isel(layer=-1, drop=True), "head")
    result = summarise("type_weight", types.transpose(..., "size", "type"), baseline="raw")
    signed = types.sel(size="signed").transpose("example", "lens", "type")
    drawn = np.nan_to_num(np.abs(bootstrap_means(signed.values)), nan=-1.0)  # draw lens type
    rank = (drawn > drawn[..., [list(signed["type"].values).index("sep")]]).sum(-1)
    result["sep_leads"] = ("lens", np.where(len(signed), (rank < TOP).mean(0), np.nan))
    return result


def _count_same(rows: xr.Dataset) -> xr.Dataset:
    """Return the share of heads, and of inputs with all their heads, whose effective attention equals attention."""
    share = rows["effective_share_rows"].transpose("example", "lens", "layer", "head")
    same = find_unchanged(share.sel(lens="effective").values)
    counts = (same.mean(), same.all((1, 2)).mean()) if len(same) else (np.nan, np.nan)
    summarised = summarise("effective_share", average(share, "layer", "head"))
    return summarised.assign(same_heads=counts[0], same_inputs=counts[1])


def time_model(model: Model, examples: Sequence[Example], max_length: int) -> xr.Dataset:
    """Return the seconds of one batch: evaluated as it is, with effective attention in place, with every effective map,
    and with the maps computed as in the paper, which is slow.
    """
    sizes = BATCHES.get(model.device.type, BATCHES["cpu"])
    edits, maps, slow = {"raw": None, "in place": IN_PLACE}, {"maps": "effective"}, {"svd": effective_by_svd}
    return time_evaluation(model, examples, max_length, sizes, edits=edits, maps=maps, slow=slow)


def effective_by_svd(trace: Trace) -> list[torch.Tensor]:
    """Return effective maps as the paper's code does: A less its projection on the left null space, by a full SVD."""
    assert trace.values is not None
    maps = []
    for attention, values in zip(trace.attention, trace.values, strict=True):
        null = torch.linalg.svd(values, full_matrices=True)[0][..., values.shape[-1] :]
        maps.append(attention - attention @ null @ null.mT)
    return maps

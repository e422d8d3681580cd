"""What is measured of one task: every head of the base and the tuned model, scores, times, and one example."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import xarray as xr

from headscope.core.example import Example
from headscope.core.provenance import drop_attrs
from headscope.engine.model import Model
from headscope.experiments import summary
from headscope.experiments.one_head import choose_example, map_head
from headscope.experiments.pattern_shares import summarise_patterns
from headscope.experiments.summary import select_special
from headscope.experiments.timing import time_evaluation
from headscope.experiments.tuned import TaskRun, find_example, ignore_truncation
from headscope.results.hashes import fingerprint
from headscope_studies.effective_attention.published import average_all_rows, effective_by_svd
from headscope_studies.effective_attention.scores import score_edits

LENSES = {"raw": "raw", "effective": "effective", "padded": "effective:keys=padded", "paper": "effective:keys=paper"}
NORM_LENSES = {"raw": "raw", "effective": "effective", "norm": "norm"}
IN_PLACE = "effective_attention"
EDITS = {"raw": None, "effective": IN_PLACE, "padded": f"{IN_PLACE}:keys=padded", "paper": f"{IN_PLACE}:keys=paper"}
STATISTICS = (
    "special_tokens:reduce=all,roles=cls+sep,source=others",
    "effective_share",
    "relative_change",
    "entropy",
    "sink",
)
TYPES = "token_types:reduce=all"  # of the last layer
BATCHES = {"cpu": (8,), "cuda": (8, 64)}  # sizes that are timed; the paper's is 8


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
    """Return everything that is the same whenever the study is repeated.

    What concerns the base model alone is the step `base`, which runs of several seeds share.
    """
    run.steps.say(2, f"measuring every head of the tuned model and of the base, {len(run.examples):,} inputs")
    both = measure_rows(run, run.tuned, "tuned", (f"patterns:classifier={classifier}", "similarity"), against=run.base)
    tuned = summarise_role(both, run, classifier)
    base = run.steps.keep("base", partial(measure_base, run, classifier), discard="base*.state")
    run.steps.say(4, "comparing with the norm-based analysis")
    norms = run.measure(run.tuned, "norms", NORM_LENSES, ["lens_agreement", "token_types"])
    run.steps.say(5, "scoring with every attention in place")
    options: dict[str, Any] = {"max_length": run.max_length, "pad_to": run.max_length, "progress": run.steps.bars}
    with ignore_truncation():
        scored = run.steps.keep("scores", lambda: score_edits(run.tuned, run.examples, EDITS, **options))
    whole = xr.concat([base, tuned], "role").assign_coords(role=["base", "tuned"])
    for name in ("n", "count_by_tokens"):
        whole[name] = whole[name].isel(role=0)
    about = run.describe(metric=str(scored.attrs["metric"]))
    parts = [whole, summary.summarise_similarity(both), summary.compare_norms(norms), drop_attrs(scored), about]
    return drop_attrs(xr.merge(parts, compat="no_conflicts", join="outer").expand_dims(task=[run.task.name]))


def measure_base(run: TaskRun, classifier: str) -> xr.Dataset:
    """Return everything about the model before tuning."""
    run.steps.say(3, "measuring the base alone")
    rows = measure_rows(run, run.base, "base", (f"patterns:classifier={classifier}",))
    return drop_attrs(summarise_role(rows, run, classifier))


def measure_rows(run: TaskRun, model: Model, role: str, more: Sequence[str], **options: Any) -> xr.Dataset:
    """Return one value for each input and head, of inputs padded as in the paper's code; types of the last layer."""
    padded = {"pad_to": run.max_length}
    rows = run.measure(model, role, LENSES, (*more, *STATISTICS), **padded, **options)
    types = run.measure(model, f"{role}_types", LENSES, [TYPES], layers=-1, **padded).isel(layer=0, drop=True)
    with ignore_truncation():
        published = average_all_rows(model, run.examples, run.max_length).reindex(lens=list(LENSES))
    rows = rows.assign({name: types[name] for name in types if str(name).endswith("_rows")})
    return rows.sel(example=run.lengths["example"]).assign(published_rows=published)


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


def summarise_role(rows: xr.Dataset, run: TaskRun, classifier: str) -> xr.Dataset:
    """Return everything about one model: shares of patterns, weights on tokens and types, what is the same."""
    tokens, size = run.lengths["tokens"].values, int(run.lengths["value_size"])
    summaries = (
        partial(summarise_patterns, classifier=classifier, lenses=LENSES),
        summary.summarise_special,
        summary.summarise_types,
        summary.summarise_sink,
        summary.summarise_dispersion,
        summary.summarise_distance,
        summary.summarise_published_weights,
        summary.summarise_share,
    )
    largest = {name: rows[f"{name}_rows"].sel(several="max", drop=True) for name in ("special_tokens", "token_types")}
    heads = {
        "head_weight": select_special(largest["special_tokens"]).mean("example"),
        "head_type": largest["token_types"].mean("example"),
        "head_share": rows["effective_share_rows"].mean("example"),
    }
    by_length = summary.summarise_by("length", summary.group_lengths(tokens, size, run.max_length), rows, *summaries)
    by_tokens = summary.summarise_distance_by_tokens(rows, tokens, run.max_length)
    return xr.merge([by_length, by_tokens, xr.Dataset(heads)])


def time_model(model: Model, examples: Sequence[Example], max_length: int) -> xr.Dataset:
    """Return the seconds of one batch: evaluated as it is, with effective attention in place, with every effective map,
    and with the maps computed as in the paper, which is slow.
    """
    sizes = BATCHES.get(model.device.type, BATCHES["cpu"])
    edits, maps, slow = {"raw": None, "in place": IN_PLACE}, {"maps": "effective"}, {"svd": effective_by_svd}
    return time_evaluation(model, examples, max_length, sizes, edits=edits, maps=maps, slow=slow)

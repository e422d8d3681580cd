"""What is measured of one task: rows of [CLS] beside importances, and examples with one word replaced."""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import take_interval, with_interval
from headscope.core.example import Example
from headscope.core.lens import view
from headscope.core.provenance import drop_attrs
from headscope.engine.capture import capture
from headscope.experiments import summary
from headscope.experiments.summary import summarise
from headscope.experiments.tuned import TaskRun, find_example, ignore_truncation
from headscope.results.hashes import fingerprint
from headscope.training.labels import find_majority
from headscope.training.score import score
from headscope.uncertainty.intervals import wilson_interval
from headscope_studies.attention_flow import paper
from headscope_studies.attention_flow.claims import CONTRASTS, SST_CONTRASTS
from headscope_studies.attention_flow.paper import SHOWN
from headscope_studies.attention_flow.prediction_rows import KEPT, RowComparison
from headscope_studies.attention_flow.published import SCRIPT, read_inputs, relate
from headscope_studies.attention_flow.replaced_word import choose_kinds, show_replaced
from headscope_studies.attention_flow.token_scores import measure_token_scores, split_token_scores

INNER = {"raw": "raw", "effective": "effective", "norm": "norm", "gradient": "gradient:times_attention=true"}
GRAPHS = {name: (name, *(f"{name} {graph}" if name != "raw" else graph for graph in SHOWN[1:])) for name in INNER}
LENSES = {
    label: inner if label == name else label if name == "raw" else f"{label.split()[-1]}:inner=({inner})"
    for name, inner in INNER.items()
    for label in GRAPHS[name]
}
"""Each attention by itself, and rollout and flow through the graph made of it."""

SCORES = {
    "blank-out": "blank_out:replace=unk",
    "|blank-out|": "blank_out:replace=unk,change=absolute",
    "gradient": "input_gradient",
    "gradient × input": "input_gradient:kind=times_input",
}
MOST = 4
"""Attractors from which sentences are counted together."""


def measure_task(run: TaskRun, example: str | None) -> dict[str, xr.Dataset]:
    """Return the numbers, the shown examples and the maps of one of them."""
    wanted = find_example(run, example)
    name = f"-{fingerprint([str(example)])}" if wanted else ""
    with ignore_truncation():
        return {
            "numbers": _join_script(run.steps.keep("numbers", partial(measure_numbers, run)), run),
            "shown": run.steps.keep(f"shown{name}", partial(measure_shown, run, wanted)),
            "maps": run.steps.keep(f"maps{name}", partial(measure_maps, run, wanted)),
        }


def _join_script(numbers: xr.Dataset, run: TaskRun) -> xr.Dataset:
    """Return the numbers with those of the authors' script as one more task, if the task is theirs."""
    if run.task.name != paper.SST:
        return numbers
    return xr.concat([numbers, run.steps.keep("script", partial(measure_script, run))], "task", join="outer")


def measure_numbers(run: TaskRun) -> xr.Dataset:
    """Return everything over all inputs, and over those that are predicted correctly."""
    scored, rows = predict(run), run.steps.keep("rows", partial(measure_rows, run))
    right = find_right(scored)
    counts = [example.columns.get("attractors") for example in run.examples]
    attractors = np.array([np.nan if count is None else min(int(count), MOST) for count in counts], float)
    rows = rows.assign(attractors=("example", attractors))
    groups = summarise_groups(rows, right, scored["label"].values)
    return join_numbers(rows, scored, run.describe(metric="accuracy"), run.task.name, groups).sel(lens=list(LENSES))


def measure_script(run: TaskRun) -> xr.Dataset:
    """Return what the authors' script measures on SST-2, over the same inputs."""
    readings = read_inputs(run.tuned, run.examples, max_length=run.max_length)
    return join_script(
        relate(readings, [example.id for example in run.examples]), predict(run), run.describe(metric="accuracy")
    )


def join_script(steps: xr.Dataset, scored: xr.Dataset, facts: xr.Dataset) -> xr.Dataset:
    """Return the numbers of the script: its last step is its correlation, those before say what each departure does."""
    last = steps["step_correlation"].sel(step=SCRIPT, drop=True).expand_dims(importance=["gradient"], axis=1)
    return join_numbers(steps.assign(correlation=last), scored, facts, paper.SCRIPT)


def find_right(scored: xr.Dataset) -> Any:
    """Return which examples are predicted correctly."""
    return scored["prediction"].values == scored["label"].values


def join_numbers(rows: xr.Dataset, scored: xr.Dataset, facts: xr.Dataset, task: str, *more: xr.Dataset) -> xr.Dataset:
    """Return the summaries of all rows and of those predicted correctly, with the accuracy and the facts of a task."""
    right = find_right(scored)
    subsets = {"all": np.ones(len(right), bool), "correct": right}
    whole = summary.summarise_by("subset", subsets, rows, summarise_rows, summarise_contrasts).rename(n="count")
    learned = take_interval(scored, "accuracy", "score").assign(majority=scored["majority"])
    learned = learned.expand_dims(lens=["raw"]).reset_coords(drop=True)
    numbers = xr.merge([whole, *more, learned, facts], compat="no_conflicts", join="outer")
    numbers = numbers.assign(n=len(right), count=numbers["count"].astype(float))
    return drop_attrs(numbers.expand_dims(task=[task]))


def predict(run: TaskRun) -> xr.Dataset:
    """Return the predictions of the tuned model."""
    options: dict[str, Any] = {"max_length": run.max_length, "progress": run.steps.bars}
    return run.steps.keep("scores", lambda: score(run.tuned, run.examples, **options))


def measure_rows(run: TaskRun) -> xr.Dataset:
    """Return the values of every input; importances are for the probability of its label."""
    tuned = run.tuned
    run.steps.say(2, "how important each token is: blank-out and input gradients")
    options: dict[str, Any] = {"target": "label", "max_length": run.max_length}
    make = partial(measure_token_scores, tuned, run.examples, SCORES, **options)
    scores = split_token_scores(run.steps.keep("importances", make))
    run.steps.say(3, f"rows of [CLS] through {len(LENSES)} lenses, {len(run.examples):,} inputs")
    comparison = RowComparison(LENSES, scores, {"subject": "subject_position", "attractor": "attractor_positions"})
    return comparison.measure(tuned, run.examples, max_length=run.max_length, quiet=not run.steps.bars)


def measure_shown(run: TaskRun, wanted: Example | None) -> xr.Dataset:
    """Return an input that is predicted correctly and one that is not, each with one word replaced."""
    run.steps.say(4, "examples with one word replaced")
    kinds = choose_kinds(run.examples, predict(run))
    if "wrong" not in kinds:  # look for one among the inputs that were not sampled
        kinds = (
            choose_kinds(run.task.dev, score(run.tuned, run.task.dev, max_length=run.max_length, progress=False))
            | kinds
        )
    kinds |= {"chosen": [wanted]} if wanted else {}
    lenses = {name: LENSES[name] for name in SHOWN}
    return show_replaced(run.tuned, kinds, lenses, max_length=run.max_length).expand_dims(task=[run.task.name])


def measure_maps(run: TaskRun, wanted: Example | None) -> xr.Dataset:
    """Return flow on one example with the graph of its layers."""
    run.steps.say(5, "the layers of one example")
    example = wanted or choose_kinds(run.examples, predict(run)).get("right", run.examples)[0]
    trace = capture(run.tuned, [example], keep=KEPT, max_length=run.max_length)
    return view(trace, "flow").dataset()


def summarise_rows(rows: xr.Dataset) -> xr.Dataset:
    """Return means over inputs with their intervals, and the standard deviation of correlations."""
    names = ("correlation", "step_correlation", "spread", "diagonal", "at_bound", "same_for_sources")
    parts = [summarise(name, rows[name]) for name in names if name in rows]
    values = rows["correlation"]
    missing = values.isnull().sum("example").astype(float)  # other seeds may miss others: their mean is no whole number
    return xr.merge(parts).assign(correlation_std=values.std("example"), missing=missing)


def summarise_contrasts(rows: xr.Dataset) -> xr.Dataset:
    """Return the mean of every contrast of a claim; of the authors' script, those of their table."""
    chosen = SST_CONTRASTS if "step_correlation" in rows else CONTRASTS
    dropped = ("lens", "importance", "layer", "word")
    values = [contrast(rows).drop_vars(dropped, errors="ignore") for contrast in chosen.values()]
    table = xr.concat(values, "contrast", join="outer", coords="minimal", compat="override")
    named = table.assign_coords(contrast=list(chosen)).expand_dims(lens=["exact"])  # claims are judged along lenses
    result = summarise("difference", named).isel(lens=0, drop=True)
    return result.merge(take_interval(result, "difference", "difference_change"))


def summarise_groups(rows: xr.Dataset, right: Any, labels: Any) -> xr.Dataset:
    """Return accuracy beside the most common label, and weights on words, by the number of attractors, if known."""
    attractors = rows["attractors"].values
    groups = {int(count): attractors == count for count in np.unique(attractors[np.isfinite(attractors)])}
    if not groups:
        return xr.Dataset()
    table = summary.summarise_by("attractors", groups, rows.drop_vars("attractors"), _summarise_lift)
    ends = [(right[mask].mean(), *wilson_interval(int(right[mask].sum()), int(mask.sum()))) for mask in groups.values()]
    table["group_majority"] = ("attractors", [find_majority(labels[mask])[1] for mask in groups.values()])
    return table.rename(n="group_count").assign(with_interval("group_accuracy", ("attractors",), np.array(ends).T))


def _summarise_lift(rows: xr.Dataset) -> xr.Dataset:
    return summarise("lift", rows["lift"])

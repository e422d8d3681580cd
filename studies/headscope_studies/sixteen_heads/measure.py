"""What is measured of one tuned model: without each head, with one head a layer, pruned, on other data, in training."""

import shutil
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.ablation.ablate import ablate
from headscope.ablation.head_importance import compute_reductions, find_site, head_importance
from headscope.ablation.head_sets import count_heads
from headscope.ablation.pruning_curve import pruning_curve
from headscope.core.estimate import estimate, interval_names, name_ends, with_interval
from headscope.core.example import Example, sample_examples
from headscope.core.provenance import drop_attrs, read_provenance
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.experiments.tuned import ABLATION_BATCH, TaskRun, ignore_truncation
from headscope.training.labels import find_majority
from headscope.training.score import score
from headscope.uncertainty.corrections import LEVEL
from headscope_studies.sixteen_heads import head_effects as effects
from headscope_studies.sixteen_heads.claims import COMPARED, SMALL, enough
from headscope_studies.sixteen_heads.head_effects import Ends, compare_orders, correlate_heads, share_of

REDUCTIONS = ("example", "token", "batch")
STEP = 10
"""Percent of the heads that are pruned at a time."""

HALF_ORDERS = 10
"""Random orders at half of the heads, where orders are compared."""

LEARNED = 1000
"""Training examples that importance is estimated on, a random sample where there are more."""

RAW_LEVEL, PAPER_LEVEL = 0.05, 0.01
"""Levels of p-values that are not corrected for the number of heads: ours, and that of the paper."""

NUMBERS = [*interval_names("score"), *interval_names("change")]


def measure_task(run: TaskRun, *, group: str, orders: int) -> dict[str, xr.Dataset]:
    """Return the numbers of a task; models kept during training are deleted when they are measured."""
    with ignore_truncation():
        numbers = run.steps.keep("numbers", partial(_measure, run, group, orders))
    if run.tuned_folder is None:
        for folder in run.list_checkpoints().values():
            shutil.rmtree(folder)
    return {"numbers": numbers}


def _measure(run: TaskRun, group: str, orders: int) -> xr.Dataset:
    model, examples = run.tuned, run.examples
    learned = sample_examples(run.task.train, LEARNED, run.seed)
    options: dict[str, Any] = {"max_length": run.max_length, "progress": run.steps.bars}
    ablation = run.steps.keep("ablation", partial(_remove_one, run, model, options))
    heads = measure_heads(model, examples, ablation, learned=learned, orders=orders, say=run.steps.say, **options)
    run.steps.say(5, "comparing parts of the data, and models during training")
    size = ABLATION_BATCH[model.device.type]
    parts = effects.compare_parts(
        model, examples, ablation, effects.split_parts(examples, group), batch_size=size, **options
    )
    options |= {"device": run.device, "batch_size": size}
    training = follow_training(run.list_checkpoints().values(), learned or examples, heads, **options)
    labels = [example.label for example in examples]
    majority = find_majority(np.array(labels))[1] if all(isinstance(label, int) for label in labels) else np.nan
    more = {"majority": ((), majority), "n": ((), len(examples)), "learned": ((), len(learned))}
    facts = run.describe(metric=read_provenance(ablation)["main"])
    return xr.merge([heads, parts, training, facts.assign(more)]).expand_dims(task=[run.task.name])


def _remove_one(run: TaskRun, model: Model, options: dict[str, Any]) -> xr.Dataset:
    run.steps.say(2, "removing one head at a time")
    table = ablate(model, run.examples, batch_size=ABLATION_BATCH[model.device.type], **options)
    return table.drop_vars([name for name in table.coords if name not in ("layer", "head")])


def measure_heads(
    model: Model,
    examples: Sequence[Example],
    ablation: xr.Dataset,
    *,
    learned: Sequence[Example] = (),
    orders: int,
    say: Any = lambda *_: None,
    **options: Any,
) -> xr.Dataset:
    """Return what is measured at one site of any model, from the scores without each head and further ones.

    Importance is estimated on examples that the model learned from, and on those studied where there are none.
    """
    options = {"batch_size": ABLATION_BATCH[model.device.type], **options}
    say(3, "removing all heads of a layer but one")
    chosen = effects.choose_best(ablate(model, examples[::2], sets="all_but_one", **options))
    alone = ablate(model, examples[1::2], sets=effects.name_all_but(chosen), **options)
    say(4, "estimating importance, and pruning")
    importance = compute_reductions(model, learned or examples, REDUCTIONS, **options)
    curves = measure_curves(model, examples, orders, {**options, "importance_data": list(learned) or None})
    best, change = effects.judge_best(chosen, alone), ablation["change"]
    known, whole = change.notnull().values, float(ablation["score"])
    significant, p = ablation["change_significant"].values.astype(bool)[known], ablation["change_p"].values[known]
    numbers: dict[str, Ends] = {
        "significant_share": share_of(significant),
        "raw_share": share_of(p < RAW_LEVEL),
        "paper_share": share_of(p < PAPER_LEVEL),
        "worse_share": share_of(significant & (change.values[known] < 0)),
        "small_share": share_of(np.abs(change.values[known]) < SMALL * abs(whole)),
        "enough_share": share_of(enough(best, float(alone["score"]), LEVEL)),
    }
    agreement = [correlate_heads(importance.sel(reduction=name), np.abs(change)) for name in REDUCTIONS]
    variables: dict[str, Any] = {}
    for name, ends in numbers.items():
        variables |= with_interval(name, (), map(np.asarray, ends))
    variables |= with_interval("agreement", ("reduction",), np.array(agreement).T)
    variables["alone_score"] = ((), float(alone["score"]))
    table = ablation[[*NUMBERS, "change_p", "change_p_adjusted"]]
    table = table.assign(significant=ablation["change_significant"].astype(float))
    parts = [table, xr.Dataset(variables), best, importance.to_dataset(), curves]
    return xr.merge([drop_attrs(part) for part in parts], join="outer", compat="override")


def measure_curves(model: Model, examples: Sequence[Example], orders: int, options: dict[str, Any]) -> xr.Dataset:
    """Return the score by percent of heads pruned, by importance and in random orders, and how much of it is kept.

    Random orders are averaged; the ends of the interval are those of all orders. `single` is how much is kept with the
    most important head of every layer, and no other.
    """
    others = {name: value for name, value in options.items() if name != "importance_data"}
    ordered = pruning_curve(model, examples, by="importance", steps=STEP, **options)[NUMBERS]
    random = pruning_curve(model, examples, by="random", steps=STEP, seeds=orders, **others)[NUMBERS]
    ends = {"low": random.min("seed"), "high": random.max("seed")}
    middle = random.mean("seed").assign(
        {f"{name}_{end}": table[f"{name}_{end}"] for end, table in ends.items() for name in ("score", "change")}
    )
    curves = xr.concat([ordered, middle], xr.Variable("order", ["importance", "random"]), join="outer")
    whole = float(ordered["score"].sel(pruned=0))
    shares = name_ends("kept", (1 + end / abs(whole) for end in estimate(curves, "change").ends))
    spread = random["change"].rename("random_change").rename(seed="drawn")
    more = list(range(orders, max(HALF_ORDERS, orders + 1)))
    half = pruning_curve(model, examples, by="random", steps=COMPARED, seeds=more, **others)["change"]
    halves = [table.sel(pruned=COMPARED, drop=True).rename(seed="half") for table in (random["change"], half)]
    names = {name: name.replace("score", "pruned_score").replace("change", "pruned_change") for name in NUMBERS}
    single = _keep_one_head(model, examples, options)
    curves = curves.rename(names).assign(shares).assign(single).merge(spread.to_dataset())
    curves = curves.assign(half_change=xr.concat(halves, "half"))
    return curves.assign(with_interval("gain", (), map(np.asarray, compare_orders(curves)))).drop_attrs()


def _keep_one_head(model: Model, examples: Sequence[Example], options: dict[str, Any]) -> dict[str, Any]:
    """Return the share of the score that is kept with the most important head of every layer only."""
    site = options.get("site")
    sizes = count_heads(model, lambda: score(model, examples[:1], max_length=options.get("max_length"), progress=False))
    sites = sizes.values() if site == "all" else [sizes[find_site(model, site)]]
    heads = [count for layers in sites for count in layers.values()]
    share = 100 * (1 - len(heads) / sum(heads))
    if share == 0:
        return with_interval("single", (), (1.0, 1.0, 1.0))
    pruned = pruning_curve(model, examples, by="importance", steps=share, keep=1, **options).isel(pruned=1)
    whole = np.abs(pruned["score"].values - pruned["change"].values)
    with np.errstate(invalid="ignore", divide="ignore"):  # a score of 0 leaves no share
        return with_interval("single", (), (1 + end.values / whole for end in estimate(pruned, "change").ends))


def follow_training(
    folders: Iterable[Path], examples: Sequence[Example], final: xr.Dataset, *, device: str | None, **options: Any
) -> xr.Dataset:
    """Return importance during training, and its rank correlation with that at the end, by percent of the steps."""
    tables = []
    for folder in folders:
        table = head_importance(load(folder, device=device, dtype="float32"), examples, **options)
        tables.append(table["head_importance"].drop_attrs())
    if not tables:
        return xr.Dataset()
    ends = final["head_importance"].sel(reduction="example", drop=True)
    correlations = np.array([correlate_heads(table, ends) for table in tables]).T
    trained = [round(100 * (index + 1) / len(tables)) for index in range(len(tables))]
    during = xr.concat(tables, xr.Variable("trained", trained)).rename("head_importance_during")
    return during.to_dataset().assign(with_interval("determined", ("trained",), correlations))

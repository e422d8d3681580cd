"""Pruning curves: the score of a model with fewer and fewer heads (Michel et al., 2019)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.ablation.changes import compare_scores
from headscope.ablation.head_importance import find_site, head_importance
from headscope.ablation.head_sets import count_heads
from headscope.ablation.options import PruningCurveOptions
from headscope.core.errors import InputError, unknown_name
from headscope.core.estimate import name_ends
from headscope.core.example import Example
from headscope.core.options import takes_options
from headscope.core.progress import show_progress
from headscope.core.provenance import stamp
from headscope.edits.zero_heads import ZeroHeads
from headscope.engine.pruning.pruned_config import pruned_heads
from headscope.engine.recording.sites import find_sites
from headscope.results.hashes import fingerprint_examples
from headscope.training.finetuning.job import read_examples
from headscope.training.metrics import Metric
from headscope.training.scoring import ScoringJob, make_scoring_job

ORDERS = ("importance", "random")


@dataclass(frozen=True)
class Head:
    """One head of a model."""

    site: str
    layer: int
    head: int
    name: str


Plan = list[list[Head]]
"""The heads that are pruned at each step."""

Order = Callable[[Sequence[Head]], list[Head]]
"""From the heads that are pruned already to the order in which all are."""


def list_heads(
    counts: Mapping[str, Mapping[int, int]], sites: Sequence[str], missing: Iterable[str] = ()
) -> list[Head]:
    """Return all heads at some sites, without those that are missing; `counts` has their number by site and layer."""
    gone, many_sites = set(missing), len(counts) > 1
    heads = [
        Head(site, layer, head, f"{site}.L{layer}H{head}" if many_sites else f"L{layer}H{head}")
        for site in sites
        for layer, count in counts[site].items()
        for head in range(count)
    ]
    return [head for head in heads if head.name not in gone]


def rank_heads(heads: Sequence[Head], importance: Mapping[str, Mapping[tuple[int, int], float]]) -> list[Head]:
    """Return the heads from the least to the most important; equal ones in the order of layers and heads."""
    return sorted(heads, key=lambda head: float(importance[head.site][head.layer, head.head]))


def shuffle_heads(heads: Sequence[Head], seed: int) -> list[Head]:
    """Return the heads in a random order."""
    order = np.random.default_rng(seed).permutation(len(heads))
    return [heads[index] for index in order]


def extend_pruned(pruned: Sequence[Head], ranked: Sequence[Head], count: int, keep: int) -> list[Head]:
    """Return `count` heads: those pruned so far, and the first of `ranked` that leave `keep` heads in each layer."""
    left = Counter((head.site, head.layer) for head in ranked)
    left.subtract((head.site, head.layer) for head in pruned)
    extended = list(pruned)
    for head in ranked:
        if len(extended) == count:
            break
        if head not in pruned and left[head.site, head.layer] > keep:
            extended.append(head)
            left[head.site, head.layer] -= 1
    return extended


def plan_steps(heads: Sequence[Head], steps: Any, keep: Any) -> dict[float, int]:
    """Return the number of heads to prune for each percentage of them, as far as `keep` heads in each layer allow."""
    if isinstance(steps, bool) or not isinstance(steps, int | float) or not 0 < steps <= 100:
        raise InputError(f"steps is a percentage of all heads, above 0 and up to 100, but got {steps!r}.")
    sizes = Counter((head.site, head.layer) for head in heads)
    if isinstance(keep, bool) or not isinstance(keep, int) or not 0 <= keep < max(sizes.values()):
        raise InputError(
            f"keep is the number of heads that each layer keeps, from 0 to {max(sizes.values()) - 1} here, but got "
            f"{keep!r}."
        )
    prunable = sum(max(0, size - keep) for size in sizes.values())
    shares = [float(share) for share in np.arange(0, 100 + steps / 2, steps) if share <= 100]
    counts = {share: round(share * len(heads) / 100) for share in shares}
    return {share: count for share, count in counts.items() if count <= prunable}


@takes_options(PruningCurveOptions)
def pruning_curve(options: PruningCurveOptions) -> xr.Dataset:
    """Score a model with fewer and fewer heads (Michel et al., 2019), as smaller models of `hs.prune` would score.

    `by="importance"` prunes the heads with the least `hs.head_importance` first, divided by its L2 norm in each layer,
    as in the paper; it is computed once, or with `recompute` for the heads that are left before each step, from `data`
    or `importance_data`. `by="random"` is the baseline, with a number of random orders or a list of `seeds`. Where
    every layer keeps `keep` heads, the curve ends before 100 %. `site="all"` prunes all sites together.

    Along `pruned`, in percent, and for random orders along `seed`, are `score`, by the main metric of the task, and
    `change` from the whole model, with 95 % intervals (`_low`, `_high`), those of changes by a paired bootstrap over
    examples; `heads`, the names of the pruned heads, joined by +; and `count`, their number.

    >>> from transformers import BertForSequenceClassification
    >>> untrained = hs.load(BertForSequenceClassification(model.network.config), tokenizer=model.tokenizer)
    >>> data = [{"text": "Good.", "label": 1}, {"text": "Bad.", "label": 0}]
    >>> hs.pruning_curve(untrained, data, by="random", seeds=1, steps=50, progress=False)["count"].values.tolist()
    [0, 36, 72]
    """
    by, steps, keep, other = options.by, options.steps, options.keep, options.importance_data
    _check_order(by, recompute=options.recompute, importance_data=other)
    job = make_scoring_job(options)
    heads = _find_heads(job, options.site)
    counts = plan_steps(heads, steps, keep)
    facts = {"by": by, "steps": steps, "keep": keep, "site": options.site or find_sites(job.model).main}
    orders: dict[int | None, Order]
    if by == "random":
        orders = {seed: _fix(shuffle_heads(heads, seed)) for seed in _read_seeds(options.seeds)}
    else:
        examples = job.examples if other is None else read_examples(other, "importance_data")
        rank = partial(_rank, job, heads, list(examples))
        orders = {None: rank if options.recompute else _fix(rank([]))}
        facts |= {"recompute": options.recompute, "importance_data": fingerprint_examples(examples, labels=True)}
    plans = {seed: _plan(counts, keep, order) for seed, order in orders.items()}
    metrics = _score(job, list(plans.values()), quiet=not options.progress)
    return stamp(
        _make_dataset(job.task.main, counts, plans, metrics),
        kind="pruning",
        **job.describe("hs.pruning_curve"),
        **facts,
    )


def _check_order(by: str, *, recompute: bool, importance_data: Any) -> None:
    if by not in ORDERS:
        raise unknown_name("order of pruning", by, ORDERS)
    if by == "random" and (recompute or importance_data is not None):
        raise InputError("recompute and importance_data are for by='importance'. Leave them out for a random order.")


def _fix(order: list[Head]) -> Order:
    """Return an order that does not depend on what is pruned already."""
    return lambda _: order


def _rank(job: ScoringJob, heads: Sequence[Head], examples: list[Example], pruned: Sequence[Head]) -> list[Head]:
    """Return the heads from the least important on, with some of them pruned already."""
    options: dict[str, Any] = {"normalize": "layer", "task": job.task.name, "edit": [_zero(pruned)] if pruned else None}
    options |= {"batch_size": job.batch_size, "max_length": job.max_length, "progress": False}
    sites = dict.fromkeys(head.site for head in heads)
    tables = {site: head_importance(job.model, examples, site=site, **options) for site in sites}
    return rank_heads(heads, {site: table["head_importance"].to_series().to_dict() for site, table in tables.items()})


def _find_heads(job: ScoringJob, site: str | None) -> list[Head]:
    """Return the heads at a site, or at all of them."""
    counts = count_heads(job.model, lambda: job.answer(rows=slice(1)))
    sites = list(counts) if site == "all" else [find_site(job.model, site)]
    heads = list_heads(counts, sites, pruned_heads(job.model.network.config))
    if not heads:
        raise InputError(f"All heads at '{site or sites[0]}' are pruned already.")
    return heads


def _read_seeds(seeds: Any) -> list[int]:
    seed_list = list(range(seeds)) if isinstance(seeds, int) else list(seeds) if isinstance(seeds, Sequence) else []
    valid = all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in seed_list)
    if not seed_list or not valid or len(set(seed_list)) < len(seed_list):
        raise InputError(f"seeds must be a number of random orders or a list of different seeds, but got {seeds!r}.")
    return seed_list


def _plan(counts: dict[float, int], keep: int, order: Order) -> Plan:
    """Return the heads that are pruned at each step."""
    plan: Plan = [[]]
    for count in list(counts.values())[1:]:
        plan.append(extend_pruned(plan[-1], order(plan[-1]), count, keep))
    return plan


def _score(job: ScoringJob, plans: Sequence[Plan], *, quiet: bool) -> list[list[Metric]]:
    """Return the metric of every step of every plan; the whole model is scored once."""
    with show_progress(1 + sum(len(plan) - 1 for plan in plans), unit="evaluations", quiet=quiet) as advance:

        def score(pruned: Sequence[Head]) -> Metric:
            answers = job.answer([_zero(pruned)] if pruned else [])
            advance(1)
            return job.task.compute_metrics(answers)[job.task.main]

        unpruned = score([])
        return [[score(pruned) if pruned else unpruned for pruned in plan] for plan in plans]


def _zero(heads: Sequence[Head]) -> ZeroHeads:
    return ZeroHeads(heads=[head.name for head in heads])


def _make_dataset(
    name: str, counts: dict[float, int], plans: Mapping[int | None, Plan], metrics: Sequence[list[Metric]]
) -> xr.Dataset:
    """Return scores and changes along `pruned`, and along `seed` for random orders."""
    flat = [metric for row in metrics for metric in row]
    columns = {key: values for key, values in compare_scores(metrics[0][0], flat).items() if key != "change_p"}
    columns |= name_ends("score", np.array([(metric.value, *metric.interval()) for metric in flat]).T)
    names = ["+".join(head.name for head in step) for plan in plans.values() for step in plan]
    shape, dims = (len(plans), len(counts)), ("seed", "pruned")
    tables = {key: xr.DataArray(values.reshape(shape), dims=dims) for key, values in columns.items()}
    tables["score"].attrs |= {"long_name": name, "interval": f"95 %, {flat[0].method}"}
    tables["change"].attrs["long_name"] = f"change of {name}"
    tables["heads"] = xr.DataArray(np.array(names, dtype=object).reshape(shape), dims=dims)
    data = xr.Dataset(tables).assign(count=("pruned", list(counts.values()), {"long_name": "number of pruned heads"}))
    data = data.assign_coords(pruned=("pruned", list(counts), {"long_name": "pruned heads", "units": "%"}))
    return data.isel(seed=0, drop=True) if None in plans else data.assign_coords(seed=list(plans))

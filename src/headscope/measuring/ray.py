"""Many processes, on this machine or on a Ray cluster: each loads the model once and observes batches.

Ray schedules, restarts dead workers and runs their batches again; here is only what a worker does. States come back in
the order of the plan, so that they are added in the same order as in one process.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from headscope.core.errors import HeadscopeError, InputError, require_package
from headscope.core.example import Example
from headscope.engine.model import Model
from headscope.measuring.checkpoint import Checkpoint, packed, unpacked
from headscope.measuring.job import MeasureJob, observed
from headscope.measuring.observe import Observer, States

RETRIES = 3  # times that a dead worker is replaced, and that a batch is given to another
AHEAD = 3  # batches on their way for each worker, so that none waits


def run(job: MeasureJob, workers: int | None) -> Callable[[int], Iterator[States]]:
    """The states of every batch from a given one on, in the order of the plan; one worker a CPU or GPU by default."""
    ray = require_package("ray", "ray", "engine='ray'")
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, but got {workers}.")
    _check_rebuildable(job)

    def states(first: int) -> Iterator[States]:
        if not ray.is_initialized():
            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
        gpu = job.observer.model.device.type == "cuda"
        many = workers or max(1, int(ray.cluster_resources().get("GPU" if gpu else "CPU", 1)))
        kind = ray.remote(_Worker).options(
            num_cpus=1, num_gpus=int(gpu), max_restarts=RETRIES, max_task_retries=RETRIES
        )
        described = _described(job)
        team = [kind.remote(described) for _ in range(many)]
        try:
            yield from _in_order(ray, job, team, first)
        finally:
            for each in team:
                ray.kill(each)

    return states


def _in_order(ray: Any, job: MeasureJob, team: list[Any], first: int) -> Iterator[States]:
    """Keep every worker busy, and give the states in the order of the plan."""
    waiting: dict[int, Any] = {}  # by batch: what will be its states
    following = first
    for place in range(first, len(job.plan.batches)):
        while following < len(job.plan.batches) and len(waiting) < AHEAD * len(team):
            waiting[following] = team[following % len(team)].states.remote(job.plan.batch(following))
            following += 1
        try:
            found: bytes = ray.get(waiting.pop(place))
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, HeadscopeError) else error from None
        except ray.exceptions.RayActorError as error:
            raise HeadscopeError(
                f"A worker died {RETRIES + 1} times over the same batch, of {len(job.plan.batch(place))} examples, the "
                f"first of them '{job.plan.batch(place)[0].id}'. It may not fit in memory: give a smaller batch_size."
            ) from error
        yield unpacked(found).states


class _Worker:
    """One process with the model in it."""

    def __init__(self, described: dict[str, Any]) -> None:
        self.observer = _rebuilt(described)

    def states(self, examples: tuple[Example, ...]) -> bytes:
        """What one batch contributes, as bytes."""
        (states,) = observed(self.observer, [examples])
        return packed(Checkpoint({}, 0, 0, states))


def _described(job: MeasureJob) -> dict[str, Any]:
    """All that a worker needs to build the same observer."""
    observer, facts = job.observer, job.facts
    models = (observer.model, observer.against)
    return {
        "models": [None if each is None else (each.source, each.spec, each.weights_hash) for each in models],
        "device": facts["device"],
        "dtype": facts["dtype"],
        "settings": observer.settings,
        "edits": observer.edits,
    }


def _rebuilt(described: dict[str, Any]) -> Observer:
    from headscope.engine.load import load

    def model(source: str, spec: str, weights: str) -> Model:
        found = load(source or None, device=described["device"], dtype=described["dtype"])
        if found.weights_hash != weights:
            raise InputError(
                f"The workers loaded other weights from '{spec}' than yours: a model that was changed after it was "
                "loaded must be saved to a folder first, and loaded from there."
            )
        return replace(found, spec=spec)

    first, second = described["models"]
    against = None if second is None else model(*second)
    return Observer(model(*first), described["settings"], against, described["edits"])


def _check_rebuildable(job: MeasureJob) -> None:
    """Workers load the model from where it came: a hub, or a folder that they can reach."""
    for model in (job.observer.model, job.observer.against):
        if model is not None and model.source is None:
            raise InputError(
                f"The workers cannot load '{model.spec}': it was handed to hs.load as an object. Save it to a folder "
                "(save_pretrained, with its tokenizer), and load it from there."
            )

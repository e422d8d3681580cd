"""Measure on several processes, of this machine or of a Ray cluster. Each loads the model once.

Ray schedules, restarts dead workers and repeats their batches. States return in the order of the plan, so they are
added in the same order as in one process.
"""

import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import cycle, islice
from typing import Any

from headscope.core.catalog import catalogs
from headscope.core.errors import DataWarning, HeadscopeError, InputError, require_package
from headscope.core.example import Example
from headscope.engine.fingerprint import fingerprint_model
from headscope.engine.model import Model
from headscope.measuring.checkpoint import Checkpoint
from headscope.measuring.job import MeasureJob, observe_batches
from headscope.measuring.observe import Observer, States
from headscope.measuring.plan import PlannedBatch
from headscope.results.resume import find_difference

RETRIES = 3  # restarts of a dead worker, and repetitions of a batch
QUEUED = 3  # batches queued per worker, so that none is idle


def distribute(job: MeasureJob, workers: int | None) -> Callable[[Iterator[PlannedBatch]], Iterator[States]]:
    """Return a function that yields the states of batches, in their order.

    By default there is one worker for each CPU or GPU.
    """
    ray = require_package("ray", "ray", "engine='ray'")
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, but got {workers}.")
    _check_loadable(job)
    _check_importable(job)

    def observe(batches: Iterator[PlannedBatch]) -> Iterator[States]:
        if not ray.is_initialized():
            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
        gpu = job.observer.model.device.type == "cuda"
        count = workers or max(1, int(ray.cluster_resources().get("GPU" if gpu else "CPU", 1)))
        actor_class = ray.remote(_Worker).options(
            num_cpus=1, num_gpus=int(gpu), max_restarts=RETRIES, max_task_retries=RETRIES
        )
        description = _describe_observer(job)
        actors = [actor_class.remote(description) for _ in range(count)]
        try:
            yield from _observe_in_order(ray, actors, batches)
        finally:
            for actor in actors:
                ray.kill(actor)

    return observe


def _observe_in_order(ray: Any, actors: list[Any], batches: Iterator[PlannedBatch]) -> Iterator[States]:
    """Keep every worker busy, and yield the states in the order of the batches."""
    workers, warned = cycle(actors), False
    first = zip(islice(workers, QUEUED * len(actors)), batches, strict=False)
    pending = deque(_submit(worker, batch) for worker, batch in first)
    while pending:
        batch, result = pending.popleft()
        try:
            data: bytes = ray.get(result)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, HeadscopeError) else error from None
        except ray.exceptions.RayActorError as error:
            raise HeadscopeError(
                f"A worker died {RETRIES + 1} times over the same batch, of {len(batch)} examples, the first of them "
                f"'{batch.examples[0].id}'. It may not fit in memory: give a smaller batch_size."
            ) from error
        checkpoint = Checkpoint.from_bytes(data)
        if not warned and (texts := checkpoint.facts["warnings"]):
            warned = True
            warnings.warn(texts[0], DataWarning, stacklevel=2)
        if (following := next(batches, None)) is not None:
            pending.append(_submit(next(workers), following))
        yield checkpoint.states


def _submit(worker: Any, batch: PlannedBatch) -> tuple[PlannedBatch, Any]:
    return batch, worker.observe.remote(batch.examples)


class _Worker:
    """A process with its own copy of the model."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.description = description

    @cached_property
    def observer(self) -> Observer:
        """The observer, built by the first batch: Ray would report an error of the constructor as a dead worker."""
        return _build_observer(self.description)

    def observe(self, examples: tuple[Example, ...]) -> bytes:
        """Return the states of one batch as bytes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            (states,) = observe_batches(self.observer, [examples])
        texts = [str(warning.message) for warning in caught if issubclass(warning.category, DataWarning)]
        return Checkpoint({"warnings": texts}, 0, 0, states).to_bytes()


def _describe_observer(job: MeasureJob) -> dict[str, Any]:
    """Return what a worker needs to build the same observer."""
    observer, facts = job.observer, job.facts
    models = (observer.model, observer.against)
    return {
        "models": [None if model is None else (model.source, model.spec, fingerprint_model(model)) for model in models],
        "device": facts["device"],
        "dtype": facts["dtype"],
        "settings": observer.settings,
        "edits": observer.edits,
        "max_cells": observer.max_cells,
    }


def _build_observer(description: dict[str, Any]) -> Observer:
    from headscope.engine.load import load

    def load_again(source: str, spec: str, facts: dict[str, Any]) -> Model:
        model = load(source or None, device=description["device"], dtype=description["dtype"])
        difference = find_difference(facts, fingerprint_model(model))
        if difference is not None:
            raise InputError(
                f"The workers loaded another model from '{spec}' than yours: {difference.describe()}. A model that was "
                "changed after it was loaded must be saved to a folder first, and loaded from there."
            )
        return replace(model, spec=spec)

    first, second = description["models"]
    against = None if second is None else load_again(*second)
    return Observer(
        load_again(*first), description["settings"], against, description["edits"], description["max_cells"]
    )


def _check_importable(job: MeasureJob) -> None:
    """Workers import the classes of lenses, statistics and edits, so that these must be installed."""
    settings = job.observer.settings
    entries = {"lenses": settings.all_lenses, "statistics": settings.statistics, "edits": job.observer.edits}
    for folder, objects in entries.items():
        for entry in objects:
            if not catalogs[folder].is_installed(entry):
                raise InputError(
                    f"The workers cannot import {type(entry).__name__}, which is defined in "
                    f"{type(entry).__module__}. Put it into an installed package with the entry point "
                    f"'headscope.{folder}', or measure with engine='local'."
                )


def _check_loadable(job: MeasureJob) -> None:
    """Workers load the model from where it came: a hub, or a folder that they can read."""
    for model in (job.observer.model, job.observer.against):
        if model is not None and model.source is None:
            raise InputError(
                f"The workers cannot load '{model.spec}': it was passed to hs.load as an object. Save it to a folder "
                "(save_pretrained, with its tokenizer), and load it from there."
            )

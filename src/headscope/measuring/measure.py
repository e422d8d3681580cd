"""Measure statistics of every head over a dataset."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.errors import HeadscopeError, InputError, OutputError, is_out_of_memory
from headscope.core.options import takes_options
from headscope.core.progress import show_progress
from headscope.measuring.checkpoint import Checkpoint, add_states, open_checkpoint, write_checkpoint
from headscope.measuring.job import MeasureJob, prepare_job
from headscope.measuring.merge import to_dataset
from headscope.measuring.observe import States
from headscope.measuring.options import MeasuredInputs, MeasureOptions
from headscope.measuring.plan import BatchPlan, PlannedBatch
from headscope.measuring.settings import make_measure_settings
from headscope.results.atomic import REPLACE, check_name
from headscope.results.lock import lock_output
from headscope.results.store import refuse_existing, save

ENGINES = ("local", "ray")
ENDINGS = (".nc", ".zarr", ".csv", ".parquet", ".state")
MIN_INTERVAL, WRITE_FACTOR = 5.0, 20
"""Seconds between two checkpoints: the minimum, and in multiples of the time that writing one takes."""

Engine = Callable[[Iterator[PlannedBatch]], Iterator[States]]
"""Yields the states of batches, in their order."""

Reduce = Callable[[PlannedBatch, States], States]
"""Reduces the states of one batch, with the values of every example, to what is kept of it."""


@takes_options(MeasureOptions)
def measure(options: MeasureOptions) -> xr.Dataset:
    """Measure statistics of every head over a dataset, through one lens or several.

    `statistics` and `lens` are names, specs such as "offsets:reach=4", entries, or lists of them; without `lens`, raw
    and effective attention are measured side by side. `against` is a second model with the same tokenizer. With
    `units="words"`, attention to a split word is summed and attention from it averaged; with "words_first" it is that
    from its first token.

    `engine="ray"` distributes the batches over `workers` processes. With `out` a checkpoint is written beside it every
    few seconds, and `resume=True` resumes from it. A file that exists is replaced only with `overwrite=True`, which
    also discards the checkpoint of another run. One run at a time writes `out`; a second one is refused.

    >>> data = hs.measure(model, ["The cat sat down.", "It rained."], statistics=["entropy"], progress=False)
    >>> data["entropy"].dims, data["lens"].values.tolist()
    (('lens', 'site', 'layer', 'head'), ['raw', 'effective'])
    """
    check_engine(options.engine, options.workers)
    mode = {"resume": options.resume, "overwrite": options.overwrite}
    path = check_out(options.out, **mode)
    with nullcontext() if path is None else lock_output(path):
        job = prepare_measurement(options)
        saved = None if path is None else _checkpoint_path(path)
        engine = start_engine(job, options.engine, options.workers)
        checkpoint = run_job(
            job, engine, saved, quiet=not options.progress, resume=options.resume, overwrite=options.overwrite
        )
        result = _make_result(job, checkpoint)
        if path is not None and saved is not None and path != saved:
            save(result, path, overwrite=options.overwrite)
            saved.unlink(missing_ok=True)
    return result


def check_engine(engine: str, workers: int | None) -> None:
    """Raise InputError for an engine that there is not, or for workers of one that has none."""
    if engine not in ENGINES:
        raise InputError(f"No engine is called '{engine}'. Known: {', '.join(ENGINES)}.")
    if workers is not None and engine != "ray":
        raise InputError(f"workers={workers} is for engine='ray'. Leave it out, or add that engine.")


def start_engine(job: MeasureJob, engine: str, workers: int | None) -> Engine:
    """Return what yields the states of a job's batches."""
    if engine == "local":
        return job.observe
    from headscope.measuring.ray import distribute

    return distribute(job, workers)


def prepare_measurement(options: MeasureOptions) -> MeasureJob:
    """Return the job of a measurement, ready to run."""
    inputs = {item.name: getattr(options, item.name) for item in fields(MeasuredInputs)}
    settings = make_measure_settings(options.lens, options.statistics, **inputs)
    model, data, quiet = options.model, options.data, not options.progress
    return prepare_job(model, data, settings, against=options.against, edit=options.edit, quiet=quiet)


def _make_result(job: MeasureJob, checkpoint: Checkpoint) -> xr.Dataset:
    facts, entries = {"command": "hs.measure", **job.facts}, job.observer.settings.statistics
    return to_dataset(checkpoint.states, facts, entries, examples=checkpoint.examples)


def run_job(
    job: MeasureJob,
    engine: Engine,
    path: Path | None,
    *,
    quiet: bool,
    resume: bool = False,
    overwrite: bool = False,
    reduce: Reduce | None = None,
) -> Checkpoint:
    """Add the states of all batches in the order of the plan, and write checkpoints.

    With `reduce`, what is left of each batch is added, and no table of the examples is kept.
    """
    statistics = job.observer.settings.statistics
    now = run_batches(
        job.plan,
        job.facts,
        engine,
        path,
        quiet=quiet,
        resume=resume,
        overwrite=overwrite,
        reduce=reduce or (lambda _, states: states),
        check=lambda states: to_dataset(states, job.facts, statistics),  # raises what the end would raise
    )
    now = now if reduce else replace(now, examples=job.tabulate())
    if path is not None:
        write_checkpoint(now, path)
    return now


def run_batches(
    plan: BatchPlan,
    facts: Mapping[str, Any],
    engine: Engine,
    path: Path | None,
    *,
    quiet: bool,
    resume: bool = False,
    overwrite: bool = False,
    reduce: Reduce = lambda _, states: states,
    check: Callable[[States], object] = lambda _: None,
) -> Checkpoint:
    """Add the states of all batches in the order of the plan, and write checkpoints, but not the complete one.

    `check` is called with the states of the first batch.
    """
    total = len(plan.examples)
    mode = {"resume": resume, "overwrite": overwrite}
    now = Checkpoint(facts, 0, total) if path is None else open_checkpoint(path, facts, total, **mode)
    written, interval = time.monotonic(), MIN_INTERVAL
    launched: deque[PlannedBatch] = deque()  # an engine may work on several at a time
    try:
        with show_progress(total, done=now.done, quiet=quiet) as advance:
            for states in engine(_note(plan.batches(now.done), launched)):
                batch = launched[0]
                kept = reduce(batch, states)
                if not now.done:
                    check(kept)
                now = Checkpoint(now.facts, now.done + len(batch), total, add_states(now.states, kept))
                launched.popleft()
                advance(len(batch), batch.work)
                if path is not None and not now.complete and time.monotonic() - written >= interval:
                    start = time.monotonic()
                    write_checkpoint(now, path)
                    written = time.monotonic()
                    interval = max(MIN_INTERVAL, WRITE_FACTOR * (written - start))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error) or not launched:
            raise
        raise HeadscopeError(
            f"There is not enough memory for a batch of {len(launched[0])} examples of up to {launched[0].length} "
            "tokens. Give a smaller batch_size, or truncate texts with max_length."
        ) from error
    except KeyboardInterrupt:
        if path is None:
            raise
        write_checkpoint(now, path)
        raise KeyboardInterrupt(
            f"Stopped after {now.done:,} of {total:,} examples. They are saved in {path}: resume with resume=True, in "
            "the shell --resume."
        ) from None
    return now


def _note(batches: Iterable[PlannedBatch], launched: deque[PlannedBatch]) -> Iterator[PlannedBatch]:
    """Yield batches, and note each as launched."""
    for batch in batches:
        launched.append(batch)
        yield batch


def check_out(out: str | Path | None, *, resume: bool, overwrite: bool) -> Path | None:
    """Refuse a file ending that cannot be written, and a result that exists, before any work is done."""
    if out is None:
        return None
    path = Path(out)
    if path.suffix.lower() not in ENDINGS:
        ending = f"ends in '{path.suffix}'" if path.suffix else "has no ending"
        raise OutputError(f"A measurement is saved as {' '.join(ENDINGS)}, but '{path.name}' {ending}.")
    check_name(path)
    if path != (saved := _checkpoint_path(path)):
        if resume and not overwrite and path.exists() and not saved.exists():
            raise InputError(f"There is nothing to resume: {path} is finished. {REPLACE.format('path')}")
        refuse_existing(path, overwrite=overwrite)
    return path


def _checkpoint_path(path: Path) -> Path:
    """Return the path of the checkpoint: beside the result, or the shard itself."""
    return path if path.suffix == ".state" else path.with_name(f"{path.name}.state")

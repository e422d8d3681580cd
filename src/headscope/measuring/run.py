"""Numbers over a dataset."""

import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

import xarray as xr

from headscope.core.errors import HeadscopeError, InputError, OutputError
from headscope.engine.model import Model
from headscope.engine.progress import show_progress
from headscope.measuring.checkpoint import Checkpoint, added, begun, write
from headscope.measuring.finish import finished
from headscope.measuring.job import MeasureJob
from headscope.measuring.observe import States
from headscope.measuring.options import MeasureOptions
from headscope.measuring.prepare import prepare_job
from headscope.results.store import save

ENGINES = ("local", "ray")
ENDINGS = (".nc", ".zarr", ".csv", ".parquet", ".state")
LACKING = "out of memory|not enough memory|can't allocate memory"  # how torch says that memory is short
PAUSE, TIMES = 5.0, 20
"""Seconds between two checkpoints, at least; where writing one takes long, so many times that."""


def measure(
    model: Model,
    data: Any,
    *,
    statistics: Any,
    lens: Any = "raw",
    against: Model | None = None,
    edit: Any = None,
    engine: str = "local",
    workers: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
    **options: Unpack[MeasureOptions],
) -> xr.Dataset:
    """Measure statistics of every head over a dataset, through one lens or several.

    `data` is whatever `hs.read` reads: a path, "glue:rte:dev@DIR", examples, texts or pairs. `statistics` and `lens`
    are names, specs such as "offsets:reach=4", entries, or lists of them. `against` is a second model that reads the
    same tokens, for statistics that compare both; `edit` changes the first while it runs. `engine="ray"` shares the
    work among `workers` processes. With `out` (.nc .zarr .csv .parquet, or .state to merge with other shards) what is
    done is saved beside it every few seconds, and `resume=True` goes on from there.

    Options: `shard` "3/16", `limit` and `seed`, `rows` (keep the value of every example), `units` ("tokens", "words",
    "words_first"), `site`, `layers`, `heads`, `max_length`, `pad_to`, `batch_size`, `tagger`.
    """
    if engine not in ENGINES:
        raise InputError(f"No engine is called '{engine}'. Known: {', '.join(ENGINES)}.")
    path = _checked(out)
    job = prepare_job(model, data, statistics=statistics, lens=lens, against=against, edit=edit, **options)
    states = import_module(f"headscope.measuring.{engine}").run(job, workers)
    kept = None if path is None else path if path.suffix == ".state" else path.with_name(f"{path.name}.state")
    checkpoint = _folded(job, states, kept, resume=resume, quiet=not progress)
    result = finished(checkpoint.states, {"command": "hs.measure", **job.facts})
    if path is not None and kept is not None and path != kept:
        save(result, path)
        kept.unlink(missing_ok=True)
    return result


Engine = Callable[[int], Iterator[States]]
"""Gives the states of every batch from the given one on, in the order of the plan."""


def _folded(job: MeasureJob, engine: Engine, path: Path | None, *, resume: bool, quiet: bool) -> Checkpoint:
    """Add up what every batch contributes, in the order of the plan, and save it now and then."""
    total = len(job.plan.batches)
    now = Checkpoint(job.facts, 0, total) if path is None else begun(path, job.facts, total, resume=resume)
    sizes = [len(batch) for batch in job.plan.batches]
    saved, pause = time.monotonic(), PAUSE
    try:
        with show_progress(sum(sizes), done=sum(sizes[: now.done]), quiet=quiet) as advance:
            for states in engine(now.done):
                now = Checkpoint(now.facts, now.done + 1, total, added(now.states, states))
                advance(sizes[now.done - 1])
                if path is not None and not now.complete and time.monotonic() - saved >= pause:
                    start = time.monotonic()
                    write(now, path)
                    saved, pause = time.monotonic(), max(PAUSE, TIMES * (time.monotonic() - start))
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or re.search(LACKING, str(error)):
            raise _without_memory(job, now.done) from error
        raise
    except KeyboardInterrupt:
        if path is None:
            raise
        write(now, path)
        raise KeyboardInterrupt(
            f"Stopped after {sum(sizes[: now.done]):,} of {sum(sizes):,} examples. They are saved in {path}: go on "
            "with resume=True, in the shell --resume."
        ) from None
    if path is not None:
        write(now, path)
    return now


def _without_memory(job: MeasureJob, place: int) -> HeadscopeError:
    batch = job.plan.batches[place]
    return HeadscopeError(
        f"There is not enough memory for a batch of {len(batch)} examples of up to {job.plan.lengths[batch[0]]} "
        "tokens. Give a smaller batch_size, or cut texts with max_length."
    )


def _checked(out: str | Path | None) -> Path | None:
    """Where the result goes, refused before any work is done if it cannot be written so."""
    if out is None:
        return None
    path = Path(out)
    if path.suffix.lower() not in ENDINGS:
        found = f"ends in '{path.suffix}'" if path.suffix else "has no ending"
        raise OutputError(f"A measurement is saved as {' '.join(ENDINGS)}, but '{path.name}' {found}.")
    return path

"""Every head of a model over a corpus: statistics with intervals, and examples with their maps, as a folder."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.catalog import statistics as statistic_catalog
from headscope.core.errors import InputError
from headscope.core.options import takes_options
from headscope.core.spec import to_spec
from headscope.core.statistic import Statistic
from headscope.head_atlas.drawing import Archive, Kept, draw_examples
from headscope.head_atlas.folder import AtlasContent, check_folder, describe_atlas, write_atlas
from headscope.head_atlas.headvis import check_headvis, write_headvis
from headscope.head_atlas.options import AtlasOptions
from headscope.head_atlas.selection import Selector, pick_examples
from headscope.measuring.checkpoint import ENVIRONMENT, Checkpoint, read_checkpoint
from headscope.measuring.job import MeasureJob, prepare_job
from headscope.measuring.measure import check_engine, run_job, start_engine
from headscope.measuring.merge import to_dataset
from headscope.measuring.options import MeasuredInputs
from headscope.measuring.settings import make_measure_settings
from headscope.results.atomic import atomic_path, check_name, make_folders
from headscope.results.lock import lock_output
from headscope.results.resume import find_difference, to_plain

MARKER, HEADVIS_MARKER = "atlas.json", "scatter_data.json"
"""Files by which a folder is known as an atlas, or as one in the layout of HeadVis."""

STATE, MAPS = "measure.state", "maps"
"""What the folder of an unfinished run holds: the checkpoint of the measurement, and the maps that are stored."""


@takes_options(AtlasOptions)
def atlas(options: AtlasOptions) -> xr.Dataset:
    """Measure every head over a corpus, and write a folder in which heads and their examples can be looked at.

    `index.html` of the folder opens from a disk or any web server and connects to nothing: every head by any two
    statistics with intervals, and for each head its strongest, median and weakest examples by `activity`, with their
    maps through each lens. A head's examples are in a file of their own, loaded when it is chosen.

    The corpus is measured once, with memory for texts, maps and values that does not grow with it; then the chosen
    examples are captured again. A run that was interrupted continues when it is started again: what is done so far is
    in a folder beside `out`. The result is what `hs.measure` returns, and is saved as `atlas.nc`.

    >>> data = hs.atlas(model, ["The cat sat down.", "It rained."], statistics="entropy", out="atlas", progress=False)
    >>> data["entropy"].sel(layer=3, head=7).dims  # look at it: open atlas/index.html
    ('lens', 'site')
    """
    _check_options(options)
    out = Path(options.out).resolve()
    work = out.with_name(f"{out.name}.unfinished")
    _check_folders(options, work)
    with lock_output(out):
        activity = statistic_catalog.make(options.activity)
        job = _prepare(options, activity)
        if options.headvis is not None:
            check_headvis(job)
        with _explain_stop(work):
            content = _build(job, activity, options, work)
        header = describe_atlas(content)
        with atomic_path(out) as temporary:
            write_atlas(content, header, temporary)
        if options.headvis is not None:
            with atomic_path(Path(options.headvis)) as temporary:
                write_headvis(header, content.readers(), temporary)
        shutil.rmtree(work)
    return content.result


def _build(job: MeasureJob, activity: Statistic, options: AtlasOptions, work: Path) -> AtlasContent:
    """Measure the corpus, choose examples, and capture them again; what is done is kept in a folder."""
    lenses, quiet = job.observer.settings.lenses, not options.progress
    key = (to_spec(lenses[0]), to_spec(activity))
    selector = Selector.make(key[0], activity, len(job.plan.examples), options.examples, options.seed)
    state = _open_work(work, job, overwrite=options.overwrite)
    engine = start_engine(job, options.engine, options.workers)
    checkpoint = run_job(job, engine, state, quiet=quiet, resume=True, reduce=selector)
    picks = pick_examples(checkpoint.states[key], options.examples, selector.sample)
    kept = Kept(options.keys, options.threshold)
    archive = Archive(draw_examples(job, picks, kept, work / MAPS, quiet=quiet))
    return AtlasContent(_make_result(job, checkpoint), picks, archive, key, lenses, kept, len(selector.sample))


@contextmanager
def _explain_stop(work: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Stopped. What is done so far is in {work}: start it again to continue.") from None


def _prepare(options: AtlasOptions, activity: Statistic) -> MeasureJob:
    """Return the job of the measurement, which also keeps the activity of some examples."""
    statistics = list(map(statistic_catalog.make, _as_list(options.statistics)))
    statistics += [] if activity in statistics else [activity]
    _check_statistics(statistics)
    names = {item.name for item in fields(AtlasOptions)} & {item.name for item in fields(MeasuredInputs)}
    inputs = {name: getattr(options, name) for name in names}
    settings = make_measure_settings(options.lens, statistics, **inputs, rows=True)
    job = prepare_job(options.model, options.data, settings, edit=options.edit, quiet=not options.progress)
    own = {
        "activity": to_spec(activity),
        **{name: getattr(options, name) for name in ("examples", "keys", "threshold")},
    }
    return replace(job, facts={**job.facts, **own})


def _open_work(work: Path, job: MeasureJob, *, overwrite: bool) -> Path:
    """Return the path of the checkpoint; what another run left there is discarded with `overwrite`, or if it is empty.

    A run that failed at its first batch leaves an empty one, and is started again with other options.
    """
    path = work / STATE
    if work.exists() and _is_worthless(path, job, overwrite=overwrite):
        shutil.rmtree(work)
    make_folders(work)
    return path


def _is_worthless(path: Path, job: MeasureJob, *, overwrite: bool) -> bool:
    try:
        checkpoint = read_checkpoint(path)
    except InputError:  # there is none, or it is damaged
        return overwrite or not path.exists()
    resumable = find_difference(checkpoint.facts, to_plain(job.facts), ENVIRONMENT) is None
    return not resumable and (overwrite or not checkpoint.done)


def _make_result(job: MeasureJob, checkpoint: Checkpoint) -> xr.Dataset:
    facts = {"command": "hs.atlas", **job.facts, "rows": False}
    return to_dataset(checkpoint.states, facts, job.observer.settings.statistics)


def _check_options(options: AtlasOptions) -> None:
    check_engine(options.engine, options.workers)
    for name in ("examples", "keys"):
        if getattr(options, name) < 1:
            raise InputError(f"{name}={getattr(options, name)} leaves nothing to show. Give at least 1.")
    if not 0 <= options.threshold < 1:
        raise InputError(f"threshold={options.threshold} is no weight. Give at least 0 and less than 1.")


def _check_statistics(statistics: Sequence[Statistic]) -> None:
    for statistic in statistics:
        if "against" in statistic.needs:
            raise InputError(
                f"The statistic '{to_spec(statistic)}' compares two models, but an atlas is of one. Leave it out, or "
                "measure it with hs.measure."
            )


def _check_folders(options: AtlasOptions, work: Path) -> None:
    """Raise InputError, before anything is computed, where a folder of something else would be replaced."""
    folders = {Path(options.out): (MARKER, "an atlas")}
    if options.headvis is not None:
        _check_apart(Path(options.out), Path(options.headvis))
        folders[Path(options.headvis)] = (HEADVIS_MARKER, "an atlas in the layout of HeadVis")
    for path, (marker, what) in folders.items():
        check_name(path)
        check_folder(path, marker, what, overwrite=options.overwrite)
    foreign = [item.name for item in work.iterdir() if not _is_own(item.name)] if work.is_dir() else []
    if foreign or work.is_file():
        what = f"holds '{min(foreign)}'" if foreign else "is a file"
        raise InputError(
            f"What is done so far is kept in {work}, but that {what}, which no atlas wrote. Move it, or give another "
            "out."
        )


def _check_apart(out: Path, headvis: Path) -> None:
    first, second = out.resolve(), headvis.resolve()
    if first.is_relative_to(second) or second.is_relative_to(first):
        raise InputError(
            f"headvis='{headvis}' and out='{out}' are one folder, or one is in the other, and each is replaced as a "
            "whole. Give two folders side by side."
        )


def _is_own(name: str) -> bool:
    return name in (STATE, MAPS) or name.startswith(".headscope-")


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]

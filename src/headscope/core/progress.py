"""Progress, rate and remaining time of a long run."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Advance = Callable[..., None]
"""Takes the number of items that are done, and how much work they were where items differ: 2 is that of two of them."""

INTERVAL = 10.0
"""Seconds between two lines if stderr is no terminal."""
NOTEBOOK_INTERVAL = 0.2
"""Seconds between two updates of a bar in a notebook."""
VARIABLE = "HEADSCOPE_PROGRESS"
"""The environment variable that asks for lines of JSON on stderr, for a program that watches: `json`."""
JSON_INTERVAL = 0.25
"""Seconds between two of these lines."""

_running: list[str] = []
"""The units of the runs that are going on, in any thread."""


@contextmanager
def show_progress(
    total: int | None, *, done: int = 0, unit: str = "examples", quiet: bool = False
) -> Iterator[Advance]:
    """Show a bar in a terminal or notebook, lines on stderr elsewhere; yield a function that advances it.

    Without a `total`, what is done is counted. The remaining time is that of the remaining work at the mean speed so
    far.
    """
    pace = _Pace(total, done, unit)
    _running.append(unit)
    try:
        with _show(pace, quiet=quiet) as advance:
            yield advance
    finally:
        _running.remove(unit)


def is_part_of_run() -> bool:
    """Return whether a run is going on that shows progress, or was told not to: its parts show none of their own."""
    return bool(_running)


@contextmanager
def _show(pace: "_Pace", *, quiet: bool) -> Iterator[Advance]:
    if quiet:
        yield lambda *_: None
    elif os.environ.get(VARIABLE) == "json":
        with _write_json(pace) as advance:
            yield advance
    elif in_notebook():
        with _notebook_bar(pace) as advance:
            yield advance
    elif sys.stderr.isatty():
        with _terminal_bar(pace) as advance:
            yield advance
    else:
        yield _print_lines(pace)


@dataclass
class _Pace:
    """How far a run has come, and how quickly."""

    total: int | None
    done: int  # when it was started
    unit: str
    start: float = field(default_factory=lambda: time.monotonic())
    finished: int = field(init=False)
    work: float = 0.0

    def __post_init__(self) -> None:
        self.finished = self.done

    def advance(self, count: int, work: float | None = None) -> None:
        self.finished += count
        self.work += count if work is None else work

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self.start, 1e-9)

    @property
    def rate(self) -> float:
        return (self.finished - self.done) / self.seconds

    @property
    def left(self) -> float | None:
        """Seconds that remain, or None if that is not known yet."""
        if self.total is None or not self.work:
            return None
        return self.seconds / self.work * max(0.0, self.total - self.done - self.work)

    @property
    def count(self) -> str:
        of = "" if self.total is None else f" of {self.total:,}"
        return f"{self.finished:,}{of} {self.unit}"

    def describe(self) -> str:
        known = "number of all not known yet" if self.total is None else None
        left = known or (f"{format_duration(self.left)} left" if self.left is not None else None)
        return ", ".join(filter(None, (self.count, f"{self.rate:.3g}/s", left)))


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> format_duration(3.2), format_duration(190.0), format_duration(7300.0)
    ('3 s', '3 min 10 s', '2 h 1 min')
    """
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"


def print_status(text: object) -> None:
    """Print a line to stderr; in a notebook to stdout, since notebooks show stderr as an error."""
    print(text, file=sys.stdout if in_notebook() else sys.stderr, flush=True)


def in_notebook() -> bool:
    """Return True in a Jupyter notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def _notebook_bar(pace: _Pace) -> Iterator[Advance]:
    """Show an HTML progress element, which needs no widgets and stays readable in a saved notebook."""
    from IPython.display import display

    last = pace.start

    def render() -> dict[str, str]:
        left = f", {format_duration(pace.left)} left" if pace.left and pace.finished != pace.total else ""
        speed = f", {pace.rate:.3g}/s" if pace.rate else ""
        text = f"{pace.count} in {format_duration(pace.seconds)}{speed}{left}"
        value = "" if pace.total is None else f' value="{pace.finished}" max="{pace.total}"'
        return {"text/html": f"<progress{value}></progress> {text}", "text/plain": text}

    handle = display(render(), raw=True, display_id=True)

    def advance(count: int, work: float | None = None) -> None:
        nonlocal last
        pace.advance(count, work)
        if (now := time.monotonic()) - last >= NOTEBOOK_INTERVAL:
            last = now
            handle.update(render(), raw=True)

    try:
        yield advance
    finally:
        handle.update(render(), raw=True)


@contextmanager
def _terminal_bar(pace: _Pace) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{pace.count}, starting", total=pace.total, completed=pace.done)

        def advance(count: int, work: float | None = None) -> None:
            pace.advance(count, work)
            bar.update(task, advance=count, description=pace.describe())

        yield advance


def _print_lines(pace: _Pace) -> Advance:
    last = pace.start

    def advance(count: int, work: float | None = None) -> None:
        nonlocal last
        pace.advance(count, work)
        if (now := time.monotonic()) - last >= INTERVAL:
            last = now
            print_status(pace.describe())

    return advance


@contextmanager
def _write_json(pace: _Pace) -> Iterator[Advance]:
    """Print {"progress": [finished, total], "unit": …, "rate": …} at the start, every moment and at the end.

    Without a total nothing is printed: whoever watches sees a run that is starting.
    """
    last = pace.start

    def write() -> None:
        if pace.total is None:
            return
        facts = {"progress": [pace.finished, pace.total], "unit": pace.unit, "rate": round(pace.rate, 3)}
        print_status(json.dumps(facts))

    def advance(count: int, work: float | None = None) -> None:
        nonlocal last
        pace.advance(count, work)
        if (now := time.monotonic()) - last >= JSON_INTERVAL:
            last = now
            write()

    write()
    try:
        yield advance
    finally:
        write()

"""How far a long run is, how fast it goes and how long it will take."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]
PAUSE = 10.0
"""Seconds between two lines where there is no terminal to draw on."""


@contextmanager
def show_progress(total: int, *, done: int = 0, unit: str = "examples", quiet: bool = False) -> Iterator[Advance]:
    """A bar in a terminal or a notebook, lines elsewhere; always on stderr. Call what it gives with what was done."""
    if quiet:
        yield lambda _: None
    elif _in_notebook():
        with _notebook(total, done, unit) as advance:
            yield advance
    elif sys.stderr.isatty():
        with _terminal(total, done, unit) as advance:
            yield advance
    else:
        yield _lines(total, done, unit)


def format_duration(seconds: float) -> str:
    """A time as a person says it.

    >>> format_duration(3.2), format_duration(190.0), format_duration(7300.0)
    ('3 s', '3 min 10 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def _notebook(total: int, done: int, unit: str) -> Iterator[Advance]:
    from tqdm.notebook import tqdm

    with tqdm(total=total, initial=done, unit=f" {unit}") as bar:
        yield bar.update


@contextmanager
def _terminal(total: int, done: int, unit: str) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit}, {{task.fields[rate]}}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, start, new = bar.add_task("", total=total, completed=done, rate="starting"), time.monotonic(), 0

        def advance(many: int) -> None:
            nonlocal new
            new += many
            rate = new / max(time.monotonic() - start, 1e-9)
            bar.update(task, advance=many, rate=f"{rate:.3g}/s")

        yield advance


def _lines(total: int, done: int, unit: str) -> Advance:
    start, said, now = time.monotonic(), time.monotonic(), done

    def advance(many: int) -> None:
        nonlocal said, now
        now += many
        moment = time.monotonic()
        if moment - said >= PAUSE:
            said, rate = moment, (now - done) / (moment - start)
            left = format_duration((total - now) / rate)
            print(f"{now:,} of {total:,} {unit}, {rate:.3g}/s, {left} left", file=sys.stderr, flush=True)  # noqa: T201

    return advance

"""Progress, rate and remaining time of a long run."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]
INTERVAL = 10.0
"""Seconds between two lines if stderr is no terminal."""
NOTEBOOK_INTERVAL = 0.2
"""Seconds between two updates of a bar in a notebook."""
VARIABLE = "HEADSCOPE_PROGRESS"
"""The environment variable that asks for lines of JSON on stderr, for a program that watches: `json`."""
JSON_INTERVAL = 0.25
"""Seconds between two of these lines."""


@contextmanager
def show_progress(total: int, *, done: int = 0, unit: str = "examples", quiet: bool = False) -> Iterator[Advance]:
    """Show a bar in a terminal or notebook, lines on stderr elsewhere; yield a function that advances it."""
    if quiet:
        yield lambda _: None
    elif os.environ.get(VARIABLE) == "json":
        with _write_json(total, done, unit) as advance:
            yield advance
    elif in_notebook():
        with _notebook_bar(total, done, unit) as advance:
            yield advance
    elif sys.stderr.isatty():
        with _terminal_bar(total, done, unit) as advance:
            yield advance
    else:
        yield _print_lines(total, done, unit)


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
def _notebook_bar(total: int, done: int, unit: str) -> Iterator[Advance]:
    """Show an HTML progress element, which needs no widgets and stays readable in a saved notebook."""
    from IPython.display import display

    start = last = time.monotonic()
    finished = done

    def render() -> dict[str, str]:
        seconds = max(time.monotonic() - start, 1e-9)
        rate = (finished - done) / seconds
        left = f", {format_duration((total - finished) / rate)} left" if rate > 0 and finished < total else ""
        speed = f", {rate:.3g}/s" if rate else ""
        text = f"{finished:,} of {total:,} {unit} in {format_duration(seconds)}{speed}{left}"
        return {"text/html": f'<progress value="{finished}" max="{total}"></progress> {text}', "text/plain": text}

    handle = display(render(), raw=True, display_id=True)

    def advance(count: int) -> None:
        nonlocal last, finished
        finished += count
        if (now := time.monotonic()) - last >= NOTEBOOK_INTERVAL:
            last = now
            handle.update(render(), raw=True)

    try:
        yield advance
    finally:
        handle.update(render(), raw=True)


@contextmanager
def _terminal_bar(total: int, done: int, unit: str) -> Iterator[Advance]:
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
        task, start, finished = bar.add_task("", total=total, completed=done, rate="starting"), time.monotonic(), 0

        def advance(count: int) -> None:
            nonlocal finished
            finished += count
            rate = finished / max(time.monotonic() - start, 1e-9)
            bar.update(task, advance=count, rate=f"{rate:.3g}/s")

        yield advance


def _print_lines(total: int, done: int, unit: str) -> Advance:
    start = last = time.monotonic()
    finished = done

    def advance(count: int) -> None:
        nonlocal last, finished
        finished += count
        now = time.monotonic()
        if now - last >= INTERVAL:
            last, rate = now, (finished - done) / (now - start)
            left = format_duration((total - finished) / rate)
            print_status(f"{finished:,} of {total:,} {unit}, {rate:.3g}/s, {left} left")

    return advance


@contextmanager
def _write_json(total: int, done: int, unit: str) -> Iterator[Advance]:
    """Print {"progress": [finished, total], "unit": …, "rate": …} at the start, every moment and at the end."""
    start = last = time.monotonic()
    finished = done

    def write() -> None:
        rate = (finished - done) / max(time.monotonic() - start, 1e-9)
        print_status(json.dumps({"progress": [finished, total], "unit": unit, "rate": round(rate, 3)}))

    def advance(count: int) -> None:
        nonlocal last, finished
        finished += count
        if (now := time.monotonic()) - last >= JSON_INTERVAL:
            last = now
            write()

    write()
    try:
        yield advance
    finally:
        write()

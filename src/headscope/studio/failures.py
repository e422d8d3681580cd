"""Errors that are not for the page: the terminal shows the trace, the page an id to find it by."""

import re
import secrets
import sys
import traceback
from collections.abc import Iterable

from headscope.core.errors import is_out_of_memory

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Letters by which a text would command the terminal."""


def explain_failure(error: BaseException) -> str:
    """Return a sentence for the page about an error that nobody expected."""
    if is_out_of_memory(error):
        return "There is not enough memory for this. Choose fewer lenses, a smaller model or a shorter text."
    return f"Something went wrong in the studio. {report(''.join(traceback.format_exception(error)).splitlines())}"


def report(trace: Iterable[str]) -> str:
    """Print a trace with an id, and return where it is to be found."""
    identity = secrets.token_hex(4)
    shown = [CONTROLS.sub("?", line) for line in trace]
    print(f"Error {identity} in headscope studio:", *shown, sep="\n", file=sys.stderr, flush=True)  # noqa: T201
    return f"The terminal shows what, as error {identity}."

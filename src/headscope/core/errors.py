"""All exceptions and warnings of headscope.

    HeadscopeError
    ├── InputError        an argument or its data cannot be used
    │   ├── UnknownName   no catalog entry of that name
    │   ├── LoadError     a model cannot be loaded
    │   ├── NotCaptured   a trace lacks what a lens needs
    │   └── MissingExtra  an optional package is not installed
    ├── CaptureError      the attention of a model cannot be captured
    └── OutputError       a file cannot be written

Every message says what was requested, what the problem is, and what to do. A note below it names the page of the docs
that explains what was being done.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar

from headscope.core.explained import find_page, find_page_of_caller


class HeadscopeError(Exception):
    """Base class of all errors of headscope.

    >>> try:
    ...     hs.view(trace, "efective")
    ... except hs.HeadscopeError as error:
    ...     print(error)
    No lens is called 'efective'. Did you mean 'effective'? Known: ...

    Parameters
    ----------
    arguments
        The message.
    topic
        A folder of the package, such as "lenses", whose page is named. Default: that of the code that is being run.
    """

    default_topic: ClassVar[str] = ""

    def __init__(self, *arguments: object, topic: str = "") -> None:
        super().__init__(*arguments)
        if page := find_page(topic or self.default_topic) or find_page_of_caller():
            self.add_note(f"More: {page}")


class InputError(HeadscopeError, ValueError):
    """An argument or its data cannot be used.

    >>> hs.capture(model, "A text.", layers=[99])
    Traceback (most recent call last):
    headscope.core.errors.InputError: There is no layer 99 here, only layers 0 to 5.
    More: docs/capture.md
    """


class UnknownName(InputError):  # noqa: N818  (the name says what is wrong)
    """There is no entry of that name.

    >>> hs.draw(hs.view(trace), "matricks")
    Traceback (most recent call last):
    headscope.core.errors.UnknownName: No figure is called 'matricks'. Did you mean 'matrix'? Known: ...
    More: docs/gallery.md
    """


class LoadError(InputError):
    """A model cannot be loaded.

    >>> hs.load("no-such-folder/no-such-model")
    Traceback (most recent call last):
    headscope.core.errors.LoadError: ...
    More: docs/capture.md
    """


class NotCaptured(InputError):  # noqa: N818  (the name says what is wrong)
    """A trace lacks what a lens needs.

    >>> hs.view(hs.Trace.of(trace.attention, trace.keys.text), "norm")
    Traceback (most recent call last):
    headscope.core.errors.NotCaptured: The lens 'norm' needs 'output' and 'values', but this trace holds ...
    More: docs/lenses.md#which-lens-when
    """


class MissingExtra(InputError):  # noqa: N818  (the name says what is wrong)
    """An optional package is not installed.

    >>> issubclass(hs.MissingExtra, hs.InputError)
    True
    """

    default_topic = "extras"


class CaptureError(HeadscopeError):
    """The attention of a model cannot be captured.

    >>> issubclass(hs.CaptureError, hs.HeadscopeError)
    True
    """


class OutputError(HeadscopeError):
    """A file cannot be written.

    >>> hs.save(hs.view(trace).dataset(), "maps.docx")
    Traceback (most recent call last):
    headscope.core.errors.OutputError: A Dataset is saved as .nc .zarr .csv .parquet .html, but 'maps.docx' ...
    More: docs/measuring.md#files-that-exist
    """


class DataWarning(UserWarning):
    """A property of the user's data or model that affects the results.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as notes:
    ...     warnings.simplefilter("always")
    ...     data = hs.measure(model, ["a very long text " * 200], statistics=["peak"], max_length=16, progress=False)
    >>> [note.category.__name__ for note in notes]
    ['DataWarning']
    """


def unknown_name(what: str, name: str, known: Iterable[str], topic: str = "") -> UnknownName:
    """Return an error that `name` is not one of `known`, with the closest name and the page on a topic.

    >>> str(unknown_name("lens", "rolout", ["raw", "rollout"]))
    "No lens is called 'rolout'. Did you mean 'rollout'? Known: raw, rollout."
    """
    names = sorted(known)
    message = f"No {what} is called '{name}'. {suggest_name(name, names)}Known: {', '.join(names) or 'none'}."
    return UnknownName(message, topic=topic)


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return "Did you mean …? " with the closest known name, or an empty text if no name is close."""
    near = get_close_matches(name, list(names), n=1)
    return f"Did you mean '{near[0]}'? " if near else ""


def first_line(error: Exception) -> str:
    """Return the first line of an error's message without its full stop, or the type of an error without a message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def require_package(package: str, extra: str, purpose: str, hint: str = "") -> Any:
    """Import a package of an extra, or raise MissingExtra with the command that installs it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtra(
            f"{purpose} needs the package {package.partition('.')[0]}, which is not installed. "
            f"Install it with: pip install 'headscope[{extra}]'{hint}"
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python or torch raised this error for lack of memory."""
    texts = ("out of memory", "not enough memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(text in str(error) for text in texts)

"""A report before it is written: sections of paragraphs, tables and pictures, with provenance and references."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from headscope.core.errors import InputError


@dataclass(frozen=True)
class Paragraph:
    """Text, with `code` and **bold**; empty lines separate paragraphs."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table with a caption, over `n` examples; `n` may be a text.

    The columns x, x_low and x_high are printed as one, such as 0.42 [0.39, 0.45]. Rows are named by the frame's index
    if it has a name, else by the first column. `theirs` are a paper's own numbers: printed beside ours where their
    columns and rows are among ours, else below. `reduced` says why n is smaller than the paper's. `number` is that
    of the paper's own table; tables without one are then numbered A1, A2 and so on.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    n: int | str
    theirs: pd.DataFrame | None = None
    reduced: str | None = None
    number: int | None = None

    def __post_init__(self) -> None:
        _check_name("table", self.name)
        for part, frame in (("", self.frame), ("theirs of ", self.theirs)):
            if frame is not None and frame.empty:
                raise InputError(
                    f"The table {part}'{self.name}' has {len(frame)} rows and {len(frame.columns)} columns: there is "
                    "nothing to print. Leave it out, and say in a Paragraph what is missing."
                )
            if frame is not None and not frame.columns.is_unique:
                name = frame.columns[frame.columns.duplicated()][0]
                raise InputError(f"The table {part}'{self.name}' has two columns '{name}'. Rename one of them.")


@dataclass(frozen=True)
class Picture:
    """A figure with a caption, over `n` examples; `n`, `reduced` and `number` as in a Table."""

    name: str
    caption: str
    figure: Figure
    n: int | str
    reduced: str | None = None
    number: int | None = None

    def __post_init__(self) -> None:
        _check_name("picture", self.name)


Part = Paragraph | Table | Picture


@dataclass(frozen=True)
class Section:
    """A heading with its parts."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Document:
    """A report before it is written.

    `references` are keys of `references.bib`, such as "sun2021", or entries that `headscope cite` knows. `runs` are the
    provenance of every result behind the numbers; the fact `name` is the heading of its block.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    references: Sequence[str] = ()
    runs: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        for word, kind in (("tables", Table), ("pictures", Picture)):
            names = Counter(part.name for section in self.sections for part in section.parts if isinstance(part, kind))
            if repeated := [name for name, count in names.items() if count > 1]:
                raise InputError(
                    f"Two {word} of the document '{self.title}' are called '{repeated[0]}', and each is a file of its "
                    "own. Rename one of them."
                )


def _check_name(kind: str, name: str) -> None:
    """Check a name, which becomes a file name and an anchor in the page."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise InputError(
            f"A {kind}'s name becomes the name of its files, but got {name!r}. Write it in letters, digits, _ and -, "
            "such as 'entropy_by_layer'."
        )

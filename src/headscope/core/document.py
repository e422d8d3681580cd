"""What a report says: sections of paragraphs, tables and pictures, with what was run and what to cite."""

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
    """Plain text, in which `code` and **bold** may stand."""

    text: str


@dataclass(frozen=True)
class Table:
    """Numbers with a caption, over `n` examples, or what `n` says in words.

    The columns x, x_low and x_high are printed as one, such as 0.42 [0.39, 0.45]. Rows are named by the frame's index
    where it has a name, else by the first column. `theirs` are a paper's own figures: beside ours where their columns
    and rows are among ours, else below. `reduced` is the reason why n is below the paper's scale. `number` is that of
    the paper's own table; those without one are then numbered A1, A2 and so on.
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
        for whose, frame in (("", self.frame), ("theirs of ", self.theirs)):
            if frame is not None and frame.empty:
                raise InputError(
                    f"The table {whose}'{self.name}' has {len(frame)} rows and {len(frame.columns)} columns: there is "
                    "nothing to print. Leave it out, and say in a Paragraph what is missing."
                )
            if frame is not None and not frame.columns.is_unique:
                twice = next(str(each) for each, many in Counter(frame.columns).items() if many > 1)
                raise InputError(f"The table {whose}'{self.name}' has two columns '{twice}'. Rename one of them.")


@dataclass(frozen=True)
class Picture:
    """A figure with a caption, over `n` examples, or what `n` says in words; `reduced` and `number` as in a Table."""

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
    """A heading and what stands below it."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Document:
    """A report before it is written.

    `references` are keys of `references.bib`, such as "sun2021", or things that `headscope cite` knows. `runs` has the
    provenance of every result behind the numbers; a fact `name` heads its block.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    references: Sequence[str] = ()
    runs: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        for kind, which in (("tables", Table), ("pictures", Picture)):
            names = Counter(part.name for section in self.sections for part in section.parts if isinstance(part, which))
            if twice := [name for name, many in names.items() if many > 1]:
                raise InputError(
                    f"Two {kind} of the document '{self.title}' are called '{twice[0]}', and each is a file of its "
                    "own. Rename one of them."
                )


def _check_name(what: str, name: str) -> None:
    """A name becomes a file's name and an anchor in the page."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise InputError(
            f"A {what}'s name becomes the name of its files, but got {name!r}. Write it in letters, digits, _ and -, "
            "such as 'entropy_by_layer'."
        )

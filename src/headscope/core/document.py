"""A report before it is written: sections of paragraphs, tables and pictures, with provenance and references."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

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
        for prefix, frame in (("", self.frame), ("theirs of ", self.theirs)):
            if frame is not None and frame.empty:
                raise InputError(
                    f"The table {prefix}'{self.name}' has {len(frame)} rows and {len(frame.columns)} columns: there is "
                    "nothing to print. Leave it out, and say in a Paragraph what is missing."
                )
            if frame is not None and not frame.columns.is_unique:
                name = frame.columns[frame.columns.duplicated()][0]
                raise InputError(f"The table {prefix}'{self.name}' has two columns '{name}'. Rename one of them.")


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
SomePart = TypeVar("SomePart", Paragraph, Table, Picture)


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


def _check_name(what: str, name: str) -> None:
    """Check a name, which becomes a file name and an anchor in the page."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise InputError(
            f"A {what}'s name becomes the name of its files, but got {name!r}. Write it in letters, digits, _ and -, "
            "such as 'entropy_by_layer'."
        )


@dataclass(frozen=True)
class SectionContext:
    """The result that a section is about, where there are several: for titles and file names."""

    words: str = ""
    prefix: str = ""
    draws: bool = True  # False where only tables are wanted

    def title(self, text: str) -> str:
        """Return a heading that names the result."""
        return f"{self.words}: {text}" if self.words else capitalize(text)

    def name(self, *words: str) -> str:
        """Return a file name without its ending."""
        return self.prefix + "_".join(slug(word) for word in words if word)

    def narrow(self, words: str) -> "SectionContext":
        """Return the context of a part of the result."""
        title = f"{self.words}, {words}" if self.words else words
        return replace(self, words=title, prefix=f"{self.prefix}{slug(words)}_")


def slug(text: str) -> str:
    """Return text as part of a file name.

    >>> slug("effective:keys=paper"), slug("-2"), slug("…")
    ('effective_keys_paper', 'minus2', 'x')
    """
    text = re.sub(r"^[-−](?=\d)", "minus", text)
    return re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_-") or "x"


def capitalize(text: str) -> str:
    """Return text with its first letter in upper case; other letters stay."""
    return text[:1].upper() + text[1:]


def make_names_unique(sections: Sequence[Section]) -> list[Section]:
    """Number the names of tables and pictures that occur again."""
    taken: set[tuple[type, str]] = set()
    numbered = []
    for section in sections:
        parts: list[Part] = []
        for part in section.parts:
            if not isinstance(part, Paragraph):
                name, number = part.name, 2
                while (type(part), part.name) in taken:
                    part, number = replace(part, name=f"{name}_{number}"), number + 1
                taken.add((type(part), part.name))
            parts.append(part)
        numbered.append(Section(section.title, parts))
    return numbered


def list_parts(sections: Sequence[Section], kind: type[SomePart]) -> list[SomePart]:
    """Return all parts of a kind, in order."""
    return [part for section in sections for part in section.parts if isinstance(part, kind)]

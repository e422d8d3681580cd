"""A Document as one HTML page that needs nothing else."""

import base64
import html
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from headscope.core.document import Document, Paragraph, Part, Picture, Section, Table
from headscope.reporting.caption import caption
from headscope.reporting.grid import grid
from headscope.reporting.markup import as_html, as_text
from headscope.reporting.references import Reference, references
from headscope.reporting.runs import Facts, facts
from headscope.version import __version__

MARK = '<meta name="generator" content="headscope'
"""By which a page of ours is known."""

LARGEST = 300_000
"""A drawing of more bytes than this goes into the page as pixels."""

WIDEST = 1100
"""A picture of more pixels of a page than this keeps its size, and is scrolled."""


class Numbers:
    """How many tables and figures there were so far; beside numbers of a paper, all others are A1, A2 and so on."""

    def __init__(self, document: Document) -> None:
        parts = [part for section in document.sections for part in section.parts if not isinstance(part, Paragraph)]
        self._letter = {type(part): "A" for part in parts if part.number is not None}
        self._seen = Counter[type]()

    def next(self, part: Table | Picture) -> str:
        """What the part is called, such as Table 3."""
        kind = type(part)
        word = "Table" if kind is Table else "Figure"
        if part.number is not None:
            return f"{word} {part.number}"
        self._seen[kind] += 1
        return f"{word} {self._letter.get(kind, '')}{self._seen[kind]}"


def page(document: Document, drawings: Mapping[str, tuple[str, bytes]]) -> str:
    """The page; `drawings` has the kind (svg+xml or png) and the bytes of each picture, by its name."""
    cited, numbers = references(document.references), Numbers(document)
    sections = [_section(place, each, numbers, drawings) for place, each in enumerate(document.sections, 1)]
    titles = [(f"section-{place}", as_text(each.title)) for place, each in enumerate(document.sections, 1)]
    ends = []
    if document.runs:
        ends.append(_runs(document.runs))
        titles.append(("runs", "What was run"))
    if cited:
        ends.append(_references(cited))
        titles.append(("references", "References"))
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            _head(document.title),
            "<body>",
            f"<header>\n<h1>{as_html(document.title)}</h1>",
            *(f'<p class="lead">{as_html(each)}</p>' for each in _paragraphs(document.lead)),
            "</header>",
            _contents(titles),
            "<main>",
            *sections,
            *ends,
            "</main>",
            f"<footer><p>Made by headscope {html.escape(__version__)}. The folder of this page also has every table "
            "as CSV and LaTeX, and every figure as PDF and SVG.</p></footer>",
            "</body>",
            "</html>\n",
        ]
    )


def _head(title: str) -> str:
    style = (files("headscope.reporting") / "style.css").read_text(encoding="utf-8")
    return (
        '<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'{MARK} {html.escape(__version__)}">\n<title>{html.escape(as_text(title))}</title>\n'
        f"<style>\n{style}</style>\n</head>"
    )


def _paragraphs(text: str) -> list[str]:
    """What empty lines set apart."""
    return [each.strip() for each in text.split("\n\n") if each.strip()]


def _contents(titles: Sequence[tuple[str, str]]) -> str:
    if len(titles) < 2:
        return ""
    items = "\n".join(f'<li><a href="#{place}">{html.escape(title)}</a></li>' for place, title in titles)
    return f'<nav aria-label="Contents">\n<h2>Contents</h2>\n<ul>\n{items}\n</ul>\n</nav>'


def _section(place: int, section: Section, numbers: Numbers, drawings: Mapping[str, tuple[str, bytes]]) -> str:
    parts = "\n".join(_part(each, numbers, drawings) for each in section.parts)
    return f'<section id="section-{place}">\n<h2>{as_html(section.title)}</h2>\n{parts}\n</section>'


def _part(part: Part, numbers: Numbers, drawings: Mapping[str, tuple[str, bytes]]) -> str:
    if isinstance(part, Paragraph):
        return "\n".join(f"<p>{as_html(each)}</p>" for each in _paragraphs(part.text))
    if isinstance(part, Table):
        return _table(part, numbers.next(part))
    return _picture(part, numbers.next(part), *drawings[part.name])


def _table(table: Table, number: str) -> str:
    endings = ["csv", "tex"] if table.theirs is None else ["csv", "paper.csv", "tex"]
    links = " ".join(_link("tables", table.name, each) for each in endings)
    return (
        f'<figure class="table" id="table-{table.name}">\n'
        f"<figcaption><b>{number}.</b> {as_html(caption(table))}</figcaption>\n{grid(table, number)}\n"
        f'<p class="files">{links}</p>\n</figure>'
    )


def _picture(picture: Picture, number: str, kind: str, content: bytes) -> str:
    """The drawing as an image within the page; as such its marks cannot clash with those of another."""
    wide, high = (round(each * 96) for each in picture.figure.get_size_inches())
    source = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    text = html.escape(f"{number}. {as_text(caption(picture))}")
    scrolls = f' wide" role="region" tabindex="0" aria-label="{number}"' if wide > WIDEST else '"'
    return (
        f'<figure class="picture" id="figure-{picture.name}">\n'
        f'<div class="card{scrolls}><img src="{source}" width="{wide}" height="{high}" alt="{text}"></div>\n'
        f"<figcaption><b>{number}.</b> {as_html(caption(picture))}</figcaption>\n"
        f'<p class="files">{_link("figures", picture.name, "pdf")} {_link("figures", picture.name, "svg")}</p>\n'
        "</figure>"
    )


def _link(folder: str, name: str, ending: str) -> str:
    return f'<a href="{folder}/{name}.{ending}">{name}.{ending}</a>'


def _runs(runs: Sequence[Mapping[str, Any]]) -> str:
    blocks = "\n".join(_run(each) for each in runs)
    return f'<section id="runs">\n<h2>What was run</h2>\n{blocks}\n</section>'


def _run(run: Mapping[str, Any]) -> str:
    first, rest = facts(run)
    name = f"<h3>{html.escape(str(run['name']))}</h3>\n" if "name" in run else ""
    more = (
        f"\n<details>\n<summary>{len(rest)} more fact{'s' * (len(rest) > 1)}</summary>\n{_facts(rest)}\n</details>"
        if rest
        else ""
    )
    return f"{name}{_facts(first)}{more}"


def _facts(told: Facts) -> str:
    rows = "\n".join(f"<div><dt>{html.escape(key)}</dt><dd>{html.escape(each)}</dd></div>" for key, each in told)
    return f'<dl class="facts">\n{rows}\n</dl>' if told else "<p>Nothing is known of this run.</p>"


def _references(cited: Sequence[Reference]) -> str:
    items = "\n".join(f'<li id="ref-{each.key}">{each.citation}</li>' for each in cited)
    entries = html.escape("\n\n".join(each.bibtex for each in cited))
    return (
        f'<section id="references">\n<h2>References</h2>\n<ol class="references">\n{items}\n</ol>\n'
        f"<details>\n<summary>BibTeX</summary>\n<pre>{entries}</pre>\n</details>\n</section>"
    )

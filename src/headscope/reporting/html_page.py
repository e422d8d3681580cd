"""A Document as one self-contained HTML page."""

import base64
import html
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from headscope.core.document import Document, Paragraph, Part, Picture, Section, Table
from headscope.core.prose import count_noun
from headscope.reporting.markup import full_caption, to_html, to_text
from headscope.reporting.references import Reference, find_references
from headscope.reporting.table_text import TableColumn, format_table
from headscope.version import __version__

GENERATOR = '<meta name="generator" content="headscope'
"""Marks pages that headscope wrote."""

MAX_SVG_BYTES = 300_000
"""Larger figures are PNG in the page."""

MAX_PAGE_WIDTH = 1100
"""Figures of more pixels keep their width and are scrolled."""

FULL_WIDTH = 620
"""Figures of as many pixels, such as one that fills the page of a paper, fill the width of the page."""

VERDICTS = {"holds only": "partly", "holds": "yes", "refuted": "no", "not reproduced": "no"}
"""CSS classes of cells in a column `verdict`, by how they begin; all others are `partly`."""

Images = Mapping[str, tuple[str, bytes]]
"""The type (svg+xml or png) and the bytes of each picture, by its name."""


FIRST_FACTS = {
    "command": "command",
    "options": "options",
    "model": "model",
    "weights_hash": "weights",
    "data": "data",
    "n": "n",
    "lenses": "lenses",
    "lens": "lenses",
    "statistics": "statistics",
    "task": "task",
    "edits": "edits",
    "max_length": "longest input",
    "units": "units",
    "device": "device",
    "dtype": "numbers",
    "seed": "seed",
    "paired": "paired",
    "correction": "correction",
    "version": "headscope",
}
"""Facts that are shown first, with their labels."""

Facts = list[tuple[str, str]]


def describe_run(run: Mapping[str, Any]) -> tuple[Facts, Facts]:
    """Return the facts shown first, and the rest, without empty values.

    >>> describe_run({"n": 1200, "model": "bert", "plan": "1a", "limit": None})
    ([('model', 'bert'), ('n', '1,200')], [('plan', '1a')])
    """
    facts = {str(key): value for key, value in run.items() if key != "name" and value not in (None, [], {}, "", ())}
    nested = {key: value for key, value in facts.items() if key in ("a", "b", "runs") and isinstance(value, Mapping)}
    first = [(label, format_fact(facts[key])) for key, label in FIRST_FACTS.items() if key in facts]
    others = [key for key in sorted(facts) if key not in FIRST_FACTS and key not in nested]
    rest = [(key.replace("_", " "), format_fact(facts[key])) for key in others]
    for key, value in nested.items():
        rest += _describe_nested(key, value)
    return first, rest


def format_fact(value: Any) -> str:
    """Return a value as text: lists with commas, mappings with colons."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {format_fact(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(format_fact, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _describe_nested(key: str, run: Mapping[str, Any]) -> Facts:
    """Return the facts of a run within this one, such as a side of a comparison."""
    if key == "runs":
        return [(f"run {name}", format_fact(value)) for name, value in run.items()]
    first, rest = describe_run(run)
    return [(f"{key}: {label}", text) for label, text in (*first, *rest)]


class PartNumbers:
    """Numbers of tables and figures; where some have a paper's number, all others are A1, A2 and so on."""

    def __init__(self, document: Document) -> None:
        parts = [part for section in document.sections for part in section.parts if not isinstance(part, Paragraph)]
        self._letter = {type(part): "A" for part in parts if part.number is not None}
        self._seen = Counter[type]()

    def next(self, part: Table | Picture) -> str:
        """Return the number of a part, such as Table 3."""
        part_type = type(part)
        word = "Table" if part_type is Table else "Figure"
        if part.number is not None:
            return f"{word} {part.number}"
        self._seen[part_type] += 1
        return f"{word} {self._letter.get(part_type, '')}{self._seen[part_type]}"


def document_to_html(document: Document, images: Images) -> str:
    """Return the page of a document and its images."""
    cited, part_numbers = find_references(document.references), PartNumbers(document)
    sections = [_section(number, section, part_numbers, images) for number, section in enumerate(document.sections, 1)]
    titles = [(f"section-{number}", to_text(section.title)) for number, section in enumerate(document.sections, 1)]
    if document.runs:
        sections.append(_runs(document.runs))
        titles.append(("runs", "What was run"))
    if cited:
        sections.append(_references(cited))
        titles.append(("references", "References"))
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            _head(document.title),
            "<body>",
            f"<header>\n<h1>{to_html(document.title)}</h1>",
            *(f'<p class="lead">{to_html(text)}</p>' for text in _paragraphs(document.lead)),
            "</header>",
            _contents(titles),
            "<main>",
            *sections,
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
        f'{GENERATOR} {html.escape(__version__)}">\n<title>{html.escape(to_text(title))}</title>\n'
        f"<style>\n{style}</style>\n</head>"
    )


def _paragraphs(text: str) -> list[str]:
    """Split text at empty lines."""
    return [paragraph.strip() for paragraph in text.split("\n\n") if paragraph.strip()]


def _contents(titles: Sequence[tuple[str, str]]) -> str:
    """Return the contents, folded so that the first figure is on the first screen."""
    if len(titles) < 2:
        return ""
    items = "\n".join(f'<li><a href="#{anchor}">{html.escape(title)}</a></li>' for anchor, title in titles)
    folded = f"<details>\n<summary>Contents</summary>\n<ul>\n{items}\n</ul>\n</details>"
    return f'<nav aria-label="Contents">\n{folded}\n</nav>'


def _section(number: int, section: Section, part_numbers: PartNumbers, images: Images) -> str:
    parts = "\n".join(_part(part, part_numbers, images) for part in section.parts)
    return f'<section id="section-{number}">\n<h2>{to_html(section.title)}</h2>\n{parts}\n</section>'


def _part(part: Part, part_numbers: PartNumbers, images: Images) -> str:
    if isinstance(part, Paragraph):
        return "\n".join(f"<p>{to_html(text)}</p>" for text in _paragraphs(part.text))
    if isinstance(part, Table):
        return _table(part, part_numbers.next(part))
    return _picture(part, part_numbers.next(part), *images[part.name])


def _table(table: Table, number: str) -> str:
    endings = ["csv", "tex"] if table.theirs is None else ["csv", "paper.csv", "tex"]
    links = " ".join(_link("tables", table.name, ending) for ending in endings)
    return (
        f'<figure class="table" id="table-{table.name}">\n'
        f"<figcaption><b>{number}.</b> {to_html(full_caption(table))}</figcaption>\n{table_to_html(table, number)}\n"
        f'<p class="files">{links}</p>\n</figure>'
    )


def table_to_html(table: Table, number: str) -> str:
    """Return the rows and columns; a paper's numbers that do not fit beside ours follow below."""
    labels = (f"{number}, ours", f"{number}, theirs")
    grids = [_grid(columns, label) for columns, label in zip(format_table(table), labels, strict=False)]
    return '\n<p class="whose">Printed in the paper</p>\n'.join(grids)


def _grid(columns: list[TableColumn], label: str) -> str:
    head = "".join(f'<th scope="col"{_css(column)}>{html.escape(column.name)}</th>' for column in columns)
    rows = "\n".join(_row(columns, index) for index in range(len(columns[0].cells)))
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{html.escape(label)}">\n<table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _row(columns: list[TableColumn], index: int) -> str:
    """Return a row; one that begins a group of rows has a class of its own."""
    keys = [column for column in columns if column.header]
    group = len(keys) > 1 and index > 0 and keys[0].cells[index] != keys[0].cells[index - 1]
    cells = "".join(_cell(column, index) for column in columns)
    return f'<tr class="group">{cells}</tr>' if group else f"<tr>{cells}</tr>"


def _cell(column: TableColumn, index: int) -> str:
    text = html.escape(column.cells[index])
    if column.header:
        return f'<th scope="row"{_css(column)}>{text}</th>'
    if column.name.startswith("verdict"):
        verdict = column.cells[index].lower()
        css = next((css for start, css in VERDICTS.items() if verdict.startswith(start)), "partly")
        return f'<td><span class="verdict {css}">{text}</span></td>'
    ends = column.ends[index] if column.ends else ""
    interval = f' <span class="ends">{html.escape(ends)}</span>' if ends else ""
    inner = f'<span class="value">{text}</span>{interval}' if column.number else text
    return f"<td{_css(column)}>{inner}</td>"


def _css(column: TableColumn) -> str:
    classes = " ".join(name for name in ("number", "theirs", "long") if getattr(column, name))
    return f' class="{classes}"' if classes else ""


def _picture(picture: Picture, number: str, image_type: str, content: bytes) -> str:
    """Embed the picture as an image, so that ids of two SVGs cannot clash."""
    width, height = (round(inches * 96) for inches in picture.figure.get_size_inches())
    source = f"data:image/{image_type};base64,{base64.b64encode(content).decode()}"
    text = html.escape(f"{number}. {to_text(full_caption(picture))}")
    card = ' full"' if width >= FULL_WIDTH else '"'
    if width > MAX_PAGE_WIDTH:
        card = f' wide" role="region" tabindex="0" aria-label="{number}"'
    return (
        f'<figure class="picture" id="figure-{picture.name}">\n'
        f'<div class="card{card}><img src="{source}" width="{width}" height="{height}" alt="{text}"></div>\n'
        f"<figcaption><b>{number}.</b> {to_html(full_caption(picture))}</figcaption>\n"
        f'<p class="files">{_link("figures", picture.name, "pdf")} {_link("figures", picture.name, "svg")}</p>\n'
        "</figure>"
    )


def _link(folder: str, name: str, ending: str) -> str:
    return f'<a href="{folder}/{name}.{ending}">{name}.{ending}</a>'


def _runs(runs: Sequence[Mapping[str, Any]]) -> str:
    blocks = "\n".join(_run(run) for run in runs)
    return f'<section id="runs">\n<h2>What was run</h2>\n{blocks}\n</section>'


def _run(run: Mapping[str, Any]) -> str:
    first, rest = describe_run(run)
    name = f"<h3>{html.escape(str(run['name']))}</h3>\n" if "name" in run else ""
    summary = count_noun(len(rest), "more fact")
    more = f"\n<details>\n<summary>{summary}</summary>\n{_facts(rest)}\n</details>" if rest else ""
    return f"{name}{_facts(first)}{more}"


def _facts(facts: Facts) -> str:
    rows = "\n".join(f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(text)}</dd></div>" for label, text in facts)
    return f'<dl class="facts">\n{rows}\n</dl>' if facts else "<p>Nothing is known of this run.</p>"


def _references(cited: Sequence[Reference]) -> str:
    items = "\n".join(f'<li id="ref-{reference.key}">{reference.citation}</li>' for reference in cited)
    entries = html.escape("\n\n".join(reference.bibtex for reference in cited))
    return (
        f'<section id="references">\n<h2>References</h2>\n<ol class="references">\n{items}\n</ol>\n'
        f"<details>\n<summary>BibTeX</summary>\n<pre>{entries}</pre>\n</details>\n</section>"
    )

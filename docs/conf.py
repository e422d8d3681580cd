"""The site of these pages, which `make docs` has Sphinx write to out/docs.

Its sources are the pages as they are, in docs and at the root of the repository. docs/index.md is the one list of them:
its sections are those of the site, and a page that is indented below another belongs to it.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

project = "headscope"
author = project_copyright = "The headscope authors"
version = release = re.search(
    r'"(.+)"', (ROOT / "src/headscope/version.py").read_text(encoding="utf-8").partition("=")[2]
)[1]
root_doc = "docs/index"
include_patterns = ["docs/**", "examples/*.ipynb", "studies/*.md", "[A-Z]*.md"]
exclude_patterns = [".*", "benchmarks", "dist", "frontend", "out", "src", "tests", "tools", "studies/headscope*"]
exclude_patterns += ["docs/templates", "AGENTS.md", "README.md", "studies/README.md"]

extensions = ["myst_nb", "sphinx_copybutton"]
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4  # as GitHub makes them
nb_execution_mode = "off"  # notebooks are committed with their outputs
copybutton_exclude = ".linenos, .gp, .go"  # neither prompts nor output

html_theme = "furo"
html_title = "headscope"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "site" / "scorer.js")
html_copy_source = False
html_use_index = False
html_additional_pages = {"index": "first.html"}
templates_path = ["site"]

SECTION = re.compile(r"^## (.+)\n((?:(?!#).*\n?)*)", re.MULTILINE)
ENTRY = re.compile(r"^( *)- \[([^\]]+)\]\(([^)]+)\.(?:md|ipynb)\)", re.MULTILINE)
PICTURE = re.compile(r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)">\s*</picture>')


def read_contents():
    """Return the tables of contents in docs/index.md, by the page that they stand on: options and lines of each."""
    tables, above = {}, {}
    for caption, entries in SECTION.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8")):
        for indent, title, target in ENTRY.findall(entries):
            depth, page = len(indent), (ROOT / "docs" / target).resolve().relative_to(ROOT).as_posix()
            above[depth] = page
            parent, options = (above[depth - 2], "") if depth else (root_doc, f":caption: {caption}\n")
            tables.setdefault(parent, {}).setdefault(options, []).append(f"{title} </{page}>")
    return tables


CONTENTS = read_contents()


def adapt_page(_app, page, source):
    """Append the tables of contents of a page, and replace pictures for two themes by a picture for each theme."""
    both = r"![\2](\3){.only-light} ![\2](\1){.only-dark}"
    source[0] = PICTURE.sub(both, source[0])
    for options, lines in CONTENTS.get(page, {}).items():
        source[0] += "\n```{toctree}\n:hidden:\n" + options + "\n".join(["", *lines, "```", ""])


def setup(app):
    """Adapt each page as it is read."""
    app.connect("source-read", adapt_page)

"""What a study adds to the docs and to `make reports`, and how docs/make.py and docs/reports.py find it."""

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from matplotlib.figure import Figure

from headscope.core.catalog import studies
from headscope.core.document import Document
from headscope.results.store import save

Generated = Iterable[tuple[str, bytes]]
"""Paths of files, relative to the folder they are written to, with their content."""


@dataclass(frozen=True)
class StudyPages:
    """What is generated from the committed results of a study; `pages/page.py` in its folder holds one as `PAGES`.

    Generators of `docs` get the folder of the docs, where pages that are written by hand have parts to be filled in.
    """

    docs: Mapping[str, Callable[[Path], Generated]]
    """Pages in the docs with their pictures, by the names of the pages."""

    tables: Mapping[str, Callable[[], Generated]]
    """Pages of all tables with their pictures, by the names of the pages; written by `make reports`."""

    reports: Callable[[], Iterable[tuple[str, Document]]]
    """The study's own report on each model, by the name of its folder."""


def find_pages() -> dict[str, StudyPages]:
    """Return what every installed study adds, by its name; only the repository has pages, not an installed wheel."""
    modules = {name: f"{studies.find(name).__module__}.pages" for name in studies.names()}
    found = [(name, module) for name, module in modules.items() if _exists(module)]
    return {name: import_module(f"{module}.page").PAGES for name, module in found}


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the study is one file, which can hold no package
        return False


def read_guide(name: str) -> str:
    """Return the section on a study in docs/studies.md, which is `pages/guide.md` in its folder."""
    module = import_module(f"{studies.find(name).__module__}.pages.page")
    return Path(str(module.__file__)).with_name("guide.md").read_text(encoding="utf-8")


def write_pictures(figures: Mapping[str, Figure]) -> Generated:
    """Yield the path and content of each figure, given by file name."""
    with tempfile.TemporaryDirectory() as folder:
        for name, figure in figures.items():
            yield f"pictures/{name}", save(figure, Path(folder) / name).read_bytes()


def fill_page(page: Path, texts: Mapping[str, str]) -> Generated:
    """Yield a page of the docs with each text between the marks of its name, `<!-- name -->` and `<!-- /name -->`."""
    content = page.read_text(encoding="utf-8")
    for mark, text in texts.items():
        between = rf"(?<=<!-- {mark} -->\n).*?(?=<!-- /{mark} -->)"
        before, after = re.split(between, content, maxsplit=1, flags=re.DOTALL)
        content = f"{before}{text}{after}"
    yield page.name, content.encode()

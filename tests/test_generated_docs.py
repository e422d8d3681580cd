"""Figures and tables of the docs are those that docs/make.py generates; one test for each page, with its figures."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from headscope.experiments.pages.generate import find_pages

DOCS = Path(__file__).parents[1] / "docs"


def import_make():
    sys.path.insert(0, str(DOCS))  # where it finds its pages
    try:
        spec = spec_from_file_location("docs_make", DOCS / "make.py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(DOCS))
    return module


MAKE = import_make()
STUDY_OF = {page: study for study, pages in find_pages().items() for page in pages.docs}
"""The study of each page that is made from its results; tests/conftest.py has it beside the tests of the study."""


@pytest.mark.parametrize("page", MAKE.GENERATORS)
def test_generated_figures_and_tables_are_up_to_date(page):
    stale = [str(path.relative_to(DOCS)) for path, _ in MAKE.find_stale([page])]
    assert not stale, f"Run python docs/make.py {page}"


def test_the_table_beside_bertviz_says_what_was_measured_and_which_bars_are_missed():
    run = json.loads((DOCS / "results" / "viewer.json").read_text(encoding="utf-8"))
    text = (DOCS / "viewer.md").read_text(encoding="utf-8")
    for row in run["rows"]:
        assert f"| {row['size'] / 1e6:,.1f} MB | {row['cpu_s']:.2f} s |" in text
    missed = [bar["what"] for bar in run["bars"] if not bar["met"]]
    assert f"Of {len(run['bars'])} bars that were set before, {len(run['bars']) - len(missed)} are met" in text
    assert [what for what in missed if f"{what}: " not in text] == []
    assert ("Missed: " in text) == bool(missed)

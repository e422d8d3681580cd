"""A study is a folder: to add one is to add it, and to touch no other file."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

import headscope_studies
from headscope.cli.main import app
from headscope.core.catalog import readers, studies
from headscope.experiments.pages.generate import find_pages, read_guide
from headscope.results.store import open_result
from tests.laws import test_studies

ROOT = Path(__file__).parents[2]
STUDY = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8").rpartition("```python\n")[2].partition("```")[0]
PAGE = """
from headscope.core.document import Document
from headscope.experiments.pages.generate import StudyPages

PAGES = StudyPages(
    {"entropy_rises": lambda docs: [("entropy_rises.md", b"# Entropy")]},
    {"entropy_rises_tables": lambda: [("entropy_rises_tables.md", b"# Tables")]},
    lambda: [("entropy_rises_tiny", Document("Entropy", "One claim.", [], ()))],
)
"""
READER = """
from dataclasses import dataclass

from headscope.core.reader import Reader

@dataclass(frozen=True)
class EntropyTexts(Reader):
    def read(self, path): ...
"""
TINY = """
def options(folder):
    return {"dev": str(folder / "dev.jsonl"), "train": str(folder / "train.jsonl"), "epochs": 1, "max_length": 40}
"""
FILES = {
    "__init__.py": STUDY,
    "pages/page.py": PAGE,
    "pages/guide.md": "## `entropy-rises`\n\nDoes entropy rise?\n",
    "tests/tiny.py": TINY,
    "readers/entropy_texts.py": READER,
}


@pytest.fixture
def added(tmp_path, monkeypatch):
    """One folder more among the studies."""
    for name, content in FILES.items():
        path = tmp_path / "entropy_rises" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    monkeypatch.setattr(headscope_studies, "__path__", [*headscope_studies.__path__, str(tmp_path)])
    yield
    for name in [name for name in sys.modules if name.startswith("headscope_studies.entropy_rises")]:
        del sys.modules[name]


@pytest.mark.usefixtures("added")
def test_an_added_study_is_in_the_catalog_and_the_shell():
    assert "entropy_rises" in studies.names()
    shown = CliRunner().invoke(app, ["list", "studies"])
    assert "entropy" in shown.output
    shown = CliRunner().invoke(app, ["study", "entropy-rises", "--help"])
    assert "Compare the entropy of raw and effective attention" in shown.output
    assert "entropy_texts" in readers.names()


@pytest.mark.usefixtures("added")
def test_an_added_study_is_in_the_reports_and_the_index_of_the_docs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    make, reports = import_module("make"), import_module("reports")
    assert [name for name, _ in find_pages()["entropy_rises"].reports()] == ["entropy_rises_tiny"]
    ((name, page),) = make.make_index()
    assert (name, page.decode().count(read_guide("entropy_rises"))) == ("studies.md", 1)
    assert "entropy_rises" in make.list_study_generators()
    written = [path.name for path in reports.write_study(find_pages()["entropy_rises"], tmp_path / "out")]
    assert written == ["report.html", "entropy_rises_tables.md"]


@pytest.mark.usefixtures("added")
def test_an_added_study_is_held_to_the_laws():
    test_studies.test_a_study_runs_on_a_tiny_model_and_its_result_is_stamped("entropy_rises")


def test_without_the_package_of_studies_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr("headscope.core.catalog.entry_points", lambda group: [])
    for command in (["study", "some-paper"], ["study", "some-paper", "--help"], ["list", "studies"]):
        shown = CliRunner().invoke(app, command)
        assert "pip install headscope[studies]" in " ".join(shown.output.split()), command


def test_every_study_has_committed_results_and_those_that_are_not_shown_can_be_opened():
    paths = sorted((ROOT / "studies" / "headscope_studies").glob("*/results/*.nc"))
    assert len({path.parent for path in paths}) == len(studies.names())
    for path in paths:
        if "_all-" in path.stem:  # the others are opened and shown by tests/laws/test_kinds.py
            assert open_result(path).attrs

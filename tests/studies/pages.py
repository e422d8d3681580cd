"""What the tests of every study's pages in the docs share."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from headscope.core.provenance import read_provenance
from headscope.results.store import open_result

DOCS = Path(__file__).parents[2] / "docs"


def read_script(path):
    """A script of the docs as a module, which may import those beside it."""
    sys.path += [folder for folder in (str(DOCS), str(DOCS / "runs")) if folder not in sys.path]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def join_runs(study, folder):
    """Join the runs in the folder `found` with the script of a study, as the docs' own results are."""
    script = [sys.executable, DOCS / "runs" / f"{study}.py", "join", folder / "found", "--out", folder]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def check_stamps(folder, names):
    """The result files in a folder have these names, and say what was run."""
    assert {path.name for path in folder.glob("*.nc")} == set(names)
    for path in folder.glob("*.nc"):
        assert {"command", "model", "weights_hash", "data", "n", "version"} <= set(read_provenance(open_result(path)))


def check_page(maker, facts, *expected, words=1300):
    """The main page says what is expected, with four figures that are drawn, in fewer words: two screens, captions."""
    text = maker.page(facts).decode()
    for sentence in expected:
        assert sentence in text
    pictures = re.findall(r"!\[[^]]+\]\(pictures/([^)]+)\)", text)
    assert len(pictures) == 4
    assert set(pictures) <= set(maker.drawn(facts))
    assert "nan" not in text
    assert len(text.split()) < words


def check_tables(maker, facts, study, *expected):
    """The second page has all tables, says what is expected, and shows only figures that are drawn; its text."""
    pages = maker.made(facts)
    if len(pages) == 1:  # the tables take long, and are made apart
        pages += maker.make_tables(facts)
    ((main, _), (tables, content)) = pages
    assert (main.name, tables.name) == (f"{study}.md", f"{study}_tables.md")
    text = content.decode()
    for sentence in expected:
        assert sentence in text
    assert "nan" not in text
    assert set(re.findall(r"\(pictures/([^)]+)\)", text)) <= set(maker.drawn(facts))
    return text

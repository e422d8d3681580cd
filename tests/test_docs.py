"""Figures, tables, links and code of the docs."""

import doctest
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headscope

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("[A-Z]*.md"))]
RESULTS = sorted((ROOT / "docs" / "results").glob("*.nc"))


def test_generated_figures_and_tables_are_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "docs" / "make.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_results_are_stamped(path):
    from headscope.results.store import open_result

    stamp = json.loads(open_result(path).attrs["headscope"])
    assert {"command", "model", "weights_hash", "data", "n", "version"} <= set(stamp)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_have_a_target(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_readme_session_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code.replace('"bert-base-uncased"', "")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cat.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(example, tmp_path):
    done = subprocess.run(
        [sys.executable, example, "--limit", "3", "--out", tmp_path], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "never reaches the output" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines()[:-1])  # the last names a folder
    assert {"compare.pdf", "shares.png", "heads.html", "result.nc"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", sorted(set(headscope.__all__) - {"__version__"}))
def test_every_public_name_has_an_example_that_runs_as_a_doctest(name):
    thing = getattr(headscope, name)
    found = doctest.DocTestFinder(recurse=False).find(thing, name)
    examples = [example for test in found for example in test.examples]
    assert examples, f"{name} needs an example in its docstring, which docs/api.md shows."
    assert not any(doctest.SKIP in example.options for example in examples)
    assert Path(inspect.getsourcefile(thing)).is_relative_to(ROOT / "src")  # where `make check` runs doctests

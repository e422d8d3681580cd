"""Figures, tables, links and code of the docs."""

import doctest
import inspect
import json
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest
import typer
import xarray as xr
from typer.core import TyperGroup
from typer.testing import CliRunner

import headscope
import headscope as hs
from headscope.cli.main import app
from headscope.core.catalog import studies
from headscope.core.document import Document, Paragraph, Section
from headscope.core.study import StudyResult
from tests.docs_folder import prepare

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("[A-Z]*.md"))]
SNIPPET = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUN_ELSEWHERE = {"adding.md", "api.md", "gallery.md", "patterns.md", "reading.md", "training.md"}
"""Pages whose Python has tests of its own, which also look at its results."""

SNIPPET_PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if SNIPPET.search(page.read_text(encoding="utf-8"))
]
RESULTS = sorted((ROOT / "docs" / "results").glob("*.nc"))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_results_are_stamped(path):
    from headscope.results.store import open_result

    stamp = json.loads(open_result(path).attrs["headscope"])
    no_model = stamp["command"] in ("hs.cues", "docs/runs/cues.py")  # of texts alone
    expected = {"command", "data", "n", "version"} | (set() if no_model else {"model", "weights_hash"})
    assert expected <= set(stamp)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_have_a_target(page):
    for target, section in re.findall(r"\]\(([^)#]*)(#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not section or section in list_anchors(path), f"{target}{section}"


def list_anchors(page):
    """The anchors of the headings of a page, as GitHub makes them: the second of the same name ends in -1."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    names = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
    return {f"#{name}-{count}" if count else f"#{name}" for name in names for count in range(names.count(name))}


@pytest.fixture(scope="module")
def saved_models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def folder(tmp_path, saved_models, monkeypatch, blank_reports):
    """A folder with the models and data that the pages name, as the current one."""
    prepare(tmp_path, saved_models)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    monkeypatch.setattr("headscope.experiments.study.study", check_study)
    return tmp_path


@pytest.mark.parametrize("page", SNIPPET_PAGES, ids=lambda page: page.name)
def test_the_snippets_of_a_page_run_in_order_as_written(page, folder):
    variables = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.DataWarning)  # on purpose: truncated texts, damaged rows, few examples
        for language, code in SNIPPET.findall(page.read_text(encoding="utf-8")):
            if language == "python" and page.name not in RUN_ELSEWHERE:
                exec(compile(code, page.name, "exec"), variables)
            elif language in ("", "sh"):
                for line in code.splitlines():
                    run_command(line)


def run_command(line):
    """Run a line of the shell; of other tools, look up what it asks for."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["make"]:
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
    elif words[:2] == ["pip", "install"]:
        check_pip_line(words[2:])
    elif words:
        assert words[0] == "headscope", line
        asks = words[1:3] in (["patterns", "label"], ["patterns", "train"])
        later = words[1] in ("studio", "atlas", "fetch-model")  # these end later or never, or need a network
        if asks or later or "my.safetensors" in line:
            check_words(words[1:])
            return
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception!r}"


def check_words(words):
    """Check that a command and its options are known, without running it."""
    command, rest = typer.main.get_command(app), list(words)
    while isinstance(command, TyperGroup):
        context = command.make_context("headscope", rest[:1], resilient_parsing=True)
        verb, command, rest = command.resolve_command(context, rest)
    command.make_context(verb, rest)


def check_pip_line(words):
    """Check what a line installs: a clone, with its extras, or a package of a known version."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pinned = [line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()]
    words = iter(words)
    for word in words:
        if word == "-c":
            assert (ROOT / next(words)).is_file()
        elif word != "--no-deps":
            name, _, options = word.rstrip("]").partition("[")
            assert name in (".", "./studies", "headscope", *pinned), word
            assert set(filter(None, options.split(","))) <= set(extras), word


def test_the_python_of_the_readme_runs_twice_as_in_a_notebook(folder):
    blocks = [code for language, code in SNIPPET.findall((ROOT / "README.md").read_text()) if language == "python"]
    variables = {"__name__": "__main__"}
    for code in [*blocks, *blocks]:
        exec(compile(code, "README.md", "exec"), variables)


def test_the_readme_installs_the_default_model_as_its_error_says(monkeypatch):
    monkeypatch.setattr("headscope.engine.default_model.PACKAGE", "no_such_package")
    with pytest.raises(hs.LoadError) as caught:
        hs.load()
    command = re.search(r"with: (headscope [a-z-]+)", str(caught.value))[1]
    assert f"\n{command} " in (ROOT / "README.md").read_text()


def check_study(name, model=None, *, out, device=None, progress=True, overwrite=False, **options):
    """Check the parameters of a study, which takes minutes to run."""
    chosen = studies.make(name, **options)
    sources = (getattr(chosen, option, None) for option in ("data", "dev", "train"))  # not every study has all of them
    paths = [str(source).rpartition("@")[2] for source in sources if source]
    assert all((ROOT / path).exists() or Path(path).exists() for path in paths), paths
    document = Document("Study", "Not run.", [Section("None", [Paragraph("Nothing.")])])
    return StudyResult({"numbers": xr.Dataset()}, document)


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
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
    assert examples, f"{name} needs an example in its docstring, which docs/api.md shows."
    assert not any(doctest.SKIP in example.options for example in examples)
    assert thing.__module__.partition(".")[0] == "headscope"  # where `make check` runs doctests

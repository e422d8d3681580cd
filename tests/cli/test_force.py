"""No verb replaces results, reports or models that exist, unless it is told to; figures are replaced."""

import pytest
import typer

from headscope.cli.main import app
from headscope.cli.study import _make_command
from headscope.results.store import save
from tests.cli.test_cli import headscope  # noqa: F401  (a fixture)
from tests.figures.data import measured
from tests.measuring.data import examples, saved_model

NEW_FOLDERS = {"sheet"}
"""Verbs that write into a new folder only: labels made by hand may be in an older one."""


def test_every_verb_that_writes_has_force():
    writing = {}
    for command in (app, *(group.typer_instance for group in app.registered_groups)):
        for verb in typer.main.get_group(command).commands.values():
            flags = {flag for parameter in verb.params for flag in parameter.opts}
            if "--out" in flags:
                writing[verb.name] = "--force" in flags
    study = typer.Typer()
    study.command("study")(_make_command("effective_attention"))
    parameters = typer.main.get_command(study).params
    writing["study"] = "--force" in {flag for parameter in parameters for flag in parameter.opts}
    assert len(writing) >= 13
    assert {name for name, force in writing.items() if not force} == NEW_FOLDERS


@pytest.fixture
def paths(tmp_path):
    save(measured(), tmp_path / "a.nc")
    save(measured(seed=1), tmp_path / "b.nc")
    (tmp_path / "texts.txt").write_text("\n".join(example.text for example in examples(4)))
    return tmp_path


VERBS = {
    "compare": (("a.nc", "b.nc"), "x.nc"),
    "report": (("a.nc",), "x"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_what_exists_is_replaced_only_with_force(headscope, paths, verb, monkeypatch, blank_reports):  # noqa: F811
    monkeypatch.chdir(paths)
    words, out = VERBS[verb]
    command = (verb, *words, "-o", out)
    assert headscope(*command).returncode == 0
    before = content(paths / out)
    other = tuple("b.nc" if word == "a.nc" else word for word in command)
    refused = headscope(*other)
    assert refused.returncode == 2
    assert f"Error: {out} " in refused.stderr
    assert "--force" in refused.stderr
    assert content(paths / out) == before
    done = headscope(*other, "--force")
    assert done.returncode == 0, done.stderr
    assert content(paths / out) != before


def test_a_figure_that_exists_is_replaced(headscope, paths, monkeypatch):  # noqa: F811
    monkeypatch.chdir(paths)
    before = None
    for result in ("a.nc", "b.nc"):
        done = headscope("draw", result, "heads", "--variable", "entropy", "-o", "x.pdf")
        assert done.returncode == 0, done.stderr
        assert content(paths / "x.pdf") != before
        before = content(paths / "x.pdf")


def test_a_result_that_exists_is_refused_before_the_model_is_loaded(headscope, paths, monkeypatch):  # noqa: F811
    monkeypatch.chdir(paths)
    model, before = saved_model(paths / "model"), (paths / "a.nc").read_bytes()
    monkeypatch.setattr("headscope.engine.load.load", lambda *_, **__: pytest.fail("the model was loaded"))
    for verb in (("measure", "texts.txt", "--stat", "entropy"), ("show", "a text"), ("score", "texts.txt")):
        for resume in [[], ["--resume"]] if verb[0] == "measure" else [[]]:
            done = headscope(*verb, "--model", model, "-o", "a.nc", *resume)
            assert done.returncode == 2
            assert "--force" in done.stderr
    merged = headscope("merge", "none.state", "-o", "a.nc")
    assert merged.returncode == 2
    assert "a.nc exists already" in merged.stderr
    assert (paths / "a.nc").read_bytes() == before


def content(path):
    return path.read_bytes() if path.is_file() else {file.name: file.read_bytes() for file in path.rglob("*.*")}

"""The folder: written as a whole or not at all, no foreign folder replaced, and texts stay text."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.head_atlas import folder as folder_module
from headscope.head_atlas.folder import merge_equal
from headscope.viewer.sheet import Scalar
from tests.head_atlas.data import examples, make_atlas, read_files, read_head, read_header
from tests.measuring.data import saved_model
from tests.models import tiny


@pytest.fixture(scope="module")
def model():
    return tiny("bert")


def test_the_folder_holds_a_page_the_result_and_one_file_a_head(model, tmp_path):
    make_atlas(model, tmp_path / "atlas", examples(3))
    names = {f"heads/L{layer}H{head}.js" for layer in range(2) for head in range(4)}
    assert set(read_files(tmp_path / "atlas")) == names | {"index.html", "atlas.json", "atlas.nc"}
    assert [path.name for path in tmp_path.iterdir()] == ["atlas"]


def test_an_atlas_is_replaced_only_when_asked(model, tmp_path):
    make_atlas(model, tmp_path / "atlas", examples(3))
    first = read_files(tmp_path / "atlas")
    with pytest.raises(
        InputError, match=r"atlas exists already\. Give another folder, or replace it with overwrite=Tr"
    ):
        make_atlas(model, tmp_path / "atlas", examples(2))
    assert read_files(tmp_path / "atlas") == first
    make_atlas(model, tmp_path / "atlas", examples(2), overwrite=True)
    assert read_header(tmp_path / "atlas")["examples"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["atlas"]


def test_a_folder_of_something_else_is_never_replaced(model, tmp_path):
    thesis = tmp_path / "atlas" / "thesis.tex"
    thesis.parent.mkdir()
    thesis.write_text("…")
    with pytest.raises(InputError, match=r"atlas is a folder that holds something else than an atlas\. Give another"):
        make_atlas(model, tmp_path / "atlas", examples(2), overwrite=True)
    with pytest.raises(InputError, match=r"thesis.tex is a file, but an atlas is a folder\. Give another path\."):
        make_atlas(model, thesis, examples(2), overwrite=True)
    assert thesis.read_text() == "…"


def test_a_folder_where_the_unfinished_run_would_be_is_never_emptied(model, tmp_path):
    thesis = tmp_path / "atlas.unfinished" / "thesis.tex"
    thesis.parent.mkdir()
    thesis.write_text("…")
    with pytest.raises(
        InputError, match=r"but that holds 'thesis.tex', which no atlas wrote\. Move it, or give another"
    ):
        make_atlas(model, tmp_path / "atlas", examples(2), overwrite=True)
    assert thesis.read_text() == "…"


def test_where_writing_fails_the_older_atlas_stays(model, tmp_path, monkeypatch):
    make_atlas(model, tmp_path / "atlas", examples(3))
    first = read_files(tmp_path / "atlas")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module, "save", fail)
    with pytest.raises(Exception, match="Cannot write .*atlas: the disk is full"):
        make_atlas(model, tmp_path / "atlas", examples(2), overwrite=True)
    assert read_files(tmp_path / "atlas") == first
    monkeypatch.undo()
    make_atlas(model, tmp_path / "atlas", examples(2), overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["atlas"]


def test_the_folder_may_be_given_relative_to_here(model, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    make_atlas(model, ".", examples(2))
    assert {path.name for path in Path("../here").iterdir()} == {"heads", "index.html", "atlas.json", "atlas.nc"}


def test_script_in_ids_tokens_and_labels_is_text(model, tmp_path):
    attack = "</script><script>alert(1)</script><!--"
    make_atlas(
        model, tmp_path / "atlas", [Example(f"{attack}\u2028{index}", f"the cat {attack} sat") for index in "ab"]
    )
    page = (tmp_path / "atlas" / "index.html").read_text(encoding="utf-8")
    assert page.count("<script") == page.count("</script>") == 2
    head = (tmp_path / "atlas" / "heads" / "L0H0.js").read_bytes()
    assert head.isascii()
    assert {example["id"][:-1] for example in read_head(tmp_path / "atlas", "L0H0")["examples"]} == {f"{attack}\u2028"}


def test_the_policy_of_the_page_allows_its_own_files_and_no_connection(model, tmp_path):
    make_atlas(model, tmp_path / "atlas", examples(2))
    page = (tmp_path / "atlas" / "index.html").read_text(encoding="utf-8")
    policy = re.search('Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#x27;", "'")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-\S+' 'self' file:", rules["script-src"])
    assert re.fullmatch(r"'sha256-\S+'", rules["style-src"])
    assert "connect-src" not in rules
    assert "http" not in policy


def test_numbers_are_merged_only_where_every_lens_gives_the_same():
    same, other = np.array([[0.1, np.nan]]), np.array([[0.1, 0.2]])
    tables = {"raw": same, "effective": same.copy(), "norm": other}
    scalars = [Scalar("entropy", "entropy", lens, table) for lens, table in tables.items()]
    assert [scalar.lens for scalar in merge_equal(scalars)] == ["raw", "effective", "norm"]
    shares = [Scalar("share", "share", lens, same.copy()) for lens in tables]
    assert [(scalar.name, scalar.lens) for scalar in merge_equal(shares)] == [("share", None)]
    assert merge_equal(shares[:1]) == shares[:1]


def test_the_shell_writes_an_atlas_and_says_where(tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat sat\na dog ran fast\n")
    folder = saved_model(tmp_path / "model")
    arguments = ["atlas", texts, "--model", folder, "-o", tmp_path / "atlas", "--headvis", tmp_path / "data"]
    result = CliRunner().invoke(app, [*map(str, arguments), "--stat", "entropy", "--lens", "raw"])
    assert result.exit_code == 0, result.output
    assert f"8 heads. Open {tmp_path / 'atlas' / 'index.html'} in a browser." in result.output
    assert f"Wrote {tmp_path / 'data'} in the layout of HeadVis" in result.output
    assert {scalar["name"] for scalar in read_header(tmp_path / "atlas")["scalars"]} == {"activity", "entropy"}

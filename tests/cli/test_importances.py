"""`headscope importances` and `--target` in the shell."""

import pytest
from typer.testing import CliRunner

from headscope.cli.main import app
from headscope.results.store import open_result
from tests.heads import headed_network
from tests.models import tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tuned")
    headed_network("bert", "classification").save_pretrained(path)
    tokenizer().save_pretrained(path)
    return str(path)


def run(*words, code=0):
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "80"})
    assert done.exit_code == code, done.output
    return done.output


def test_a_text_is_shown_with_its_largest_scores_and_saved(folder, tmp_path):
    out = run(
        "importances",
        "the cat sat on a mat .",
        "--model",
        folder,
        "-o",
        str(tmp_path / "words.svg"),
        "-o",
        str(tmp_path / "words.nc"),
    )
    assert "[CLS] the cat sat on a mat . [SEP]" in out
    assert "largest: " in out
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("Wrote"))
    assert open_result(tmp_path / "words.nc").sizes["token"] == 9
    assert (tmp_path / "words.svg").stat().st_size > 1000
    again = run("importances", "the cat", "--model", folder, "-o", str(tmp_path / "words.nc"), code=2)
    assert "exists already" in again


def test_a_file_gives_several_texts(folder, tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("review,stars\nthe cat sat,1\na dog ran fast,0\n")
    columns = ("--text", "review", "--label", "stars")
    out = run("importances", str(path), *columns, "--model", folder, "--target", "label", "--method", "input_gradient")
    assert "0: LABEL_1, score" in out
    assert "1: LABEL_0, score" in out


def test_mistakes_are_named_in_the_words_of_the_shell(folder):
    assert "needs the label of each example" in run(
        "importances", "the cat", "--model", folder, "--target", "label", code=2
    )
    assert "Did you mean 'blank_out'" in run("importances", "the cat", "--model", folder, "--method", "blank", code=2)
    assert "its ending must be one of" in run("importances", "the cat", "--model", folder, "-o", "a.docx", code=2)
    missing = run("show", "the cat", "--model", folder, "--lens", "gradient", code=2)
    assert "Say which: --target predicted" in missing
    unused = run("show", "the cat", "--model", folder, "--target", "predicted", code=2)
    assert "needs no gradient" in unused


def test_gradients_are_shown_and_measured(folder, tmp_path):
    run(
        "show",
        "the cat sat",
        "--model",
        folder,
        "--lens",
        "gradient",
        "--target",
        "class=1",
        "-o",
        str(tmp_path / "a.nc"),
    )
    assert open_result(tmp_path / "a.nc")["lens"].values.tolist() == ["raw", "gradient"]
    path = tmp_path / "texts.csv"
    path.write_text("text,label\nthe cat sat,1\na dog ran fast,0\n")
    run(
        "measure",
        str(path),
        "--model",
        folder,
        "--lens",
        "gradient",
        "--stat",
        "peak",
        "--target",
        "label",
        "-o",
        str(tmp_path / "b.nc"),
    )
    assert '"target": "label"' in open_result(tmp_path / "b.nc").attrs["headscope"]

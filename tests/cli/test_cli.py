"""The shell command."""

import json
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

import headscope as hs
from headscope.cli.main import run

LONG = (
    "Zoe Telford played the police officer girlfriend of Simon, Maggie, who was dumped by him in the final episode of "
    "the first series, after he slept with Jenny, and who is not seen again in any later one of them at all."
)


@pytest.fixture
def headscope(monkeypatch, capfd):
    """Run the command in a terminal of 80 columns; return its exit code and output."""

    def run_command(*words):
        for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["headscope", *map(str, words)])
        with warnings.catch_warnings(), pytest.raises(SystemExit) as stop:
            warnings.simplefilter("default")
            run()
        output = capfd.readouterr()
        return SimpleNamespace(returncode=stop.value.code or 0, stdout=output.out, stderr=output.err)

    return run_command


def test_the_version_is_shown(headscope):
    assert re.fullmatch(r"headscope \d+\.\d+\.\d+(rc\d+)?\n", headscope("--version").stdout)


@pytest.mark.parametrize("verb", [(), ("show",), ("draw",), ("report",), ("list",), ("cite",)])
def test_help_fits_a_terminal(headscope, verb):
    done = headscope(*verb, "--help")
    assert done.returncode == 0
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_every_catalog_is_listed(headscope):
    done = headscope("list")
    assert all(name in done.stdout for name in ("effective", "keys=visible", "head_grid", "xlnet"))
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "matrix" not in headscope("list", "lenses").stdout


def test_a_lens_is_cited(headscope):
    assert "@inproceedings{brunner2020," in headscope("cite", "effective").stdout
    assert "@software{headscope," in headscope("cite").stdout


def test_a_text_is_shown_drawn_saved_and_drawn_again(headscope, tmp_path):
    done = headscope("show", LONG, "-o", tmp_path / "a.pdf", "-o", tmp_path / "a.nc")
    assert done.returncode == 0, done.stderr
    assert "6 layers × 12 heads" in done.stdout
    assert "null dimensions" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if not line.startswith("Wrote"))
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    again = headscope("draw", tmp_path / "a.nc", "head_grid", "--colour", "share", "-o", tmp_path / "b.png")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    names = {"c.svg": ("compare", "--layer", "5", "--head", "2"), "d.svg": ("--layer", "5", "--head", "2")}
    for name, words in names.items():
        drawn = headscope("draw", tmp_path / "a.nc", *words, "-o", tmp_path / name)
        assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "c.svg").read_bytes() == (tmp_path / "d.svg").read_bytes()


def test_a_text_is_shown_in_the_viewer(headscope, tmp_path):
    page, figure = tmp_path / "a.html", tmp_path / "b.html"
    for words in (("-o", page, "--lens", "rollout"), ("-o", figure, "--figure", "compare")):
        assert headscope("show", LONG, *words, "--layer", "5").returncode == 0
    found = re.search(r'id="headscope-header">(.*?)</script>', page.read_text(encoding="utf-8"))
    sheet = json.loads(found[1])["sheets"][0]
    assert [lens["name"] for lens in sheet["lenses"]] == ["raw", "effective", "norm", "rollout"]
    assert sheet["layers"] == [5]
    assert "headscope-header" not in figure.read_text(encoding="utf-8")
    assert headscope("show", "The cat sat down.", "-o", page).returncode == 0  # replaced, as a figure is


def test_a_short_text_has_no_null_space(headscope):
    done = headscope("show", "The cat sat down.")
    assert "all attention reaches" in " ".join(done.stdout.split())
    assert "effective attention is the same as raw attention" in " ".join(done.stdout.split())
    assert "A text of more than 32 tokens shows a difference." in done.stdout
    assert "Add -o page.html" in done.stdout


def test_a_truncated_text_prints_a_note(headscope):
    done = headscope("show", "word " * 600)
    assert done.returncode == 0
    assert "Note: 1 of 1 texts are longer than 512 tokens and were truncated" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("show", ""), 2, "The text is empty"),
        (("show", "the cat", "--lens", "efective"), 2, "No lens is called 'efective'. Did you mean 'effective'?"),
        (
            ("show", "the cat", "--figure", "matrx", "-o", "x.pdf"),
            2,
            "No figure is called 'matrx'. Did you mean 'matrix'?",
        ),
        (("show", "the cat", "--model", "./nowhere"), 2, "There is no folder ./nowhere"),
        (("show", "the cat", "--model", "."), 2, "The folder . is not a model: it holds no config.json"),
        (("show", "the cat", "--layer", "9", "-o", "x.pdf"), 2, "There is no layer 9"),
        (("show", "the cat", "-o", "x.docx"), 2, "Cannot write 'x.docx': its ending must be one of .pdf"),
        (("list", "lens"), 2, "No catalog is called 'lens'. Did you mean 'lenses'?"),
        (("cite", "nothing"), 2, "No thing to cite is called 'nothing'"),
        (("draw", "x.nc", "matrix", "-o", "x.pdf"), 2, "Cannot open x.nc: there is nothing of that name"),
        (("draw", "x.nc", "matrix", "--layer"), 2, "Missing option '--out'"),
    ],
)
def test_invalid_input_prints_one_sentence_and_exits_with_2(headscope, words, code, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = headscope(*words)
    assert done.returncode == code
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_an_error(headscope, tmp_path):
    (tmp_path / "file").write_text("kept")
    done = headscope("show", "the cat", "-o", tmp_path / "file" / "x.pdf")  # a file where a folder would have to be
    assert done.returncode == 1
    assert "Error: Cannot write" in done.stderr
    assert (tmp_path / "file").read_text() == "kept"


# Tests may run as root, who may write nearly everywhere; elsewhere the test above has a path that cannot be written.
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux has /proc, a folder that refuses even root")
def test_a_read_only_folder_is_an_error(headscope):
    done = headscope("show", "the cat", "-o", "/proc/self/x.pdf")
    assert done.returncode == 1
    assert "Error: Cannot write /proc/self/x.pdf" in done.stderr


def test_an_interruption_leaves_no_partial_file(headscope, tmp_path, monkeypatch):
    def stop(self, target, **_):
        target.write(b"half")
        raise KeyboardInterrupt  # what Ctrl-C does to the main thread

    monkeypatch.setattr(Figure, "savefig", stop)
    old = tmp_path / "x.pdf"
    old.write_text("older")
    done = headscope("show", LONG, "-o", old, "--force")
    assert done.returncode == 130
    assert "Stopped. No file was left half-written." in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.pdf"]
    assert old.read_text() == "older"


def test_the_first_example_of_show_has_more_tokens_than_value_dimensions(headscope):
    said = " ".join(headscope("show", "--help").stdout.split())
    text = said.partition('headscope show "')[2].partition('"')[0]
    assert len(hs.load().tokenizer(text)["input_ids"]) > 32

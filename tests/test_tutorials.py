"""The tutorials: what is stored of them, and that they run."""

import base64
import re
import struct

import matplotlib.pyplot as plt
import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tests.test_docs import list_anchors
from tools.run_notebooks import ABSOLUTE, FOLDER, normalize, run

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SAMPLE = ("cues_in_a_dataset", "own_lens_and_statistic")
"""What `make test` runs: the two that take the least time."""

MAX_CELLS, MAX_SIZE, MAX_TOTAL = 40, 500_000, 3_000_000  # cells, bytes, bytes
MIN_PIXELS = 300  # of the width of a picture at twice the resolution of the screen

tutorials = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def list_code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_a_dozen_in_less_than_3_mb():
    assert len(NOTEBOOKS) == 12
    assert sum(path.stat().st_size for path in NOTEBOOKS) < MAX_TOTAL


@tutorials
def test_a_tutorial_is_short_and_small(path):
    assert len(read(path).cells) <= MAX_CELLS
    assert path.stat().st_size < MAX_SIZE


@tutorials
def test_a_tutorial_begins_with_the_question_it_answers(path):
    title, question, *_ = read(path).cells[0].source.split("\n\n")
    assert title.startswith("# ")
    assert re.fullmatch(r"\*\*[A-Z].*\?\*\*", question, re.DOTALL)


@tutorials
def test_the_first_code_installs_only_what_is_missing(path):
    first = list_code(read(path))[0].source
    assert first.startswith("try:\n    import headscope as hs\nexcept ImportError:")
    assert re.search(r"^    %pip install -q \"?headscope", first, re.MULTILINE)


@tutorials
def test_a_tutorial_ends_with_a_picture(path):
    cells = read(path).cells
    assert cells[-1].cell_type == "code"
    (picture,) = [part["data"]["image/png"] for part in cells[-1].outputs if "image/png" in part.get("data", {})]
    assert struct.unpack(">I", base64.b64decode(picture)[16:20])[0] >= MIN_PIXELS


@tutorials
def test_a_stored_tutorial_is_normalized(path):
    stored = read(path)
    assert nbformat.writes(normalize(read(path))) == nbformat.writes(stored)
    assert not ABSOLUTE.search(path.read_text(encoding="utf-8"))
    assert all(cell.outputs or "print(" not in cell.source for cell in list_code(stored))


@tutorials
def test_links_of_a_tutorial_have_a_target(path):
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            for target, section in re.findall(r"\]\(([^)#]*)(#[^)]*)?\)", cell.source):
                page = path.parent / target if target else path
                assert "://" in target or page.exists(), target
                if section and page.suffix == ".md":
                    assert section in list_anchors(page), section


@pytest.mark.parametrize("name", SAMPLE)
def test_the_code_of_a_tutorial_runs_without_a_warning(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    variables = {"__name__": "__main__"}
    for cell in list_code(read(FOLDER / f"{name}.ipynb")):
        exec(compile(TransformerManager().transform_cell(cell.source), name, "exec"), variables)
    plt.close("all")


@pytest.mark.soak
@pytest.mark.timeout(900)
@tutorials
def test_a_tutorial_runs_in_a_kernel_and_shows_what_is_stored(path):
    ran, stored = run(path), read(path)
    for cell, before in zip(list_code(ran), list_code(stored), strict=True):
        assert [list_kinds(part) for part in cell.outputs] == [list_kinds(part) for part in before.outputs]


def list_kinds(part):
    return part.get("name") or sorted(part["data"])


def make_notebook(*outputs):
    cell = nbformat.v4.new_code_cell("1", outputs=list(outputs), metadata={"tags": ["x"]}, execution_count=7)
    return nbformat.v4.new_notebook(cells=[cell])


def test_progress_counts_and_metadata_are_not_stored():
    bar = nbformat.v4.new_output("display_data", {"text/html": "<progress value=4>"})
    said = [nbformat.v4.new_output("stream", name="stdout", text=text) for text in ("a", "b")]
    (cell,) = normalize(make_notebook(said[0], bar, said[1])).cells
    assert (cell.execution_count, cell.metadata, [part["text"] for part in cell.outputs]) == (1, {}, ["ab"])


@pytest.mark.parametrize(
    "output",
    [
        nbformat.v4.new_output("stream", name="stderr", text="UserWarning: no"),
        nbformat.v4.new_output("stream", name="stdout", text="saved /home/me/heads.nc"),
        nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[]),
        nbformat.v4.new_output("display_data", {"application/vnd.jupyter.widget-view+json": {}}),
    ],
    ids=["warning", "path", "error", "widget"],
)
def test_what_must_not_be_stored_is_an_error(output):
    with pytest.raises(ValueError, match="Code cell 1"):
        normalize(make_notebook(output))

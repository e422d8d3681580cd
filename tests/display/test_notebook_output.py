"""Figures and progress as the kernel of a notebook sends them, without a front end."""

import re

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = """
import headscope as hs
trace = hs.Trace.of([__import__("torch").eye(3)[None, None]], ["a", "b", "c"], visible="all")
maps = hs.view(trace, "raw")
hs.draw(maps, "matrix")
#
import matplotlib.pyplot as plt
hs.draw(maps, "matrix")
#
figure, ax = plt.subplots()
hs.draw(maps, "matrix", ax=ax)
#
hs.draw([maps, hs.view(trace, "raw")], "arcs", ax=plt.subplots()[1])
#
figure = hs.draw(maps, "matrix")
#
hs.show(maps, "matrix", size=12)
#
hs.show(__import__("xarray").Dataset({"entropy": (("layer", "head"), [[0.5]])}, {"layer": [0], "head": [0]}))
#
import sys
sys.modules["ipywidgets"] = None
from headscope.core.progress import show_progress
with show_progress(4, unit="steps") as advance:
    advance(4)
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each cell displays."""
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in CELLS.split("#\n")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
    return [[part.data for part in cell.outputs if "data" in part] for cell in notebook.cells]


def count_images(parts):
    return sum(any(kind.startswith("image/") for kind in data) for data in parts)


@pytest.mark.parametrize("cell", [0, 1, 2, 3])
def test_a_figure_is_shown_once(outputs, cell):
    assert count_images(outputs[cell]) == 1


def test_a_figure_with_a_name_is_not_shown(outputs):
    assert outputs[4] == []


def test_show_embeds_an_image_that_fits_its_cell(outputs):
    (data,) = outputs[5]
    assert re.search(r'<img src="data:image/svg\+xml,[^"<>#]+" alt=', data["text/html"])
    assert "max-width: 100%; height: auto" in data["text/html"]


def test_show_says_what_a_result_is(outputs):
    (data,) = outputs[6]
    assert "What was measured for every head: entropy." in data["text/html"]
    assert data["text/html"].count("<img ") == 1


def test_progress_needs_no_widgets_and_is_readable_when_saved(outputs):
    (data,) = outputs[7]
    assert '<progress value="4" max="4">' in data["text/html"]
    assert data["text/plain"].startswith("4 of 4 steps in 0 s")

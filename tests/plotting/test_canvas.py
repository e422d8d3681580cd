"""When figures are laid out."""

from contextlib import contextmanager

import pytest
from matplotlib.layout_engine import ConstrainedLayoutEngine

from headscope.plotting import canvas, theme
from headscope.plotting.draw import draw
from headscope.plotting.export import render
from tests.figures.data import data_for
from tests.figures.layout import find_faults


@contextmanager
def count_layouts():
    """Collect the figures that matplotlib lays out in this block, one for each time."""
    laid_out, execute = [], ConstrainedLayoutEngine.execute

    def record(self, fig):
        laid_out.append(fig)
        execute(self, fig)

    ConstrainedLayoutEngine.execute = record
    try:
        yield laid_out
    finally:
        ConstrainedLayoutEngine.execute = execute


@pytest.mark.parametrize("name", ["bars", "curve", "pruning_curve", "stacked_bars"])
def test_a_figure_whose_axes_may_have_any_shape_is_laid_out_once(name):
    with count_layouts() as laid_out:
        draw(data_for(name), name)
    assert len(laid_out) == 1


@pytest.mark.parametrize("name", ["matrix", "heads", "bars"])
@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_saving_a_drawn_figure_does_not_lay_it_out_again(name, kind):
    figure = draw(data_for(name), name)
    with count_layouts() as laid_out:
        render(figure, kind)
        render(figure, kind)
        figure._repr_png_()
    assert laid_out == []


def test_a_figure_that_was_changed_is_laid_out_again_when_it_is_saved():
    figure = draw(data_for("bars"), "bars")
    figure.axes[0].set_ylabel("a label\nof several\nlines")
    assert find_faults(figure, "svg") == []
    figure.set_size_inches(6, 2)
    with count_layouts() as laid_out:
        render(figure, "svg")
    assert laid_out == [figure]


def test_a_figure_has_the_same_layout_in_every_kind_of_file():
    figure = draw(data_for("matrix"), "matrix")
    before = [ax.get_position().bounds for ax in figure.axes]
    for kind in ("svg", "pdf", "png"):
        render(figure, kind)
        assert [ax.get_position().bounds for ax in figure.axes] == before


def test_layouts_that_alternate_are_not_repeated_for_ever(monkeypatch):
    ends = iter([0.1, 0.2, 0.1, 0.2, 0.1, 0.2])
    monkeypatch.setattr(
        ConstrainedLayoutEngine, "execute", lambda self, fig: fig.axes[0].set_position((next(ends), 0, 0.5, 0.5))
    )
    figure = canvas.new_figure((3.0, 3.0))
    figure.subplots().set_aspect("equal")
    canvas.lay_out(figure)
    assert next(ends) == 0.2  # three rounds


def test_a_title_that_is_longer_than_its_axes_is_moved_into_a_saved_figure():
    with theme.apply():
        figure = canvas.new_figure((4.0, 2.0))
        figure.subplots(1, 4)[-1].set_title("all-MiniLM-L6-v2-again", fontsize=10)
    assert find_faults(figure, "svg") == []

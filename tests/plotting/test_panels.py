"""Grids of panels, and what is around them."""

import numpy as np
import pytest

from headscope.plotting import panels, theme
from headscope.plotting.head_cells import value_scale
from tests.figures.layout import find_faults


def test_panels_are_in_rows_of_which_the_last_may_be_shorter():
    grid = panels.new_grid((4.0, 3.0), 5, 3)
    assert [len(row) for row in grid.rows] == [3, 2]
    assert grid.panels == grid.figure.axes


def test_a_shared_axis_is_labelled_below_the_lowest_panel_of_each_column():
    grid = panels.new_grid((4.0, 3.0), 5, 3, share_x=True)
    labelled = [panel.xaxis.get_tick_params()["labelbottom"] for panel in grid.panels]
    assert labelled == [False, False, True, True, True]


@pytest.mark.parametrize("share_y", ["row", "all"])
def test_panels_that_share_an_axis_are_labelled_on_the_left(share_y):
    grid = panels.new_grid((4.0, 3.0), 4, 2, share_y=share_y)
    grid.panels[0].set_ylim(0, 7)
    assert grid.panels[1].get_ylim() == (0, 7)
    assert (grid.panels[2].get_ylim() == (0, 7)) is (share_y == "all")


@theme.apply()
def draw_everything(count, columns, width):
    """Draw a grid with all that a grid may have but a title, which would be where the legend is."""
    grid = panels.new_grid((width, 1.2 + 1.5 * -(-count // columns)), count, columns, share_y="row")
    for panel in grid.panels:
        panel.plot([0, 1], label="a series of a long name")
        panel.plot([1, 0], label="another series")
    grid.name_panels([f"a title that is too long for panel {number}" for number in range(count)])
    grid.name_rows(["a label of the row"] * len(grid.rows))
    grid.add_legend()
    grid.figure.supxlabel("a label")
    return grid.figure


@pytest.mark.parametrize("width", [theme.COLUMN, theme.PAGE[0]])
@pytest.mark.parametrize(("count", "columns"), [(1, 1), (3, 3), (5, 2)])
def test_titles_labels_and_legend_neither_overlap_nor_leave_the_figure(count, columns, width):
    assert find_faults(draw_everything(count, columns, width)) == []


@theme.apply()
def draw_cells(shape, aspect):
    grid = panels.new_grid((theme.PAGE[0], 3.0), 4, 2)
    table = np.random.default_rng(0).random(shape)
    for panel in grid.panels:
        panel.imshow(table, aspect=aspect)
    grid.name_panels(["one", "two"])
    grid.add_color_bar(value_scale(table), "a quantity")
    grid.fit_cells(shape, largest=0.24)
    return grid


@pytest.mark.parametrize("aspect", ["auto", "equal"])
@pytest.mark.parametrize("shape", [(4, 40), (12, 6)])
def test_a_figure_is_as_high_as_square_cells_need(shape, aspect):
    grid = draw_cells(shape, aspect)
    assert find_faults(grid.figure) == []
    width, height = grid.figure.get_size_inches()
    box = grid.panels[0].get_position()
    cell = min(0.24, width * box.width / shape[1])
    assert height * box.height == pytest.approx(shape[0] * cell, abs=0.06)  # inches


@theme.apply()
def test_a_title_and_a_note_are_wrapped_to_the_width_of_the_figure():
    grid = panels.new_grid((3.0, 2.0), 1, 1)
    grid.write(title="a title " * 10, note="a note " * 20)
    assert "\n" in grid.figure.get_suptitle()
    assert "\n" in grid.figure.get_supxlabel()
    assert find_faults(grid.figure) == []

"""A quantity of every task of a study."""

import pytest

from headscope.core.errors import InputError, UnknownName
from headscope.plotting.draw import draw
from tests.figures.data import studied


def test_every_task_has_a_row_and_every_lens_its_marks():
    (ax,) = draw(studied(), "tasks").axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["RTE", "MRPC"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["raw", "effective"]
    assert ax.get_xlabel().splitlines()[0] == "share"


def test_seeds_are_combined_and_named():
    (ax,) = draw(studied(seeds=3), "tasks", variable="score").axes
    assert "it holds those of all 3 seeds" in " ".join(ax.get_xlabel().split())
    assert ax.get_legend() is None


def test_the_first_quantity_that_can_be_told_apart_is_drawn():
    lenses = [f"lens {number}" for number in range(8)]
    (ax,) = draw(studied(lenses=lenses), "tasks").axes
    assert ax.get_xlabel().splitlines()[0] == "score"
    with pytest.raises(InputError, match="'share' has 8 values for each task, but only 7 can be told apart in one fig"):
        draw(studied(lenses=lenses), "tasks", variable="share")


def test_an_unknown_quantity_is_an_error():
    with pytest.raises(UnknownName, match="No quantity with an interval in this study is called 'n'."):
        draw(studied(), "tasks", variable="n")
    with pytest.raises(InputError, match="There is no quantity of tasks with an interval in this data. Run a study"):
        draw(studied()[["n"]], "tasks")

import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.plotting.draw import draw
from tests.figures.data import typical


def test_each_class_has_a_column_of_maps_the_most_confident_first():
    panels = draw(typical(("vertical", "vertical_diagonal")), "typical_maps").axes
    assert [panel.get_title() for panel in panels] == ["vertical", "vertical + diagonal", "", ""]
    assert panels[0].get_xlabel() == "bert (rte) L0H0\nraw, 8 tokens\nconfidence > 0.99"
    assert panels[1].get_xlabel().endswith("confidence 0.67")


def test_rows_of_a_map_sum_to_one_and_padding_is_removed():
    long, _, short, _ = (panel.images[0].get_array() for panel in draw(typical(("a", "b")), "typical_maps").axes)
    assert long.shape == (8, 8)
    assert short.shape == (6, 6)
    assert np.allclose(short.sum(-1), 1)


def test_the_number_of_rows_can_be_limited():
    assert len(draw(typical(), "typical_maps", rows=1).axes) == 3
    with pytest.raises(InputError, match="The parameter 'rows' of 'typical_maps' must be at least 1, but got 0"):
        draw(typical(), "typical_maps", rows=0)


def test_a_class_with_fewer_maps_has_empty_panels():
    data = typical(("a", "b")).isel(map=[0, 1, 2])
    assert [panel.axison for panel in draw(data, "typical_maps").axes] == [True, True, True, False]

import numpy as np
import pytest
import xarray as xr

from headscope.core.document import Picture, Table
from headscope.core.errors import InputError
from headscope.core.kind import find_kind
from headscope.core.provenance import stamp
from headscope.plotting.draw import draw
from headscope.reporting.report import build_document
from tests.figures.data import typical
from tests.reporting.test_report import parts


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


def test_a_report_draws_and_lists_them():
    maps = {"map": ["m1", "m2"], "label": ("map", ["vertical", "block"]), "confidence": ("map", [0.9, 0.8])}
    weights = np.full((2, 5, 5), 0.2)
    weights[1, 4:] = weights[1, :, 4:] = np.nan  # padding
    data = xr.Dataset({"weights": (("map", "query", "key"), weights)}, {**maps, "source": ("map", ["L0H1", "L1H0"])})
    document = build_document({"typical": stamp(data, command="headscope patterns typical")})
    assert (document.title, document.lead) == ("Typical attention maps", "2 labelled maps, typical of their classes.")
    assert set(parts(document, Picture)) == {"typical_maps"}
    assert parts(document, Table)["typical"].frame.loc["m2"].tolist() == ["block", 0.8, "L1H0"]
    assert "kovaleva2019" in document.references


def test_they_are_drawn_where_no_figure_is_named():
    data = xr.Dataset({"weights": ("map", [0])})
    assert find_kind(data).figure(data) == "typical_maps"

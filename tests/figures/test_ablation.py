"""Figures and reports of ablations."""

import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.core.kind import find_kind
from headscope.plotting.draw import draw
from headscope.reporting.report import report
from headscope.results.select import stack_sets
from headscope.results.store import save
from tests.figures.data import ablation, dataset
from tests.figures.layout import hollow_points


def test_single_heads_are_a_grid_and_other_sets_are_rows():
    assert find_kind(ablation("layer", "head")).figure(ablation("layer", "head")) == "heads"
    assert (
        find_kind(ablation("layer")).figure(ablation("layer"))
        == find_kind(ablation("heads")).figure(ablation("heads"))
        == "ablation"
    )
    grid = draw(ablation("layer", "head"))
    assert grid.get_suptitle().replace("\n", " ") == "Change of accuracy without each head · zero_heads"
    assert "n = 408 examples · bold: p < 0.05 after Holm correction" in grid.get_supxlabel().replace("\n", " ")


def test_rows_have_names_values_intervals_and_filled_marks_where_significant():
    data = ablation("heads", seed=3)
    data["change_significant"][:] = [1, 0, 0]
    ax = draw(data).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["L0H1+L1H2", "L0", "all-L2"]
    points, _, (bars,) = ax.containers[0]
    np.testing.assert_allclose([path.vertices[0, 0] for path in bars.get_paths()], data["change_low"])
    np.testing.assert_allclose(points.get_xdata(), data["change"])
    np.testing.assert_allclose(hollow_points(ax), data["change"][1:])


def test_sets_are_stacked_under_their_names_without_missing_heads():
    data = ablation("layer", "head")
    data["change"][1, 3] = np.nan
    names = stack_sets(data)["set"].values.tolist()
    assert names == [f"L{layer}H{head}" for layer in range(3) for head in range(4) if (layer, head) != (1, 3)]


def test_other_results_are_refused():
    with pytest.raises(InputError, match=r"This is no ablation. Compute one: hs.ablate\(model, data\)"):
        draw(dataset(), "ablation")


def test_a_report_shows_the_figure_and_the_largest_changes(tmp_path):
    data = ablation("layer", "head")
    page = report(data, tmp_path / "report").read_text(encoding="utf-8")
    sure = int(data["change_significant"].sum())
    assert "<h1>Ablation of tuned</h1>" in page
    assert f"The accuracy of the whole model is 0.9 [0.88, 0.92]. {sure} of 12 changes are significant" in page
    assert "michel2019" in page or "Michel" in page
    largest = stack_sets(data)
    name = str(largest["set"].values[np.abs(largest["change"].values).argmax()])
    assert page.index(name, page.index("Changes of accuracy, with paired intervals")) > 0


@pytest.mark.parametrize("layers", [1, 2])
def test_the_heads_of_a_tiny_model_have_room(layers, tmp_path):
    data = ablation("layer", "head").isel(layer=slice(layers))
    save(draw(data), tmp_path / "heads.pdf")  # a layout without room would be a warning

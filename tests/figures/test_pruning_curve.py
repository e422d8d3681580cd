"""The figure `pruning_curve`."""

import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.plotting.draw import draw
from headscope.reporting.report import report
from tests.figures.data import dataset, pruning


def lines(figure, marker):
    return [line for line in figure.axes[0].lines if line.get_marker() == marker]


def test_it_is_the_default_figure_of_a_pruning_curve():
    data = pruning("importance")
    figure = draw(data)
    (line,) = lines(figure, "o")
    np.testing.assert_allclose(line.get_ydata(), data["score"].values)
    np.testing.assert_allclose(line.get_xdata(), data["pruned"].values)
    band = figure.axes[0].collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(float(data["score_low"].min()))
    assert figure.axes[0].get_title("left") == "accuracy after pruning · self"
    assert "95 % interval over examples. n = 408 examples." in figure.axes[0].get_xlabel().replace("\n", " ")


def test_random_orders_are_thin_lines_around_their_mean():
    data = pruning("random", seeds=4)
    figure = draw(data, variable="change")
    (mean,) = lines(figure, "o")
    np.testing.assert_allclose(mean.get_ydata(), data["change"].mean("seed").values)
    thin = [line for line in figure.axes[0].lines if line.get_linewidth() == 0.5]
    assert len(thin) == 4
    assert not figure.axes[0].collections  # an interval over examples is that of one order


def test_several_curves_are_drawn_together():
    figure = draw([pruning("importance"), pruning("random", end=70)])
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend == ["importance", "random"]
    assert len(lines(figure, "o")[0].get_ydata()) == 11
    named = draw({"MRPC": pruning("random"), "RTE": pruning("random", seeds=2)})
    assert [text.get_text() for text in named.axes[0].get_legend().get_texts()] == ["MRPC", "RTE"]
    with pytest.raises(InputError, match="Several of these curves have the same name"):
        draw([pruning("random"), pruning("random")])
    other = pruning("importance")
    other["score"].attrs["long_name"] = "pearson"
    with pytest.raises(InputError, match="curves are of different metrics"):
        draw({"MRPC": pruning("random"), "STS-B": other})


def test_other_results_are_refused():
    with pytest.raises(InputError, match=r"This is no pruning curve. Compute one: hs.pruning_curve\(model, data\)"):
        draw(dataset(), "pruning_curve")


def test_reports_show_the_curve_and_its_numbers(tmp_path):
    page = report(pruning("importance"), tmp_path / "report").read_text(encoding="utf-8")
    assert "Score with fewer and fewer heads, the least important first" in page
    assert "the heads that it prunes" in page
    assert "sixteen heads really better than one?" in page.lower()
    table = (tmp_path / "report" / "tables" / "pruning_steps.csv").read_text(encoding="utf-8").splitlines()
    assert table[2].startswith("10 %,1,")
    assert table[2].endswith(",L0H0")
    assert table[-1].endswith(",L0H9")
    random = report(pruning("random"), tmp_path / "random").read_text(encoding="utf-8")
    assert "in random orders" in random

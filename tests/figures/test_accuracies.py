"""Figures, tables and reports of probes."""

import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.core.kind import find_kind
from headscope.plotting.draw import draw
from headscope.reporting.report import report
from headscope.results.probe_table import make_probe_table
from tests.figures.data import dataset, probed
from tests.figures.layout import hollow_points


def test_a_row_has_the_group_its_head_all_predictors_and_an_interval():
    data = probed()
    assert find_kind(data).figure(data) == "accuracies"
    ax = draw(data).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["all  L0H0 ←", "nsubj  L1H1 →", "obj  L2H2 ←"]
    first = data.sel(task="dependency", predictor="head")
    points, _, (bars,) = ax.containers[0]
    np.testing.assert_allclose([path.vertices[0, 0] for path in bars.get_paths()], first["accuracy_low"])
    np.testing.assert_allclose(points.get_xdata(), first["accuracy"])
    np.testing.assert_allclose(hollow_points(ax), first["accuracy"][[1]])
    baselines = [line.get_xdata() for line in ax.lines if line.get_markerfacecolor() == "none"]
    np.testing.assert_allclose(baselines, data["accuracy"].sel(task="dependency").values[:0:-1])
    assert ax.get_title(loc="left") == "dependency · raw"
    assert "n = 120 words in 6 documents" in ax.get_xlabel().replace("\n", " ")
    mentions = draw(data.rename(relation="kind")).axes[0]
    assert "n = 120 mentions in 6 documents" in mentions.get_xlabel().replace("\n", " ")


def test_the_control_task_is_drawn_by_name():
    ax = draw(probed(), task="control").axes[0]
    assert ax.get_title(loc="left").replace("\n", " ") == "dependency · raw · control task"
    with pytest.raises(InputError, match="The probe has no task 'parsing'. Its tasks: dependency, control"):
        draw(probed(), task="parsing")


def test_a_loss_is_not_filled_however_small_its_p():
    data = probed()
    data["gain"] = -data["gain"]
    assert len(hollow_points(draw(data).axes[0])) == 3


def test_the_table_has_counts_heads_offsets_accuracies_gains_and_p():
    data = probed()
    table = make_probe_table(data)
    start = ["n", "best head", "head", "head_low", "head_high", "offset", "fixed offset", "right branching"]
    assert list(table.columns) == [*start, "gain", "gain_low", "gain_high", "p"]
    assert table.index.name == "relation"
    row, cell = table.loc["obj"], data.sel(task="dependency", relation="obj")
    assert row["best head"] == "L2H2 ←"
    assert row["offset"] == 0
    assert row["head"] == float(cell["accuracy"].sel(predictor="head"))
    assert row["p"] == 0.01


def test_other_results_are_refused():
    with pytest.raises(InputError, match="This is no result of one probe"):
        draw(dataset(), "accuracies")


def test_a_report_has_a_table_and_a_figure_of_every_task(tmp_path):
    page = report(probed(), tmp_path / "report").read_text(encoding="utf-8")
    assert "What the attention of tuned knows" in page
    assert "The accuracy of the head through the lens raw is" in page
    assert "fitted to 7 other documents" in page
    assert page.count("Accuracy by relation, with intervals over documents") == 2
    assert "Clark" in page

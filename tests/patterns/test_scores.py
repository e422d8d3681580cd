import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix, f1_score, precision_recall_fscore_support

from headscope.patterns.train import scores

RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(0, 5, 200)
SAID = np.where(RANDOM.random(200) < 0.7, LABELS, RANDOM.integers(0, 5, 200))


def test_scores_are_those_of_scikit_learn():
    table = scores.confusion(LABELS, SAID, (5, 5))
    assert np.array_equal(table, confusion_matrix(LABELS, SAID))
    for found, wanted in zip(
        scores.precision_recall_f1(table), precision_recall_fscore_support(LABELS, SAID), strict=False
    ):
        assert found == pytest.approx(wanted)
    assert float(scores.macro_f1(table)) == pytest.approx(f1_score(LABELS, SAID, average="macro"))
    assert float(scores.kappa(table)) == pytest.approx(cohen_kappa_score(LABELS, SAID))


def test_unsure_is_an_error_of_its_label_and_of_no_other_class():
    table = scores.confusion(np.array([0, 0, 1, 1]), np.array([0, 2, 1, 1]), (2, 3))
    precision, recall, _ = scores.precision_recall_f1(table)
    assert precision.tolist() == [1, 1]
    assert recall.tolist() == [0.5, 1]


def test_a_class_without_labels_does_not_count():
    assert float(scores.macro_f1(np.array([[4.0, 0], [0, 0]]))) == 1
    assert np.isnan(scores.macro_f1(np.zeros((2, 2))))


def test_whole_clusters_are_drawn():
    drawn = scores.draws(["a", "a", "b", "c"], seed=0, many=50)
    assert (drawn[:, 0] == drawn[:, 1]).all()
    assert (drawn[:, [0, 2, 3]].sum(1) == 3).all()


def test_weights_count_maps_several_times():
    weights = np.array([[2.0, 0, 1], [1, 1, 1]])
    found = scores.confusion(np.array([0, 0, 1]), np.array([0, 1, 1]), (2, 2), weights)
    assert found.tolist() == [[[2, 0], [0, 1]], [[1, 1], [0, 1]]]


def test_of_several_ways_to_draw_the_widest_interval_is_taken():
    narrow, wide = np.linspace(0.4, 0.6, 101), np.linspace(0.2, 0.7, 101)
    assert scores.interval([narrow, wide]) == pytest.approx((0.2125, 0.6875))


def test_a_calibrated_confidence_has_no_error():
    confidence = np.repeat([0.25, 0.75], 400)
    right = np.tile([True, False, False, False], 100).tolist() + np.tile([True, True, True, False], 100).tolist()
    assert scores.calibration_error(confidence, np.array(right)) == pytest.approx(0)
    assert scores.calibration_error(np.ones(10), np.zeros(10, dtype=bool)) == 1
    said, true, counts = scores.reliability(confidence, np.array(right))
    assert counts.tolist() == [0, 0, 400, 0, 0, 0, 0, 400, 0, 0]
    assert (said[2], true[2]) == (0.25, 0.25)
    assert np.isnan(said[0])

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix, f1_score, precision_recall_fscore_support

from headscope_patterns.train import metrics

RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(0, 5, 200)
PREDICTED = np.where(RANDOM.random(200) < 0.7, LABELS, RANDOM.integers(0, 5, 200))


def test_metrics_equal_those_of_scikit_learn():
    confusion = metrics.confusion_matrix(LABELS, PREDICTED, (5, 5))
    assert np.array_equal(confusion, confusion_matrix(LABELS, PREDICTED))
    *expected, _ = precision_recall_fscore_support(LABELS, PREDICTED)
    for values, reference in zip(metrics.precision_recall_f1(confusion), expected, strict=True):
        assert values == pytest.approx(reference)
    assert float(metrics.macro_f1(confusion)) == pytest.approx(f1_score(LABELS, PREDICTED, average="macro"))
    assert float(metrics.cohen_kappa(confusion)) == pytest.approx(cohen_kappa_score(LABELS, PREDICTED))


def test_unsure_is_an_error_of_its_label_and_of_no_other_class():
    confusion = metrics.confusion_matrix(np.array([0, 0, 1, 1]), np.array([0, 2, 1, 1]), (2, 3))
    precision, recall, _ = metrics.precision_recall_f1(confusion)
    assert precision.tolist() == [1, 1]
    assert recall.tolist() == [0.5, 1]


def test_a_class_without_labels_does_not_count():
    assert float(metrics.macro_f1(np.array([[4.0, 0], [0, 0]]))) == 1
    assert np.isnan(metrics.macro_f1(np.zeros((2, 2))))


def test_whole_clusters_are_resampled():
    counts = metrics.resample_clusters(["a", "a", "b", "c"], draws=50)
    assert (counts[:, 0] == counts[:, 1]).all()
    assert (counts[:, [0, 2, 3]].sum(1) == 3).all()


def test_sample_weights_count_maps_several_times():
    weight = np.array([[2.0, 0, 1], [1, 1, 1]])
    confusion = metrics.confusion_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), (2, 2), weight)
    assert confusion.tolist() == [[[2, 0], [0, 1]], [[1, 1], [0, 1]]]


def test_the_widest_of_several_intervals_is_returned():
    narrow, wide = np.linspace(0.4, 0.6, 101), np.linspace(0.2, 0.7, 101)
    assert metrics.widest_interval([narrow, wide]) == pytest.approx((0.2125, 0.6875))


def test_a_calibrated_confidence_has_no_calibration_error():
    confidence = np.repeat([0.25, 0.75], 400)
    right = np.concatenate([np.tile([True, False, False, False], 100), np.tile([True, True, True, False], 100)])
    assert metrics.calibration_error(confidence, right) == pytest.approx(0)
    assert metrics.calibration_error(np.ones(10), np.zeros(10, dtype=bool)) == 1
    mean, accuracy, counts = metrics.calibration_curve(confidence, right)
    assert counts.tolist() == [0, 0, 400, 0, 0, 0, 0, 400, 0, 0]
    assert (mean[2], accuracy[2]) == (0.25, 0.25)
    assert np.isnan(mean[0])

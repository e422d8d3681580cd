import numpy as np
import pytest

from headscope_patterns.train.cross_validate import fit_temperature, map_parallel, softmax


def test_processes_return_results_in_order():
    jobs = [(7, 2), (9, 4), (20, 6)]
    expected = [(3, 1), (2, 1), (3, 2)]
    assert list(map_parallel(divmod, jobs)) == list(map_parallel(divmod, jobs, in_process=True)) == expected


def test_a_temperature_reduces_confidence_to_the_accuracy():
    random = np.random.default_rng(0)
    targets = random.integers(0, 5, 500)
    right = random.random(500) < 0.6
    predicted = np.where(right, targets, (targets + 1) % 5)
    logits = 20.0 * np.eye(5)[predicted]
    temperature = fit_temperature(logits, targets)
    assert temperature > 5
    assert softmax(logits, temperature).max(-1).mean() == pytest.approx(right.mean(), abs=0.02)

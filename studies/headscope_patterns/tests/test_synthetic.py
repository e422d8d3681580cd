import numpy as np

from headscope.patterns import CLASSES
from headscope_patterns.train.synthetic import make_synthetic_maps


def test_synthetic_maps_are_reproducible_and_cycle_through_the_classes():
    first, second = make_synthetic_maps(10, seed=4), make_synthetic_maps(10, seed=4)
    assert [item.label for item in first] == [*CLASSES, *CLASSES]
    assert all(np.array_equal(a.weights, b.weights) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(make_synthetic_maps(1, seed=5)[0].weights, first[0].weights)

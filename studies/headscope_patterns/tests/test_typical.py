import numpy as np
import pytest
import xarray as xr

from headscope.core.errors import InputError
from headscope.patterns import CLASSES
from headscope_patterns.labels.labelled_maps import LabelledMaps, PatternMap, Source
from headscope_patterns.labels.typical import select_typical

LENGTHS = (4, 5, 6)
HEADS = (0, 0, 1)
CONFIDENCE = (0.9, 0.8, 0.7)


def make_labelled():
    """Return three maps of each class: two of one head and one of another, with falling confidence."""
    sources = [
        Source(f"{label}-{i}", "random", "raw", "hub/model", "", 0, HEADS[i], "data", "t", ("a",) * n, (0,) * n)
        for label in CLASSES
        for i, n in enumerate(LENGTHS)
    ]
    return LabelledMaps(tuple(PatternMap(source, np.eye(len(source.tokens))) for source in sources), {})


def make_evaluation(labelled):
    labels = np.repeat(CLASSES, len(LENGTHS))
    probability = (labels[:, None] == np.array(CLASSES)) * np.tile(CONFIDENCE, len(CLASSES))[:, None]
    return xr.Dataset(
        {"label": ("map", labels), "probability": (("map", "pattern"), probability)},
        coords={"map": [item.source.id for item in labelled.maps], "pattern": list(CLASSES)},
    )


def test_the_most_confident_maps_of_distinct_heads_are_selected():
    labelled = make_labelled()
    typical = select_typical(labelled, make_evaluation(labelled), count=2)
    assert typical["map"].values.tolist() == [f"{label}-{i}" for label in CLASSES for i in (0, 2)]
    assert typical["confidence"].values.tolist() == [0.9, 0.7] * len(CLASSES)
    assert typical["source"].values[0] == "model L0H0, raw, 4 tokens"


def test_shorter_maps_are_padded_with_nan():
    labelled = make_labelled()
    weights = select_typical(labelled, make_evaluation(labelled), count=1)["weights"]
    assert weights.sizes == {"map": len(CLASSES), "query": 4, "key": 4}
    weights = select_typical(labelled, make_evaluation(labelled), count=2)["weights"].values
    assert np.isfinite(weights).sum((1, 2)).tolist() == [16, 36] * len(CLASSES)


def test_an_evaluation_of_other_maps_raises():
    labelled = make_labelled()
    evaluation = make_evaluation(labelled).assign_coords(map=[f"x{i}" for i in range(len(labelled.maps))])
    with pytest.raises(InputError, match="This evaluation is of other maps: 'x0' is not among the 15 labelled ones"):
        select_typical(labelled, evaluation)

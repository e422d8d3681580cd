"""How well classifiers of patterns do, against each other and against two passes of labels, as one Dataset."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.classify import UNSURE
from headscope.patterns.labels.ceiling import ceiling
from headscope.patterns.labels.labelled import Labelled, PatternMap, Source
from headscope.patterns.train import scores
from headscope.patterns.train.folds import head_names, text_names
from headscope.patterns.train.held_out import HeldOut
from headscope.results.stamp import stamp

Array = np.ndarray[Any, np.dtype[Any]]
PREDICTED = (*CLASSES, UNSURE)
LENGTHS = {"1–40 tokens": (1, 40), "41–80 tokens": (41, 80), "over 80 tokens": (81, np.inf)}
RIVALS = ("rules", "both", "nearest", "majority")


def evaluation(
    labelled: Labelled, maps: Sequence[PatternMap], which: str, found: HeldOut, facts: Mapping[str, Any]
) -> xr.Dataset:
    """Everything that follows from what classifiers say of maps that they were not trained on.

    F1, precision and recall by classifier, subset and class, with 95 % intervals of whole heads or whole texts drawn
    again, whichever is wider; confusions; calibration; what the cnn gains on its rivals; and how far two passes agree.
    """
    sources = [each.source for each in maps]
    drawn = [scores.draws(names(sources), seed=0) for names in (head_names, text_names)]
    predicted = {name: each.argmax(-1) for name, each in found.probabilities.items()}
    whole = xr.merge(
        [
            xr.Dataset({"temperature": found.temperature}),
            _maps(sources, found),
            _by_subset(_subsets(sources), found, predicted, drawn),
            _calibration(found, predicted),
            _gains(found.places, predicted, drawn),
            ceiling(labelled, sources, which, predicted["cnn"], drawn),
        ]
    )
    kept = [len(each.train) for each in found.folds]
    apart = [len(maps) - len(each.test) - len(each.train) for each in found.folds]
    split = {"trainings": len(kept), "training_maps_least": min(kept), "dropped_maps_mean": float(np.mean(apart))}
    return stamp(whole, command="headscope patterns evaluate", **facts, **split)


def _maps(sources: Sequence[Source], found: HeldOut) -> xr.Dataset:
    """Every map with its label and what the cnn and the other classifiers say."""
    classes = np.array(PREDICTED, dtype=object)
    said = {name: classes[each.argmax(-1)] for name, each in found.probabilities.items()}
    return xr.Dataset(
        {
            "label": ("map", np.array(CLASSES, dtype=object)[found.places]),
            "said": (("classifier", "map"), np.stack(list(said.values()))),
            "probability": (("map", "pattern"), found.probabilities["cnn"]),
        },
        coords={
            "classifier": np.array(list(said), dtype=object),
            "pattern": np.array(CLASSES, dtype=object),
            "map": np.array([each.id for each in sources], dtype=object),
        },
    )


def _subsets(sources: Sequence[Source]) -> dict[str, Array]:
    """All maps, and parts of them that are reported apart; those without any map are left out."""
    parts = {"all": [True for _ in sources]}
    parts |= {each: [one.part == each for one in sources] for each in ("random", "topped_up")}
    lenses = dict.fromkeys(one.lens for one in sources)
    parts |= {lens: [one.lens == lens for one in sources] for lens in lenses}
    lengths = np.array([len(one.tokens) for one in sources])
    parts |= {name: ((low <= lengths) & (lengths <= high)).tolist() for name, (low, high) in LENGTHS.items()}
    return {name: np.array(each) for name, each in parts.items() if any(each)}


def _by_subset(
    subsets: Mapping[str, Array], found: HeldOut, predicted: Mapping[str, Array], drawn: Sequence[Array]
) -> xr.Dataset:
    """Confusions and what follows from them, by classifier and subset."""
    shape = (len(CLASSES), len(PREDICTED))
    tables = np.zeros((len(predicted), len(subsets), *shape))
    ends = np.zeros((2, len(predicted), len(subsets)))
    for (row, said), (column, part) in _every(predicted, subsets):
        tables[row, column] = scores.confusion(found.places[part], said[part], shape)
        again = [scores.confusion(found.places[part], said[part], shape, each[:, part]) for each in drawn]
        ends[:, row, column] = scores.interval([scores.macro_f1(each) for each in again])
    precision, recall, f1 = scores.precision_recall_f1(tables)
    both, by_class = ("classifier", "subset"), ("classifier", "subset", "pattern")
    return xr.Dataset(
        {
            "macro_f1": (both, scores.macro_f1(tables)),
            "macro_f1_low": (both, ends[0]),
            "macro_f1_high": (both, ends[1]),
            "precision": (by_class, precision),
            "recall": (by_class, recall),
            "f1": (by_class, f1),
            "maps": (("subset", "pattern"), tables[0].sum(-1).astype(int)),
            "confusion": ((*by_class, "predicted"), tables.astype(int)),
        },
        coords={
            "classifier": np.array(list(predicted), dtype=object),
            "subset": np.array(list(subsets), dtype=object),
            "pattern": np.array(CLASSES, dtype=object),
            "predicted": np.array(PREDICTED, dtype=object),
        },
    )


def _every(predicted: Mapping[str, Array], subsets: Mapping[str, Array]) -> Any:
    return ((one, other) for one in enumerate(predicted.values()) for other in enumerate(subsets.values()))


def _calibration(found: HeldOut, predicted: Mapping[str, Array]) -> xr.Dataset:
    """How often the cnn and the rules are right where they are so sure."""
    names = ("cnn", "rules")
    sure = {name: found.probabilities[name].max(-1) for name in names}
    right = {name: predicted[name] == found.places for name in names}
    bins = [
        np.stack(each) for each in zip(*(scores.reliability(sure[name], right[name]) for name in names), strict=True)
    ]
    dims = ("said_by", "bin")
    return xr.Dataset(
        {
            "calibration_error": ("said_by", [scores.calibration_error(sure[name], right[name]) for name in names]),
            "confidence": (dims, bins[0]),
            "right": (dims, bins[1]),
            "in_bin": (dims, bins[2]),
        },
        coords={"said_by": np.array(names, dtype=object), "bin": (np.arange(scores.BINS) + 0.5) / scores.BINS},
    )


def _gains(places: Array, predicted: Mapping[str, Array], drawn: Sequence[Array]) -> xr.Dataset:
    """The cnn's macro-F1 minus a rival's, on the same maps drawn again."""
    plain = [_difference(places, predicted, rival, np.ones((1, len(places))))[0] for rival in RIVALS]
    again = [[_difference(places, predicted, rival, each) for each in drawn] for rival in RIVALS]
    low, high = zip(*map(scores.interval, again), strict=True)
    return xr.Dataset(
        {"gain": ("rival", plain), "gain_low": ("rival", list(low)), "gain_high": ("rival", list(high))},
        coords={"rival": np.array(RIVALS, dtype=object)},
    )


def _difference(places: Array, predicted: Mapping[str, Array], rival: str, weights: Array) -> Array:
    shape = (len(CLASSES), len(PREDICTED))
    ours, theirs = (
        scores.macro_f1(scores.confusion(places, predicted[name], shape, weights)) for name in ("cnn", rival)
    )
    found: Array = ours - theirs
    return found

"""The labelled maps that a classifier is surest of, for each class, to be drawn."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.patterns.classes import CLASSES
from headscope.patterns.labels.labelled import Labelled, PatternMap
from headscope.results.stamp import read_provenance, stamp


def typical(labelled: Labelled, evaluation: xr.Dataset, many: int = 3) -> xr.Dataset:
    """For each class the maps of that label to which the cnn, which had not seen them, gives it the most.

    They are of different heads where there are as many.

    Dims: map query key, padded with NaN to the longest; `label`, `confidence` and `source` of each map.
    """
    known = {each.source.id: each for each in labelled.maps}
    if strange := [str(each) for each in evaluation["map"].values if each not in known]:
        raise InputError(
            f"This evaluation is of other maps: '{strange[0]}' is not among the {len(known)} labelled ones. Evaluate "
            "the same folder of labels first."
        )
    rows: list[tuple[PatternMap, str, float]] = []
    for label in CLASSES:
        held = evaluation.isel(map=(evaluation["label"] == label).values)
        given = held["probability"].sel(pattern=label).values
        found = [(known[str(held["map"].values[each])], label, float(given[each])) for each in np.argsort(-given)]
        rows += _of_different_heads(found)[:many]
    maps, labels, sure = zip(*rows, strict=True)
    data = xr.Dataset(
        {"weights": (("map", "query", "key"), _padded(maps))},
        coords={
            "map": np.array([each.source.id for each in maps], dtype=object),
            "label": ("map", np.array(labels, dtype=object)),
            "confidence": ("map", np.array(sure)),
            "source": ("map", np.array([_told(each) for each in maps], dtype=object)),
        },
    )
    return stamp(data, command="headscope patterns typical", evaluation=read_provenance(evaluation))


def _of_different_heads(rows: Sequence[tuple[PatternMap, str, float]]) -> list[tuple[PatternMap, str, float]]:
    """The same rows, but each head's second and later ones at the end."""
    first: dict[str, int] = {}
    for place, (each, _, _) in enumerate(rows):
        first.setdefault(each.source.group, place)
    return sorted(rows, key=lambda row: rows[first[row[0].source.group]] is not row)


def _padded(maps: Sequence[PatternMap]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    wide = max(len(each.weights) for each in maps)
    found = np.full((len(maps), wide, wide), np.nan, dtype=np.float32)
    for place, each in enumerate(maps):
        found[place, : len(each.weights), : len(each.weights)] = each.weights
    return found


def _told(each: PatternMap) -> str:
    source = each.source
    name = source.model.rpartition("/")[2] + (f" ({source.tuned})" if source.tuned else "")
    return f"{name} L{source.layer}H{source.head}, {source.lens}, {len(source.tokens)} tokens"

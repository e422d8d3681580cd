"""Typical maps of each class: those that a classifier is most confident about."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance, stamp
from headscope.patterns import CLASSES
from headscope_patterns.labels.labelled_maps import LabelledMaps, PatternMap

Row = tuple[PatternMap, str, float]


def select_typical(labelled: LabelledMaps, evaluation: xr.Dataset, count: int = 3) -> xr.Dataset:
    """Select for each class the maps with this label and the highest cross-validated probability of the cnn.

    They are of different heads where there are enough.

    Dims: map query key, padded with NaN to the longest; `label`, `confidence` and `source` of each map.
    """
    by_id = {item.source.id: item for item in labelled.maps}
    if unknown := [str(name) for name in evaluation["map"].values if name not in by_id]:
        raise InputError(
            f"This evaluation is of other maps: '{unknown[0]}' is not among the {len(by_id)} labelled ones. Evaluate "
            "the same folder of labels first."
        )
    rows: list[Row] = []
    for label in CLASSES:
        data = evaluation.isel(map=(evaluation["label"] == label).values)
        probability = data["probability"].sel(pattern=label).values
        ranked = [(by_id[str(data["map"].values[i])], label, float(probability[i])) for i in np.argsort(-probability)]
        rows += _distinct_heads_first(ranked)[:count]
    maps, labels, confidence = zip(*rows, strict=True)
    data = xr.Dataset(
        {"weights": (("map", "query", "key"), _pad(maps))},
        coords={
            "map": np.array([item.source.id for item in maps], dtype=object),
            "label": ("map", np.array(labels, dtype=object)),
            "confidence": ("map", np.array(confidence)),
            "source": ("map", np.array([_describe(item) for item in maps], dtype=object)),
        },
    )
    return stamp(
        data, kind="typical_maps", command="headscope patterns typical", evaluation=read_provenance(evaluation)
    )


def _distinct_heads_first(rows: Sequence[Row]) -> list[Row]:
    """Move all but the first map of each head to the end."""
    first: dict[str, int] = {}
    for index, (item, _, _) in enumerate(rows):
        first.setdefault(item.source.head_group, index)
    return sorted(rows, key=lambda row: rows[first[row[0].source.head_group]] is not row)


def _pad(maps: Sequence[PatternMap]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    width = max(len(item.weights) for item in maps)
    padded = np.full((len(maps), width, width), np.nan, dtype=np.float32)
    for row, item in zip(padded, maps, strict=True):
        row[: len(item.weights), : len(item.weights)] = item.weights
    return padded


def _describe(item: PatternMap) -> str:
    source = item.source
    name = source.model.rpartition("/")[2] + (f" ({source.tuned})" if source.tuned else "")
    return f"{name} L{source.layer}H{source.head}, {source.lens}, {len(source.tokens)} tokens"

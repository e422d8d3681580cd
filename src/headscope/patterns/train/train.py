"""Classifiers from labelled maps, and how they err on maps that they have not seen."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import xarray as xr

from headscope.core.errors import InputError
from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.cnn import Cnn
from headscope.patterns.classify.settings import USUAL, CnnSettings
from headscope.patterns.labels.labelled import Labelled, PatternMap
from headscope.patterns.train.evaluate import evaluation
from headscope.patterns.train.fit import Said, Taught, fitted
from headscope.patterns.train.folds import folds
from headscope.patterns.train.held_out import held_out
from headscope.patterns.train.side_by_side import one_thread
from headscope.results.stamp import fingerprint, stamp
from headscope.version import __version__

FEWEST_LABELS = 5
"""A class of fewer labelled maps would be missing from some folds."""


def train(
    labelled: Labelled,
    *,
    labels: str | None = None,
    seed: int = 0,
    settings: CnnSettings = USUAL,
    said: Said | None = None,
) -> tuple[Cnn, xr.Dataset]:
    """Networks from all maps of a pass, the first by default, and how such networks do on maps they have not seen.

    Their temperature, and the errors by which shares are corrected, come from that cross-validation.
    """
    data = evaluate(labelled, labels=labels, seed=seed, settings=settings, said=said)
    maps, given, name = chosen(labelled, labels)
    taught = [Taught(each.weights, each.source.segments, label) for each, label in zip(maps, given, strict=True)]
    with one_thread():
        nets = fitted(taught, settings, seed=seed, said=said)
    warmth = float(data["temperature"])
    facts = {**_facts(maps, given, name, settings, seed), "temperature": warmth, "errors": errors(data)}
    return Cnn(nets, settings.side, warmth, facts), data


def evaluate(
    labelled: Labelled,
    *,
    labels: str | None = None,
    seed: int = 0,
    settings: CnnSettings = USUAL,
    said: Said | None = None,
) -> xr.Dataset:
    """How networks and their rivals do on heads and texts that they have not seen, against a pass of labels."""
    maps, given, name = chosen(labelled, labels)
    found = held_out(maps, given, settings, seed=seed, said=said)
    facts = _facts(maps, given, name, settings, seed)
    data = evaluation(labelled, maps, name, found, facts)
    return stamp(data, data=facts["labels_hash"], n=facts["labelled_maps"])


def epochs(labelled: Labelled, *, labels: str | None = None, seed: int = 0, settings: CnnSettings = USUAL) -> int:
    """How many epochs the cross-validation takes; a last training takes as many as one of them has."""
    maps, given, _ = chosen(labelled, labels)
    return settings.epochs * len(folds([each.source for each in maps], given, settings.folds, seed=seed))


def chosen(labelled: Labelled, labels: str | None) -> tuple[list[PatternMap], list[str], str]:
    """The labelled maps of a pass, their labels and its name; the first pass where none is named."""
    if not labelled.passes:
        raise InputError("These maps have no labels. Label them first: headscope patterns label.")
    name = labels if labels is not None else next(iter(labelled.passes))
    maps, given = labelled.chosen(name)
    rare = {each: given.count(each) for each in CLASSES if given.count(each) < FEWEST_LABELS}
    if rare:
        held = ", ".join(f"{each} has {many}" for each, many in rare.items())
        raise InputError(
            f"Every class needs at least {FEWEST_LABELS} labelled maps, but in the pass '{name}' {held}. Label more."
        )
    return maps, given, name


def errors(data: xr.Dataset) -> dict[str, Any]:
    """For each classifier how often each class met each prediction, in the maps that were chosen at random.

    Where no part was, in all maps.
    """
    part = "random" if "random" in data["subset"].values else "all"
    table = data["confusion"].sel(subset=part)
    return {str(name): table.sel(classifier=name).values.tolist() for name in ("cnn", "rules", "both")}


def _facts(
    maps: Sequence[PatternMap], given: Sequence[str], name: str, settings: CnnSettings, seed: int
) -> dict[str, Any]:
    """Where a classifier comes from."""
    lines = (
        f"{each.source.id} {label} {hashlib.sha256(each.weights.tobytes()).hexdigest()}"
        for each, label in zip(maps, given, strict=True)
    )
    return {
        "version": __version__,
        "labels": name,
        "labels_hash": fingerprint(sorted(lines)),
        "labelled_maps": len(maps),
        "seed": seed,
        "settings": asdict(settings),
    }

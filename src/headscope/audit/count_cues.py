"""Productivity, coverage and pointwise mutual information of cues, with intervals and tests."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.audit.labelled_texts import LabelledTexts
from headscope.audit.occurrences import Occurrences
from headscope.audit.points import CuePoints, Floats, Variant
from headscope.audit.words import Integers
from headscope.core.errors import InputError
from headscope.uncertainty.corrections import LEVEL, correct_p_values
from headscope.uncertainty.intervals import binomial_test, wilson_intervals


def count_cues(
    data: LabelledTexts, occurrences: Occurrences, points: CuePoints, variant: Variant, min_count: int, smoothing: float
) -> xr.Dataset:
    """Return the rates of all cues along `cue`, without their provenance."""
    size, n = len(occurrences.names), len(data.examples)
    if not size:
        raise InputError(
            f"There is no cue in these {n:,} examples: their texts have no or too few words. Look at them."
        )
    applicability = np.bincount(points.cues, minlength=size)
    if data.kind == "classification":
        counts = np.bincount(points.cues * len(data.classes) + points.outcomes, minlength=size * len(data.classes))
        rates = np.bincount(data.labels) / n
        favoured = np.argmax(counts.reshape(size, -1) / rates, axis=1)
        productive = counts.reshape(size, -1)[np.arange(size), favoured]
        chance, pmi = rates[favoured], _pmi(productive, applicability, rates[favoured], smoothing)
    else:
        productive = np.bincount(points.cues, points.outcomes, size).astype(np.int64)
        with np.errstate(invalid="ignore"):
            chance = np.bincount(points.cues, points.chances, size) / applicability
        pmi = _choice_pmi(data, occurrences, smoothing)
    frequent = np.flatnonzero(applicability >= min_count)
    if not len(frequent):
        raise InputError(
            f"None of {size:,} cues applies to at least min_count={min_count} of {n:,} examples. Lower min_count, or "
            "give more examples."
        )
    variables = _summarize(
        applicability[frequent], productive[frequent], chance[frequent], n, add=int(variant == "either")
    )
    variables["pmi"] = ("cue", pmi[frequent], {"long_name": "pointwise mutual information", "units": "nats"})
    coords: dict[str, Any] = {
        "cue": np.array(occurrences.names, object)[frequent],
        "words": ("cue", occurrences.lengths[frequent]),
    }
    if data.kind == "classification":
        coords["label"] = ("cue", np.array(data.classes, object)[favoured[frequent]])
        variables |= _correct(variables["productivity_p"][1] * (len(data.classes) if len(data.classes) > 2 else 1))
    table = xr.Dataset(variables, coords).assign(n=n)
    order = np.lexsort((table["cue"].values.astype(str), -table["applicability"].values, -table["gain"].values))
    return table.isel(cue=order)


def _summarize(applicability: Integers, productive: Integers, chance: Floats, n: int, *, add: int) -> dict[str, Any]:
    """Return rates with their intervals and tests; `add` is added to all counts."""
    productivity, coverage = (productive + add) / (applicability + add), (applicability + add) / (n + add)
    low, high = wilson_intervals(productive + add, applicability + add)
    least, most = wilson_intervals(applicability + add, n + add)
    texts = {
        "applicability": (applicability, "examples to which the cue applies"),
        "productive": (productive, "examples in which the cue is right"),
        "productivity": (productivity, "productivity"),
        "productivity_low": (low, "95 % interval, Wilson"),
        "productivity_high": (high, "95 % interval, Wilson"),
        "coverage": (coverage, "coverage"),
        "coverage_low": (least, "95 % interval, Wilson"),
        "coverage_high": (most, "95 % interval, Wilson"),
        "chance": (chance, "productivity by chance"),
        "gain": (coverage * (productivity - chance), "coverage · (productivity − chance)"),
    }
    variables: dict[str, Any] = {name: ("cue", values, {"long_name": text}) for name, (values, text) in texts.items()}
    return variables | _correct(binomial_test(productive, applicability, chance))


def _correct(p: Floats) -> dict[str, Any]:
    """Return p-values, their correction by Holm for all cues, and which are significant."""
    adjusted = correct_p_values(np.minimum(p, 1.0))
    return {
        "productivity_p": ("cue", np.minimum(p, 1.0)),
        "productivity_p_adjusted": ("cue", adjusted),
        "productivity_significant": ("cue", (adjusted < LEVEL).astype(np.int8)),
    }


def _choice_pmi(data: LabelledTexts, occurrences: Occurrences, smoothing: float) -> Floats:
    """Return the pointwise mutual information of the cue being in a choice and that choice being right."""
    right = np.zeros(len(data.texts), np.int64)
    right[data.first[:-1] + data.labels] = 1
    size = len(occurrences.names)
    productive = np.bincount(occurrences.cues, right[occurrences.texts], size)
    return _pmi(productive, np.bincount(occurrences.cues, minlength=size), np.float64(right.mean()), smoothing)


def _pmi(joint: Any, occurrences: Any, rate: Any, smoothing: float) -> Floats:
    """Return log p(label | cue) / p(label), with `smoothing` more occurrences labelled at the usual rate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log((joint + smoothing * rate) / ((occurrences + smoothing) * rate)))

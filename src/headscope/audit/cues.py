"""`hs.cues`: words that tell the label, whatever the rest of the input says (Niven & Kao, 2019)."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.audit.labeled_texts import LabeledTexts
from headscope.audit.occurrences import Occurrences, check_ngrams, check_patterns
from headscope.audit.options import CuesOptions
from headscope.audit.points import CuePoints, Floats, Variant, check_variant, find_cues, find_points
from headscope.audit.words import Integers
from headscope.core.errors import DataWarning, InputError
from headscope.core.estimate import name_ends
from headscope.core.options import takes_options
from headscope.core.prose import join_words
from headscope.core.provenance import stamp
from headscope.results.hashes import fingerprint_examples
from headscope.uncertainty.corrections import LEVEL, correct_p_values
from headscope.uncertainty.intervals import binomial_test, wilson_intervals


@takes_options(CuesOptions)
def cues(options: CuesOptions) -> xr.Dataset:
    """Count how well every word, n-gram and pattern alone tells the label; no model is involved.

    A cue applies to a multiple choice if it is in exactly one of the choices, and to a text that is to be classified if
    it is in the text. For each cue there are `applicability`, the number of examples to which it applies;
    `productivity`, the share of these in which it is right: the choice with the cue is the right one, or the text has
    the label that the cue favors (the coordinate `label`, the class with the largest productivity over its chance);
    `coverage`, applicability over all examples; `chance`, what productivity would be without any relation; `gain` =
    coverage · (productivity − chance); and `pmi`, the pointwise mutual information of cue and label in nats, with
    `smoothing` added to the counts. Intervals are Wilson's (95 %), and `productivity_p` is of an exact binomial test,
    corrected by Holm for all cues in `productivity_p_adjusted`. Cues are sorted by gain.

    `pairs=("claim", "choices")` counts pairs of cues, one in each of two parts, in place of single cues: a pair applies
    if the first is in the claim and the second in exactly one of the choices. Data in which no word alone tells the
    label may be told by pairs. Their name is "not in claim & not in choices"; give `min_count`, as there are many.

    `variant="either"` repeats the code of the paper: a cue applies if at least one of the choices has it, is right if
    the right choice does, and 1 is added to all counts.

    >>> rows = [{"text": "Rain.", "choices": ["it is wet", "it is not wet"], "label": 0},
    ...         {"text": "Sun.", "choices": ["it is not dry", "it is dry"], "label": 1}]
    >>> data = hs.cues(hs.read(rows, choices="choices"), ngrams=(1,))
    >>> data.sel(cue="not")[["applicability", "productivity"]].to_array().values.tolist()
    [2.0, 0.0]
    """
    variant, min_count, smoothing = options.variant, options.min_count, options.smoothing
    checked, named = check_variant(variant), check_patterns(options.patterns)
    ngrams = check_ngrams(options.ngrams, named)
    _check_numbers(min_count, smoothing)
    prepared, occurrences = find_cues(options.data, options, min_count)
    if variant != "exclusive" and prepared.kind != "choice":
        raise InputError(f"variant={variant!r} is about choices, but these are labelled texts. Leave it out.")
    points = find_points(prepared, occurrences, checked)
    table = count_cues(prepared, occurrences, points, checked, min_count, smoothing)
    if options.pairs is None:
        _warn_patterns(named, table, min_count)
    counted = {"cues": table.sizes["cue"], "cues_found": len(occurrences.names)}
    asked = {"variant": variant, "ngrams": sorted(set(ngrams)), "patterns": named, "min_count": min_count}
    asked |= {"pairs": True} if options.pairs is not None else {}
    return stamp(table, kind="cues", command="hs.cues", **asked, smoothing=smoothing, **counted, **_describe(prepared))


def _describe(data: LabeledTexts) -> dict[str, Any]:
    """Return the facts about the data that a result is stamped with."""
    return {
        "task": data.kind,
        "parts": list(data.parts),
        "data": fingerprint_examples(data.examples, labels=True),
        "n": len(data.examples),
        "unlabelled": data.unlabeled,
    }


def _warn_patterns(patterns: Mapping[str, str], table: xr.Dataset, min_count: int) -> None:
    """Name the patterns that are not in the result: the user has asked for them."""
    if missing := [name for name in patterns if name not in table["cue"].values]:
        pattern, apply = ("pattern", "applies") if len(missing) == 1 else ("patterns", "apply")
        names = join_words(f"'{name}'" for name in missing)
        warnings.warn(
            f"left out the {pattern} {names}, which {apply} to fewer than min_count={min_count} of {int(table['n']):,} "
            "examples. Patterns are for texts in lower case.",
            DataWarning,
            stacklevel=4,
        )


def _check_numbers(min_count: int, smoothing: float) -> None:
    if min_count < 1:
        raise InputError(f"min_count must be at least 1, but got {min_count}.")
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise InputError(f"smoothing must be 0 or more, but got {smoothing}.")


def count_cues(
    data: LabeledTexts, occurrences: Occurrences, points: CuePoints, variant: Variant, min_count: int, smoothing: float
) -> xr.Dataset:
    """Return the rates of all cues along `cue`, without their provenance."""
    size, n = len(occurrences.names), len(data.examples)
    if not size and min_count > 1:
        raise InputError(f"No pair of cues is in at least min_count={min_count} of {n:,} examples. Lower min_count.")
    if not size:
        raise InputError(
            f"There is no cue in these {n:,} examples: their texts have no or too few words. Look at them."
        )
    applicability = np.bincount(points.cues, minlength=size)
    if data.kind == "classification":
        counts = np.bincount(points.cues * len(data.classes) + points.outcomes, minlength=size * len(data.classes))
        rates = np.bincount(data.labels) / n
        favored = np.argmax(counts.reshape(size, -1) / rates, axis=1)
        productive = counts.reshape(size, -1)[np.arange(size), favored]
        chance, pmi = rates[favored], _pmi(productive, applicability, rates[favored], smoothing)
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
        coords["label"] = ("cue", np.array(data.classes, object)[favored[frequent]])
        variables |= _correct(variables["productivity_p"][1] * (len(data.classes) if len(data.classes) > 2 else 1))
    table = xr.Dataset(variables, coords).assign(n=n)
    order = np.lexsort((table["cue"].values.astype(str), -table["applicability"].values, -table["gain"].values))
    return table.isel(cue=order)


def _summarize(applicability: Integers, productive: Integers, chance: Floats, n: int, *, add: int) -> dict[str, Any]:
    """Return rates with their intervals and tests; `add` is added to all counts."""
    productivity, coverage = (productive + add) / (applicability + add), (applicability + add) / (n + add)
    rates = (productivity, *wilson_intervals(productive + add, applicability + add))
    shares = (coverage, *wilson_intervals(applicability + add, n + add))
    interval = "95 % interval, Wilson"
    texts = {
        "applicability": (applicability, "examples to which the cue applies"),
        "productive": (productive, "examples in which the cue is right"),
        **name_ends("productivity", zip(rates, ("productivity", interval, interval), strict=True)),
        **name_ends("coverage", zip(shares, ("coverage", interval, interval), strict=True)),
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


def _choice_pmi(data: LabeledTexts, occurrences: Occurrences, smoothing: float) -> Floats:
    """Return the pointwise mutual information of the cue being in a choice and that choice being right."""
    right = np.zeros(len(data.texts), np.int64)
    right[data.first[:-1] + data.labels] = 1
    size = len(occurrences.names)
    productive = np.bincount(occurrences.cues, right[occurrences.texts], size)
    return _pmi(productive, np.bincount(occurrences.cues, minlength=size), np.float64(right.mean()), smoothing)


def _pmi(joint: Any, occurrences: Any, rate: Any, smoothing: float) -> Floats:
    """Return log p(label | cue) / p(label), with `smoothing` more occurrences labeled at the usual rate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log((joint + smoothing * rate) / ((occurrences + smoothing) * rate)))

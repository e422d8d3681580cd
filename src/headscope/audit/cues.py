"""`hs.cues`: words that tell the label, whatever the rest of the input says (Niven & Kao, 2019)."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.audit.count_cues import count_cues
from headscope.audit.labelled_texts import LabelledTexts, prepare_texts
from headscope.audit.occurrences import check_ngrams, check_patterns, find_occurrences
from headscope.audit.options import CuesOptions
from headscope.audit.points import check_variant, find_points
from headscope.core.errors import DataWarning, InputError
from headscope.core.options import takes_options
from headscope.core.prose import join_words
from headscope.core.provenance import stamp
from headscope.results.hashes import fingerprint_examples


@takes_options(CuesOptions)
def cues(options: CuesOptions) -> xr.Dataset:
    """Count how well every word, n-gram and pattern alone tells the label; no model is involved.

    A cue applies to a multiple choice if it is in exactly one of the choices, and to a text that is to be classified if
    it is in the text. For each cue there are `applicability`, the number of examples to which it applies;
    `productivity`, the share of these in which it is right: the choice with the cue is the right one, or the text has
    the label that the cue favours (the coordinate `label`, the class with the largest productivity over its chance);
    `coverage`, applicability over all examples; `chance`, what productivity would be without any relation; `gain` =
    coverage · (productivity − chance); and `pmi`, the pointwise mutual information of cue and label in nats, with
    `smoothing` added to the counts. Intervals are Wilson's (95 %), and `productivity_p` is of an exact binomial test,
    corrected by Holm for all cues in `productivity_p_adjusted`. Cues are sorted by gain.

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
    prepared = prepare_texts(options.data, options.parts)
    if variant != "exclusive" and prepared.kind != "choice":
        raise InputError(f"variant={variant!r} is about choices, but these are labelled texts. Leave it out.")
    occurrences = find_occurrences(prepared.texts, prepared.groups, ngrams, named)
    points = find_points(prepared, occurrences, checked)
    table = count_cues(prepared, occurrences, points, checked, min_count, smoothing)
    _warn_patterns(named, table, min_count)
    counted = {"cues": table.sizes["cue"], "cues_found": len(occurrences.names)}
    asked = {"variant": variant, "ngrams": sorted(set(ngrams)), "patterns": named, "min_count": min_count}
    return stamp(table, kind="cues", command="hs.cues", **asked, smoothing=smoothing, **counted, **_describe(prepared))


def _describe(data: LabelledTexts) -> dict[str, Any]:
    """Return the facts about the data that a result is stamped with."""
    return {
        "task": data.kind,
        "parts": list(data.parts),
        "data": fingerprint_examples(data.examples, labels=True),
        "n": len(data.examples),
        "unlabelled": data.unlabelled,
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

"""What is measured of one task, and of related words."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import with_interval
from headscope.core.example import Example
from headscope.core.provenance import read_provenance, stamp
from headscope.engine.fingerprint import fingerprint_model
from headscope.engine.model import Model
from headscope.experiments import summary
from headscope.experiments.pattern_shares import COUNTS, summarise_patterns
from headscope.experiments.relation_heads import measure_relations, show_relation
from headscope.experiments.steps import Steps
from headscope.experiments.tuned import ABLATION_BATCH, TaskRun, ignore_truncation
from headscope.maps.word_pairs import list_word_pairs
from headscope.results.hashes import fingerprint, fingerprint_examples
from headscope.uncertainty.intervals import wilson_interval
from headscope.version import __version__
from headscope_studies.dark_secrets.disabled import disable
from headscope_studies.dark_secrets.starts import score_starts

LENSES = {"raw": "raw"}

SPECIAL = "special_tokens:roles=cls+sep,source=clark"
"""Weight on [CLS] and on [SEP], mean over all rows of a map."""

SIMPLY = 0.5
"""A head attends simply to [CLS] and [SEP] if they get more than this part of its attention."""


def measure_numbers(run: TaskRun, classifier: str) -> xr.Dataset:
    """Return shares of patterns, similarity with the base, scores from every start and with heads disabled."""
    with ignore_truncation():
        starts = run.steps.keep("starts", partial(score_starts, run, 2))
        run.steps.say(3, f"patterns and similarity of every head, {len(run.examples):,} inputs")
        statistics = (f"patterns:classifier={classifier}", "similarity", SPECIAL)
        rows = run.measure(run.tuned, "tuned", LENSES, statistics, against=run.base)
        shares = summarise_patterns(rows, classifier, LENSES).drop_vars(COUNTS).merge(summarise_special(rows))
        disabled = run.steps.keep("disabled", partial(measure_disabled, run))
    about = run.describe(metric=str(starts.attrs["metric"]))
    parts = [shares, summary.summarise_similarity(rows), starts, disabled, about]
    numbers = xr.merge([part.drop_attrs() for part in parts], compat="no_conflicts", join="outer")
    return numbers.assign(n=len(run.examples)).expand_dims(task=[run.task.name])


def summarise_special(rows: xr.Dataset) -> xr.Dataset:
    """Return the weight of every head on [CLS] and [SEP] together, and the share of heads that attend simply to them.

    The share has Wilson's interval, as of heads that were drawn.
    """
    table = rows["special_tokens_rows"].isel(source=0, drop=True).sel(lens="raw", drop=True).sum("role", skipna=False)
    weight = table.mean("example").transpose("layer", "head")
    mask = (weight > SIMPLY).values[weight.notnull().values]
    ends = float(mask.mean()), *wilson_interval(int(mask.sum()), mask.size)
    variables = with_interval("special_share", (), map(np.asarray, ends))
    return xr.Dataset({"special_weight": weight.drop_attrs(), **variables}).reset_coords(drop=True)


def measure_disabled(run: TaskRun) -> xr.Dataset:
    """Return the scores with each head and each layer disabled."""
    run.steps.say(4, "scores with each head, then each layer disabled")
    options: dict[str, Any] = {"max_length": run.max_length, "progress": run.steps.bars}
    return disable(run.tuned, run.examples, batch_size=ABLATION_BATCH[run.tuned.device.type], **options)


def measure_related(
    model: Model, examples: Sequence[Example], folder: Path, max_length: int, **options: Any
) -> dict[str, xr.Dataset]:
    """Return the weights of every head between related words, and the maps of one head on two texts."""
    steps = Steps(folder, "related words", 1, options.get("progress"))
    pairs = fingerprint(str(pair) for example in examples for pair in list_word_pairs(example))
    facts = {
        "version": __version__,
        **fingerprint_model(model),
        "max_length": max_length,
        "pairs": pairs,
        "texts": fingerprint_examples(examples),
    }
    steps.begin(facts, overwrite=bool(options.get("overwrite")))
    steps.say(1, f"every head of the model before tuning, {len(examples):,} texts")
    with ignore_truncation():
        measured = partial(measure_relations, model, examples, max_length=max_length, progress=steps.bars)
        relations = steps.keep("relations", measured)
        shown = steps.keep("shown", partial(show_relation, model, examples, relations, max_length=max_length))
    return {"relations": relations, "shown_relation": stamp(shown, **read_provenance(relations))}

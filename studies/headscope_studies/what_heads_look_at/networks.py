"""One model and two that are tuned from it, a masked language model and a classifier, by every measure of a token."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.estimate import ENDS
from headscope.core.example import Example
from headscope.core.prose import join_words
from headscope.core.tokens import ROLES
from headscope.data.tokenizing.encode import special_roles
from headscope.engine.load import load
from headscope.engine.loss import predicts_masked
from headscope.engine.model import Model
from headscope.measuring.measure import measure
from headscope.training.finetuning.finetune import finetune
from headscope.training.score import score
from headscope_studies.what_heads_look_at import no_op, surface

NEEDED = {"cls": "class token", "sep": "separator", "mask": "mask"}
PRETRAINED, MASKED, CLASSIFIER = "pretrained", "masked language model", "classifier"
MASKED_RATE, CLASSIFIER_RATE = 2e-4, 1e-4
"""Learning rates."""


def check_encoder(model: Model) -> None:
    """Raise InputError for a model without the tokens that are compared, or without a mask to tune it with."""
    roles = {ROLES[role] for role in special_roles(model.tokenizer).values()}
    missing = [title for role, title in NEEDED.items() if role not in roles]
    if missing:
        raise InputError(
            "Class tokens and separators are compared with other tokens, and masked words are predicted, but the "
            f"tokenizer of {model.spec} has no {join_words(missing, 'or')}. Give an encoder, such as BERT."
        )


def tune_masked(base: Model, folder: str | Path | None, texts: Sequence[Example], **options: Any) -> Model:
    """Return the masked language model in a folder; without one, tune it on texts."""
    if folder is None:
        return _tune(base, texts, **{"task": "mlm", "learning_rate": MASKED_RATE, **options})
    masked = load(folder, device=base.device.type, dtype="float32")
    if not predicts_masked(masked):
        raise InputError(f"mlm={str(folder)!r} predicts no masked words. Give one that does, or leave it out.")
    return masked


def tune_classifier(base: Model, folder: str | Path | None, texts: Sequence[Example], **options: Any) -> Model:
    """Return the classifier in a folder; without one, tune it on labelled texts."""
    if folder is None:
        return _tune(base, texts, **{"learning_rate": CLASSIFIER_RATE, **options})
    return load(folder, device=base.device.type, dtype="float32")


def _tune(base: Model, texts: Sequence[Example], **options: Any) -> Model:
    options = {"batch_size": 8, "device": base.device.type, "resume": True, "progress": False, **options}
    return finetune(base, list(texts), **options)


def compare_pretrained(model: Model, inputs: Sequence[Example], **options: Any) -> xr.Dataset:
    """Return what one token of each group counts in the model itself, which has no loss."""
    measured = _compare(model, inputs, no_op.OF_WEIGHTS, options)
    return measured.assign(quality=np.nan, metric="", data="the inputs").expand_dims(task=[PRETRAINED])


def compare_masked(model: Model, inputs: Sequence[Example], *, seed: int = 0, **options: Any) -> xr.Dataset:
    """Return what one token of each group counts in the masked language model, its own loss included."""
    perplexity = score(model, list(inputs), max_length=options["max_length"], progress=False)["perplexity"]
    about = {"quality": float(perplexity), "metric": "perplexity", "data": "the inputs, 15 % of the tokens masked"}
    measured = _compare(model, inputs, tuple(no_op.MEASURES), {**options, "target": f"loss:seed={seed}"})
    return measured.assign(about).expand_dims(task=[MASKED])


def compare_classifier(model: Model, labelled: Sequence[Example], data: str, **options: Any) -> xr.Dataset:
    """Return what one token of each group counts in the classifier, its own loss included."""
    scored = score(model, list(labelled), max_length=options["max_length"], progress=False)
    metric = next(name for name in ("accuracy", "spearman") if name in scored)
    measured = _compare(model, labelled, tuple(no_op.MEASURES), {**options, "target": "loss"})
    return measured.assign(quality=float(scored[metric]), metric=metric, data=data).expand_dims(task=[CLASSIFIER])


def measure_gradients(model: Model, inputs: Sequence[Example], *, seed: int = 0, **options: Any) -> xr.Dataset:
    """Return the gradient of a masked language model's loss with respect to attention to one token of each type."""
    perplexity = score(model, list(inputs), max_length=options["max_length"], progress=False)["perplexity"]
    measured = _compare(model, inputs, ("gradient",), {**options, "target": f"loss:seed={seed}"})
    kept = measured[[f"size_layer{end}" for end in ENDS]].sel(measure="gradient", drop=True)
    return kept.assign(n=measured["n"], quality=float(perplexity), metric="perplexity")


def describe_quality(network: xr.Dataset) -> str:
    """Return how good one tuned model is: its perplexity, or another metric with three digits."""
    metric, value = str(network["metric"].values), float(network["quality"])
    return f"{metric} {value:,.0f}" if metric == "perplexity" else f"{metric} {value:.3f}"


def join_networks(*parts: xr.Dataset) -> xr.Dataset:
    """Return the numbers of several networks along `task`; measures without a loss are NaN where there is none."""
    joined = xr.concat(parts, "task", join="outer", coords="minimal", compat="override", data_vars="all")
    return joined.reindex(measure=list(no_op.MEASURES), group=list(no_op.GROUPS))


def _compare(model: Model, inputs: Sequence[Example], names: Sequence[str], options: dict[str, Any]) -> xr.Dataset:
    lenses = [no_op.MEASURES[name] for name in names]
    rows = measure(model, list(inputs), lens=lenses, statistics=[surface.TOKEN_TYPES], rows=True, **options)
    return no_op.compare_tokens(rows.isel(site=0, drop=True).assign_coords(lens=list(names)))

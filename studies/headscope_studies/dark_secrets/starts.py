"""What a model gains by pretraining and by fine-tuning: scores from different starts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from headscope.ablation.changes import compare_scores
from headscope.core.estimate import estimate, interval_names, with_interval
from headscope.core.provenance import read_provenance
from headscope.engine.load import load, silence_transformers
from headscope.engine.model import Model
from headscope.experiments.tuned import TaskRun
from headscope.training.finetuning.job import prepare_training
from headscope.training.finetuning.settings import make_training_settings
from headscope.training.labels import find_majority
from headscope.training.score import score
from headscope_studies.dark_secrets.disabled import METRICS

MAJORITY, PRETRAINED, RANDOM, TUNED = STARTS = (
    "most common label",
    "pretrained, not fine-tuned",
    "random, fine-tuned",
    "pretrained, fine-tuned",
)


def score_starts(run: TaskRun, step: int) -> xr.Dataset:
    """Score the fine-tuned model, the same from random weights, and the pretrained one with a new, untrained head.

    `start_score` is along `start`, beside the share of the most common label. `pretraining_gain_change` is the score of
    the fine-tuned model minus that from random weights, `random_gain_change` the latter minus the most common label,
    with paired bootstrap intervals. Where the model was fine-tuned before, nothing is trained, and these are NaN.
    """
    models = {TUNED: run.tuned}
    if run.task.train:
        models |= {RANDOM: start_from_random(run, step).tuned, PRETRAINED: attach_head(run)}
    options: dict[str, Any] = {"max_length": run.max_length, "progress": run.steps.bars}
    scored = {name: score(model, run.examples, **options) for name, model in models.items()}
    main = str(read_provenance(scored[TUNED])["main"])
    scores = {name: tuple(map(float, estimate(data, main).ends)) for name, data in scored.items()}
    majority = float(scored[TUNED]["majority"]) if "majority" in scored[TUNED] else np.nan
    scores[MAJORITY] = (majority, majority, majority)
    table = np.array([scores.get(name, (np.nan,) * 3) for name in STARTS])
    return xr.Dataset(
        {
            **with_interval("start_score", ("start",), table.T),
            **_compare("pretraining_gain", scored, main, RANDOM, TUNED),
            **_compare("random_gain", scored, main, MAJORITY, RANDOM),
            **with_interval("score", ("lens",), ([value] for value in scores[TUNED])),
            "majority": majority,
        },
        {"start": list(STARTS), "lens": ["raw"]},
        {"metric": main},
    )


def start_from_random(run: TaskRun, step: int) -> TaskRun:
    """Return the same run of a randomly initialised copy of the model, in a folder of its own."""
    steps = replace(run.steps, folder=run.steps.folder / "random", part=f"{run.steps.part} from random weights")
    run.steps.say(step, "the same from random weights")
    return replace(run, steps=steps, tuning={**run.tuning, "from_scratch": True}, tuned_folder=None)


def attach_head(run: TaskRun) -> Model:
    """Return the pretrained model with the new head that fine-tuning would start from."""
    settings = make_training_settings(run.tuning)
    with silence_transformers():
        job = prepare_training(run.base, list(run.task.train), None, task="auto", tokenizer=None, settings=settings)
    return load(job.network.to(run.base.device).eval(), tokenizer=job.tokenizer)


def _compare(name: str, scored: Mapping[str, xr.Dataset], main: str, before: str, after: str) -> dict[str, Any]:
    """Return the difference of two scores, paired by example; NaN where one of them is not known."""
    ends = [np.asarray(np.nan)] * 3
    if after in scored and (before in scored or (before == MAJORITY and "majority" in scored[after])):
        label, second = (scored[after][name].values.astype(float) for name in ("label", "prediction"))
        constant = np.full_like(label, find_majority(label)[0]) if before == MAJORITY else None
        first = scored[before]["prediction"].values.astype(float) if constant is None else constant
        compared = compare_scores(METRICS[main](label, first), [METRICS[main](label, second)])
        ends = [np.asarray(compared[end][0]) for end in interval_names("change")]
    return with_interval(f"{name}_change", (), ends)

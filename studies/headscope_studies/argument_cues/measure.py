"""What is measured: cues of the data, answers of every network, and attention to the cue."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from headscope.core.errors import DataWarning
from headscope.core.estimate import take_interval
from headscope.core.example import Example, sample_examples
from headscope.core.provenance import stamp
from headscope.engine.fingerprint import fingerprint_model
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.experiments.describe import describe_study
from headscope.experiments.steps import Steps
from headscope.experiments.tuned import describe_tuning
from headscope.results.hashes import fingerprint_examples
from headscope.training.finetuning.settings import TrainingOptions, make_training_settings
from headscope.version import __version__
from headscope_studies.argument_cues.answers import NETWORKS, TUNED, Training, describe_points, join_answers
from headscope_studies.argument_cues.baselines.train import BaselineSettings
from headscope_studies.argument_cues.cue import Cue, choose_cue
from headscope_studies.argument_cues.data import ARCT, AuditData
from headscope_studies.argument_cues.heads import compare_attention, summarise_heads
from headscope_studies.argument_cues.listed import list_cues
from headscope_studies.argument_cues.paper import PATTERNS
from headscope_studies.argument_cues.parts import ALL, BALANCED, Part, list_parts
from headscope_studies.argument_cues.summary import summarise_answers

if TYPE_CHECKING:
    from headscope_studies.argument_cues import ArgumentCues


def measure_audit(study: "ArgumentCues", model: Any, out: Path, **options: Any) -> dict[str, xr.Dataset]:
    """Return `numbers`, the answers of every network, the heads, and the cues of the data."""
    base = model if isinstance(model, Model) else load(model, device=options.get("device"), dtype="float32")
    whole = study.read_data()
    training, cue = plan_training(study, base, whole, out, **options)
    parts = list_parts(whole.texts, whole.choice, balanced=study.balanced and bool(whole.balanced))
    steps = Steps(out / "runs", whole.name, 2, options.get("progress"))
    steps.begin(describe_facts(study, training, cue), overwrite=bool(options.get("overwrite")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # counted in the report
        listed = list_cues(whole, PATTERNS if whole.name == ARCT else {})
    runs = [
        steps.keep(f"{network}-{part.name}-{seed}", partial(run_network, training, cue, network, part, seed, steps.say))
        for seed in range(study.seed, study.seed + study.seeds)
        for network in NETWORKS
        for part in parts
    ]
    results = join_runs(runs, training.data, cue)
    facts = describe_study(study, base)
    numbers = describe_numbers(results["numbers"], training, whole, cue)
    facts |= {"data": fingerprint_examples(list_points(training.data), labels=True), "n": int(numbers["n"].values[0])}
    return {name: stamp(data, **facts) for name, data in {**results, "numbers": numbers, "cues": listed}.items()}


def plan_training(
    study: "ArgumentCues", base: Model, whole: AuditData, out: Path, **options: Any
) -> tuple[Training, Cue | None]:
    """Return everything that decides the answers; the cue is chosen on all training data."""
    data = whole.limit(lambda examples: sample_examples(examples, study.setting("limit"), study.seed))
    tuning = TrainingOptions(
        epochs=study.setting("epochs") or 3,
        batch_size=study.batch_size,
        max_length=study.max_length,
        learning_rate=study.learning_rate,
        warmup=study.warmup,
        limit=study.setting("train_limit"),
    )
    make_training_settings(tuning)
    baselines = BaselineSettings(epochs=study.setting("baseline_epochs") or 10, max_length=study.max_length)
    device, progress = options.get("device"), bool(options.get("bars"))
    training = Training(base, data, tuning, baselines, out / "models", device, progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return training, choose_cue(whole.train, whole.texts, study.cue)


def run_network(
    training: Training, cue: Cue | None, network: str, part: Part, seed: int, say: Callable[[int, str], None]
) -> xr.Dataset:
    """Return the answers of one network; of the model with the whole input also the attention to the cue."""
    say(1, f"{network}, {part.name}, seed {seed}")
    compared = network == TUNED and part.name == ALL and cue is not None
    answers, model = training.answer(network, part, seed)
    if not compared or model is None or cue is None:
        return answers
    say(2, f"attention to the cue, seed {seed}")
    judged = list(training.data.sets[training.data.judged])
    start = list_points(training.data).index(judged[0])
    predicted = answers["prediction"].values.reshape(-1)[start : start + len(judged)].astype(np.int64)
    heads = compare_attention(model, judged, part, cue, predicted, max_length=int(training.tuning["max_length"]))
    return answers.merge(heads.expand_dims(seed=[seed]))


def join_runs(runs: Sequence[xr.Dataset], data: AuditData, cue: Cue | None) -> dict[str, xr.Dataset]:
    """Return `numbers`, `answers`, and where a cue was followed `heads`, from the results of `run_network`."""
    own = ["prediction", "learned", "checked"]
    answers = join_answers(
        [run[own].drop_dims(["layer", "head", "lens", "query"], errors="ignore") for run in runs],
        describe_points(data, cue),
    )
    numbers, results = summarise_answers(answers), {"answers": answers}
    parts = [
        run.drop_vars(own).squeeze(drop=True).expand_dims(seed=run["seed"].values)
        for run in runs
        if "difference" in run and not numbers["run_failed"].sel(network=TUNED, part=ALL, run=int(run["seed"].item()))
    ]
    if parts:
        results["heads"] = xr.concat(parts, "seed")
        numbers = numbers.merge(summarise_heads(results["heads"]))
    if data.fair:
        trained = {"as it is": ALL, **({"balanced": BALANCED} if BALANCED in numbers["part"].values else {})}
        part = take_interval(numbers, "above_chance_change", "fair_change")
        part = part.sel(network=TUNED, set=data.fair, part=list(trained.values())).rename(part="trained")
        numbers = numbers.merge(part.assign_coords(trained=list(trained)).reset_coords(drop=True))
    return {"numbers": numbers, **results}


def describe_numbers(numbers: xr.Dataset, training: Training, whole: AuditData, cue: Cue | None) -> xr.Dataset:
    """Return the numbers along `task`, which is the dataset, with what they are numbers of."""
    data, limit = training.data, training.tuning.get("limit")
    values = {
        "n": len(data.sets[data.judged]),
        "whole_dev": len(whole.sets[whole.judged]),
        "train": min(limit or len(data.train), len(data.train)),
        "whole_train": len(data.train),
        "choices": len(data.train[0].columns["choices"]) if data.choice else 0,
        "kind": "multiple choice" if data.choice else "classification",
        "source": data.source,
        "tuning": describe_tuning(training.tuning),
        "baseline_epochs": training.baselines.epochs,
        "judged": data.judged,
        "fair_set": data.fair,
        "cue_text": cue.text if cue else "",
        "cue_label": -1 if cue is None or cue.label is None else cue.label,
    }
    return numbers.assign({name: ((), value) for name, value in values.items()}).expand_dims(task=[data.name])


def describe_facts(study: "ArgumentCues", training: Training, cue: Cue | None) -> dict[str, Any]:
    """Return the facts that two runs must share to be resumed."""
    data = training.data
    return {
        "version": __version__,
        "data": data.name,
        "cue": cue.text if cue else None,
        "seed": study.seed,
        **{f"tuning, {name}": value for name, value in training.tuning.items()},
        "baseline epochs": training.baselines.epochs,
        **fingerprint_model(training.base),
        "examples to learn from": fingerprint_examples(data.train, labels=True),
        "points to answer": fingerprint_examples(list_points(data), labels=True),
    }


def list_points(data: AuditData) -> list[Example]:
    """Return the points of all sets, in their order."""
    return [example for examples in data.sets.values() for example in examples]

"""Networks trained on a part of the input, with their answers to all points of all sets."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.example import Example, sample_examples
from headscope.engine.model import Model
from headscope.experiments.tuned import ignore_truncation
from headscope.training.find_task import find_task
from headscope.training.finetuning.finetune import finetune
from headscope.training.finetuning.settings import TrainingOptions
from headscope.training.labels import find_majority
from headscope.training.scoring import prepare_scoring
from headscope_studies.argument_cues.baselines.networks import BASELINES
from headscope_studies.argument_cues.baselines.train import BaselineSettings, train_baseline
from headscope_studies.argument_cues.cue import Cue
from headscope_studies.argument_cues.data import COPY, AuditData
from headscope_studies.argument_cues.parts import Part, select_part

TUNED = "model"
NETWORKS = (TUNED, *BASELINES)
CHECKED = 500
"""Number of training examples that show whether a network has learned anything; a random sample of more."""

Right = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Training:
    """What networks are trained on, and how; `tuning` is that of the model."""

    base: Model
    data: AuditData
    tuning: TrainingOptions
    baselines: BaselineSettings
    folder: Path
    device: str | None = None
    progress: bool = False

    def answer(self, network: str, part: Part, seed: int, *, keep: bool = False) -> tuple[xr.Dataset, Model | None]:
        """Return the answers of one network, trained on one part of the input with one seed; and the tuned model.

        `keep` leaves the tuned model in the folder.
        """
        whole = self.data.balanced if part.balanced else self.data.train
        train = select_part(sample_examples(whole, self.tuning.get("limit"), seed), part)
        points = select_part([example for examples in self.data.sets.values() for example in examples], part)
        points = [replace(point, id=str(number)) for number, point in enumerate(points)]  # sets share ids
        checked = sample_examples(train, CHECKED, seed)
        with ignore_truncation():
            model, predict = self._train(network, train, seed)
            predicted, learned = predict(points), predict(checked)
        if not keep and network == TUNED:
            shutil.rmtree(self.folder / _name_folder(seed), ignore_errors=True)
        right = learned == np.array([example.label for example in checked])
        values = {"prediction": ("point", predicted.astype(np.int8)), "learned": right.mean(), "checked": len(checked)}
        dims = {"network": [network], "part": [part.name], "seed": [seed]}
        return xr.Dataset(values).expand_dims(dims), model

    def _train(self, network: str, train: Sequence[Example], seed: int) -> tuple[Model | None, Any]:
        """Return the tuned model, and a function from examples to predictions."""
        if network != TUNED:
            task, _ = find_task("auto", train)
            trained = train_baseline(network, self.base, task, train, self.baselines, seed=seed, device=self.device)
            return None, lambda examples: trained.answer(examples)["prediction"]
        options: Any = {**self.tuning, "seed": seed, "limit": None}
        out = self.folder / _name_folder(seed)
        model = finetune(
            self.base, train, out=out, overwrite=True, device=self.device, progress=self.progress, **options
        )
        return model, lambda examples: _predict(model, examples, int(options["max_length"]))


def describe_points(data: AuditData, cue: Cue | None) -> xr.Dataset:
    """Return every point of every set: its label, its group of copies, and what the cue points to; −1 is nothing."""
    examples = [(name, example) for name, members in data.sets.items() for example in members]
    groups = {key: number for number, key in enumerate(dict.fromkeys(_group(*pair) for pair in examples))}
    pointed = [cue.point(list(members)) if cue else np.full(len(members), -1) for members in data.sets.values()]
    labels = np.array([int(example.label or 0) for _, example in examples])
    columns: Mapping[str, Any] = {
        "set": [name for name, _ in examples],
        "label": labels,
        "group": [groups[_group(*pair)] for pair in examples],
        "cue": np.concatenate(pointed),
    }
    table = xr.Dataset({name: ("point", values) for name, values in columns.items() if name != "set"})
    chances = [_find_chance(members) for members in data.sets.values()]
    more = {
        "chance": ("set", chances),
        "train_chance": _find_chance(data.train),
        "choices": len(examples[0][1].columns["choices"]) if data.choice else 0,
    }
    return table.assign(more).assign_coords(set=list(data.sets), of=("point", np.array(columns["set"])))


def join_answers(runs: Sequence[xr.Dataset], points: xr.Dataset) -> xr.Dataset:
    """Join the answers of runs, each of one network, part and seed, with the points; −1 where one was not run."""
    joined = xr.combine_by_coords(
        [run.drop_attrs() for run in runs], fill_value={"prediction": -1, "checked": 0}, join="outer"
    )
    assert isinstance(joined, xr.Dataset)
    ordered = {name: list(dict.fromkeys(str(run[name].item()) for run in runs)) for name in ("network", "part")}
    joined = joined.sel(ordered)
    return joined.assign(prediction=joined["prediction"].astype(np.int8)).merge(points)


def _predict(model: Model, examples: Sequence[Example], max_length: int) -> Right:
    job = prepare_scoring(model, list(examples), task="auto", batch_size=64, max_length=max_length)
    return np.asarray(job.answer()["prediction"])


def _find_chance(examples: Sequence[Example]) -> float:
    """Return the accuracy without any input: one over the number of choices, or the share of the most common class."""
    if "choices" in examples[0].columns:
        return 1 / len(examples[0].columns["choices"])
    return find_majority(example.label for example in examples)[1]


def _group(name: str, example: Example) -> tuple[str, str]:
    return name, example.id.removesuffix(COPY)


def _name_folder(seed: int) -> str:
    return f"tuned-{seed}"

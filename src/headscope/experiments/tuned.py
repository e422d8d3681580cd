"""One task of a study with its models: the base model, and the one fine-tuned on the task."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import DataWarning, InputError, suggest_name
from headscope.core.example import Example, sample_examples
from headscope.core.prose import count_noun
from headscope.data.labels import LABEL_NAME
from headscope.engine.batch import check_max_length
from headscope.engine.capture import capture
from headscope.engine.fingerprint import fingerprint_model
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.experiments.steps import Steps, check_facts
from headscope.experiments.tasks import TaskData, same_name
from headscope.measuring.measure import measure
from headscope.measuring.plan import count_tokens
from headscope.results.hashes import fingerprint, fingerprint_columns, fingerprint_examples, hash_file
from headscope.training.find_task import find_task, find_task_of_head
from headscope.training.finetuning.finetune import finetune
from headscope.training.finetuning.folder import STAMP, list_steps
from headscope.training.finetuning.settings import TrainingOptions, make_training_settings
from headscope.version import __version__

WEIGHTS = (".safetensors", ".bin")
ABLATION_BATCH = {"cpu": 8, "cuda": 64}
"""Number of examples per batch, by device. Small batches of similar lengths have less padding."""

PADDED_BATCH = 32
"""Inputs measured at once where all are padded: several lenses of every layer are in memory together."""

SHAPE = ("model_type", "num_hidden_layers", "num_attention_heads")


@dataclass(frozen=True)
class TaskRun:
    """What a study measures of one task: its data, its models, and the folder of its steps."""

    task: TaskData
    base: Model
    steps: Steps
    tuning: TrainingOptions
    max_length: int
    seed: int = 0
    limit: int | None = None
    tuned_folder: Path | None = None  # of a model that is fine-tuned already
    device: str | None = None
    checkpoints: int = 0  # models that are kept during fine-tuning

    @cached_property
    def examples(self) -> list[Example]:
        """The examples that are studied: all of dev, or a random sample."""
        return sample_examples(self.task.dev, self.limit, self.seed)

    @cached_property
    def tuned(self) -> Model:
        """The fine-tuned model, trained now unless its folder has it."""
        if self.tuned_folder is not None:
            self.steps.say(1, f"the model is fine-tuned already: {self.tuned_folder}")
            return load(self.tuned_folder, device=self.device, dtype="float32")  # as the base, and as training has it
        folder = self.steps.folder / "model"
        done = (folder / "config.json").is_file()
        examples = count_noun(self.train_size, "example")
        self.steps.say(1, "the model was fine-tuned before" if done else f"fine-tuning on {examples}")
        return finetune(
            self.base,
            list(self.task.train),
            dev=self.examples,
            out=folder,
            resume=True,
            device=self.device,
            progress=self.steps.bars,
            checkpoints=self.checkpoints,
            **self.tuning,
        )

    def list_checkpoints(self) -> dict[int, Path]:
        """Return the folders of the models that were kept during fine-tuning, by step."""
        return list_steps(self.tuned_folder or self.steps.folder / "model")

    @cached_property
    def lengths(self) -> xr.Dataset:
        """The number of tokens of every example, truncated and whole, and the value dimensions of a head."""
        with ignore_truncation():
            whole = count_tokens(self.base, self.examples, None)
            text = self.examples[0].text
            values = capture(self.base, [text], layers=0, keep=("values",), max_length=self.max_length).values
        assert values is not None
        tokens = [min(count, self.max_length) for count in whole]
        variables = {"tokens": ("example", tokens), "whole": ("example", whole), "value_size": values[0].shape[-1]}
        return xr.Dataset(variables, coords={"example": [example.id for example in self.examples]})

    @property
    def train_size(self) -> int:
        """How many examples the model is fine-tuned on."""
        limit = self.tuning.get("limit")
        return len(self.task.train) if limit is None else min(limit, len(self.task.train))

    def measure(
        self, model: Model, name: str, lenses: Mapping[str, str], statistics: Sequence[str], **options: Any
    ) -> xr.Dataset:
        """Measure the studied examples, one value per example and head; `lenses` are specs by the labels they get."""
        if options.get("pad_to") is not None:
            options = {"batch_size": PADDED_BATCH, **options}
        with ignore_truncation():
            measured = measure(
                model,
                self.examples,
                lens=list(lenses.values()),
                statistics=list(statistics),
                max_length=self.max_length,
                rows=True,
                out=self.steps.folder / f"{name}.state",
                resume=True,
                progress=self.steps.bars,
                **options,
            )
        return measured.isel(site=0).assign_coords(lens=list(lenses))

    def facts(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the facts that two runs must share to be resumed; those that the user chose come first."""
        tuned = self.tuned_folder is not None
        return {
            "version": __version__,
            "task": self.task.name,
            "model": self.base.spec,
            "max_length": self.max_length,
            **own,
            "seed": self.seed,
            "limit": self.limit,
            "tuned already": tuned,
            **({} if tuned else {f"tuning, {name}": value for name, value in self.tuning.items()}),
            **fingerprint_model(self.base),
            **(hash_model_files(self.tuned_folder) if self.tuned_folder else {}),
            "examples to learn from": None if tuned else fingerprint_examples(self.task.train, labels=True),
            "inputs to study": fingerprint_examples(self.examples, labels=True),
            "columns of the inputs": fingerprint_columns(self.examples),
        }

    def describe(self, **more: Any) -> xr.Dataset:
        """Return the sizes, hashes and origin of the task's data and model, as scalar variables."""
        tuned = self.tuned_folder is not None
        whole = self.lengths["whole"].values
        values = {
            "value_size": int(self.lengths["value_size"]),
            "train": 0 if tuned else self.train_size,
            "whole_dev": len(self.task.dev),
            "mean_tokens": float(np.mean(self.lengths["tokens"].values)),
            "most_tokens": int(whole.max()),
            "cut": int((whole > self.max_length).sum()),
            "kind": self.task.kind,
            "source": self.task.source,
            "tuned_hash": self.tuned.weights_hash,
            "data_hash": fingerprint_examples(self.examples, labels=True),
            "tuning": "" if tuned else describe_tuning(self.tuning),
            **more,
        }
        return xr.Dataset({name: ((), value) for name, value in values.items()})


def check_runs(runs: Sequence[TaskRun], own: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Check settings, labels, tuned models and folders of all tasks before anything is run."""
    for run in runs:
        make_training_settings(run.tuning)
        check_max_length(run.base, [*run.task.train, *run.examples], run.max_length)
        if not overwrite:
            check_facts(run.steps.folder, run.facts(own))
        if run.tuned_folder is None:
            train = sample_examples(run.task.train, run.tuning.get("limit"), run.seed)
            find_task("auto", train)[0].prepare(run.examples, run.task.name)
        else:
            _check_tuned(run, run.tuned_folder)


def find_example(run: TaskRun, wanted: str | None) -> Example | None:
    """Return the example of a task with this id; a limit does not matter."""
    return next((example for example in run.task.dev if example.id == wanted), None)


def check_example(runs: Sequence[TaskRun], wanted: str | None) -> None:
    """Raise InputError if no task has an example of this id."""
    if wanted is None or any(find_example(run, wanted) for run in runs):
        return
    for run in runs:
        if any(example.id == wanted for example in run.task.train):
            raise InputError(
                f"The input '{wanted}' is one that {run.task.name} is fine-tuned on, and only others are shown, such "
                f"as '{run.task.dev[0].id}'."
            )
    known = [example.id for run in runs for example in run.task.dev]
    first = ", ".join(f"'{name}'" for name in known[:5])
    raise InputError(
        f"No input is called '{wanted}', so it cannot be shown. {suggest_name(wanted, known)}There are {len(known):,}, "
        f"such as {first}."
    )


def find_tuned_folder(tuned: str | None, task: str, count: int) -> Path | None:
    """Return the folder of a task's tuned model: `tuned` itself, or the one in it that is named after the task."""
    if tuned is None:
        return None
    folder = Path(tuned)
    if (folder / "config.json").is_file():
        if count > 1:
            raise InputError(
                f"{folder} is one tuned model, but {count} tasks are studied. Name one task, or give a folder that "
                "holds a folder for each."
            )
        return folder
    for path in sorted(folder.glob("*")):
        if same_name(path.name, task):
            return path
    raise InputError(
        f"{folder} is no model, for it holds no config.json, and no folder of the task {task} either. Give the folder "
        "that hs.finetune made."
    )


def number_by_model(examples: Sequence[Example], folder: Path, where: str) -> list[Example]:
    """Return the examples with labels that have names numbered as a tuned classifier numbers its classes."""
    if not any(LABEL_NAME in example.columns for example in examples):
        return list(examples)
    network = load(folder, device="cpu").network
    task = find_task_of_head("auto", network, examples)
    return task.prepare(examples, where) if task.name == "classification" else list(examples)


def hash_model_files(folder: Path) -> dict[str, str]:
    """Return hashes of the files of a tuned model: its weights, its config, and the rest, which is its tokenizer."""
    groups: dict[str, list[Path]] = {"tuned weights": [], "tuned config": [], "tuned tokenizer": []}
    for path in sorted(folder.iterdir()):
        kind = "weights" if path.suffix in WEIGHTS else "config" if path.name == "config.json" else "tokenizer"
        if path.is_file() and path.name != STAMP:
            groups[f"tuned {kind}"].append(path)
    return {name: fingerprint(f"{path.name} {hash_file(path)}" for path in files) for name, files in groups.items()}


@contextmanager
def ignore_truncation() -> Iterator[None]:
    """Ignore warnings about truncated texts in this block: the report counts them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"(?s).*\b(cut|truncated)\b", DataWarning)
        yield


def _check_tuned(run: TaskRun, folder: Path) -> None:
    tuned = load(folder, device="cpu")
    for name in SHAPE:
        theirs, ours = (getattr(model.network.config, name, None) for model in (tuned, run.base))
        if theirs != ours:
            raise InputError(
                f"The tuned model {folder} has {name}={theirs}, but the model it is compared with, {run.base.spec}, "
                f"has {name}={ours}. Give as model the one that it was tuned from."
            )
    find_task_of_head("auto", tuned.network, run.examples).prepare(run.examples, run.task.name)


def describe_tuning(tuning: TrainingOptions) -> str:
    """Return the settings of a fine-tuning in words."""
    warmup = f", warm-up {tuning['warmup']:g}" if tuning["warmup"] else ""
    epochs = count_noun(tuning["epochs"], "epoch")
    return f"{epochs}, batch {tuning['batch_size']}, learning rate {tuning['learning_rate']:g}{warmup}"

"""What all scores of a model share: examples that are read, checked and encoded, and the answers under edits."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from headscope.core.edit import Edit
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.labels import name_labels
from headscope.data.tokenizing.encode import EncodedExample
from headscope.engine.batch import check_max_length
from headscope.engine.edited import edit_if_any
from headscope.engine.images import check_reads_texts
from headscope.engine.load import load
from headscope.engine.model import Model, check_model
from headscope.results.hashes import fingerprint_examples
from headscope.training import metrics
from headscope.training.encode import require_padding
from headscope.training.find_task import find_task_of_head
from headscope.training.finetuning.folder import read_stamp
from headscope.training.finetuning.job import read_examples
from headscope.training.options import ScoringOptions
from headscope.training.predict import predict
from headscope.training.task import Answers, Task, describe_task


@dataclass(frozen=True)
class ScoringJob:
    """A model, its task, and the encoded examples that it is scored on."""

    model: Model
    task: Task
    examples: Sequence[Example]
    tokenizer: Any
    rows: Sequence[EncodedExample]
    batch_size: int
    max_length: int | None
    pad_to: int | None = None
    data: str = ""  # a hash of the examples as they were read, before labels were numbered as by the model

    def answer(self, edits: Sequence[Edit] = (), *, rows: slice = slice(None), quiet: bool = True) -> Answers:
        """Return the answers of the model under edits of its attention, or as it is."""
        sizes: dict[str, Any] = {"batch_size": self.batch_size, "pad_to": self.pad_to}
        with edit_if_any(self.model, edits):
            return predict(self.model.network, self.tokenizer, self.task, self.rows[rows], **sizes, quiet=quiet)

    def describe(self, command: str) -> dict[str, Any]:
        """Return the facts that results are stamped with."""
        return {"command": command, **self._facts}

    @cached_property
    def _facts(self) -> dict[str, Any]:
        model = self.model
        return {
            "model": model.spec,
            "weights_hash": model.weights_hash,
            "device": model.device.type,
            "dtype": str(model.network.dtype).removeprefix("torch."),
            **describe_task(self.task),
            "main": self.task.main,
            "draws": metrics.DRAWS,
            "seed": metrics.SEED,
            "data": self.data,
            "labels": name_labels(self.examples) if self.task.name == "classification" else None,
            "n": len(self.examples),
            "max_length": self.max_length,
            "batch_size": self.batch_size,
            "pad_to": self.pad_to,
        }


def prepare_scoring(model: Any, data: Any, *, pad_to: int | None = None, **options: Any) -> ScoringJob:
    """Return the job of scoring a model; `options` are those of ScoringOptions."""
    return make_scoring_job(ScoringOptions(model, data, **options), pad_to=pad_to)


def make_scoring_job(options: ScoringOptions, *, pad_to: int | None = None) -> ScoringJob:
    """Load the model, read and check the data, and encode them."""
    model, batch_size = options.model, options.batch_size
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, but got {batch_size}.")
    if model is None or isinstance(model, str | Path):
        model = load(model)
    check_model(model)
    check_reads_texts(model, "scores are those of texts")
    examples = read_examples(options.data, "the data")
    task_object = find_task_of_head(options.task, model.network, examples)
    read, examples = examples, task_object.prepare(examples, "the data")
    longest = _find_max_length(model, examples, options.max_length)
    tokenizer = require_padding(model.tokenizer, model.network.config, task_object.padding_side)
    rows = task_object.encode(tokenizer, examples, longest)
    data = fingerprint_examples(read, labels=True)
    return ScoringJob(model, task_object, examples, tokenizer, rows, batch_size, longest, pad_to, data)


def _find_max_length(model: Model, examples: Sequence[Example], max_length: int | None) -> int | None:
    """Return the requested length, else that of fine-tuning, else what the model can read."""
    tuning = read_stamp(Path(model.source)) if model.source else None
    tuned = tuning["facts"]["max_length"] if tuning else None
    return check_max_length(model, examples, tuned if max_length is None else max_length)

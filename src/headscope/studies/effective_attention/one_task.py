"""The study of one task, step by step."""

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import DataWarning
from headscope.core.example import Example, sample_examples
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.experiments.steps import Hashed, Steps
from headscope.results.stamp import fingerprint, fingerprint_examples, stamp
from headscope.studies.effective_attention import example, looking, reduce, scoring, timing
from headscope.studies.effective_attention.looking import Look
from headscope.studies.effective_attention.tasks import TaskData
from headscope.training.finetune import finetune
from headscope.training.settings import TrainingOptions

STEPS = 7
BATCHES = {"cpu": (8,), "cuda": (8, 64)}
"""Inputs in a batch whose evaluation is timed; the paper's is 8."""


@dataclass(frozen=True)
class Plan:
    """What decides the numbers of one task's study, beside the models."""

    task: TaskData
    look: Look
    tuning: TrainingOptions
    limit: int | None
    example: str | None
    tuned: Path | None  # a model that is tuned already

    @property
    def studied(self) -> list[Example]:
        """The examples that are studied: all, or so many at random."""
        return sample_examples(self.task.dev, self.limit, self.look.seed)

    @property
    def shows_wanted(self) -> bool:
        """Whether the task has the input that somebody wants to see."""
        return self.example is not None and any(each.id == self.example for each in self.task.dev)

    def steps(self, out: Path) -> Steps:
        """Where its steps are kept."""
        return Steps(out / self.task.name, self.task.name, STEPS, self.look.progress)

    def facts(self, base: Model) -> dict[str, Any]:
        """What two runs must have in common to be one; what the user chose comes first."""
        tuning = {} if self.tuned is not None else {f"tuning, {name}": each for name, each in self.tuning.items()}
        return {
            "task": self.task.name,
            "model": base.spec,
            "max_length": self.look.max_length,
            "classifier": self.look.classifier,
            "seed": self.look.seed,
            "limit": self.limit,
            "tuned already": self.tuned is not None,
            **tuning,
            "weights": Hashed(base.weights_hash),
            "tuned weights": None if self.tuned is None else Hashed(_weights(self.tuned)),
            "examples to learn from": None
            if self.tuned is not None
            else Hashed(fingerprint_examples(self.task.train, labels=True)),
            "inputs to study": Hashed(_fingerprint(self.studied)),
        }


def study_task(plan: Plan, base: Model, out: Path, *, device: str | None) -> dict[str, xr.Dataset]:
    """Tune, look at both models, score, time, and reduce; what was done before is taken from its folder in `out`."""
    steps = plan.steps(out)
    folder = steps.folder
    steps.begin(plan.facts(base))
    tuned = cache(partial(_tuned, plan, base, folder, steps, device))  # loaded when it is first needed
    if not steps.done("numbers"):
        plain = _Quietly(plan, base, tuned(), steps)
        steps.kept("numbers", plain.numbers)
        for state in folder.glob("*.state"):
            state.unlink()
    name = f"maps-{fingerprint([str(plan.example)])}" if plan.shows_wanted else "maps"
    if not (steps.done("times") and steps.done(name)):
        plain = _Quietly(plan, base, tuned(), steps)
        steps.kept(name, plain.maps)
        steps.kept("times", plain.times)
    return {step: steps.kept(kept, xr.Dataset) for step, kept in (("numbers",) * 2, ("times",) * 2, ("maps", name))}


@dataclass(frozen=True)
class _Quietly:
    """The steps after tuning; that texts are cut is said in the report's first table, and not by every step."""

    plan: Plan
    base: Model
    tuned: Model
    steps: Steps

    def numbers(self) -> xr.Dataset:
        """All that is the same whenever the study is run."""
        plan, examples, folder = self.plan, self.plan.studied, self.steps.folder
        look = plan.look
        with _cuts_ignored():
            sizes = looking.lengths(self.base, examples, look.max_length)
            self.steps.say(2, f"looking at every head of the tuned model and of the base, {len(examples):,} inputs")
            both = looking.looked_at(self.tuned, examples, look, folder / "tuned.state", against=self.base)
            self.steps.say(3, "the same for the base alone")
            before = looking.looked_at(self.base, examples, look, folder / "base.state")
            self.steps.say(4, "beside the norm-based analysis")
            norms = looking.beside_norms(self.tuned, examples, look, folder / "norms.state")
            self.steps.say(5, "scoring with every attention in place")
            scored = self.steps.kept(
                "scores", lambda: scoring.scores(self.tuned, examples, look.max_length, progress=look.progress)
            )
        return _joined(plan, sizes, (before, both), norms, scored, self.tuned.weights_hash)

    def maps(self) -> xr.Dataset:
        """One head on one example."""
        self.steps.say(6, "one head on one example")
        plan, longest = self.plan, self.plan.look.max_length
        with _cuts_ignored():
            if plan.shows_wanted:  # also where a limit left it out of what is studied
                one = next(each for each in plan.task.dev if each.id == plan.example)
            else:
                sizes = looking.lengths(self.base, plan.studied, longest)
                one = example.telling(plan.studied, sizes["tokens"].values.tolist(), int(sizes["value_size"]))
            return example.maps(self.tuned, one, longest)

    def times(self) -> xr.Dataset:
        """Evaluation time, which is never twice the same."""
        self.steps.say(7, "timing evaluation with standard and with effective attention")
        sizes = BATCHES.get(self.tuned.device.type, BATCHES["cpu"])
        with _cuts_ignored():
            return timing.times(self.tuned, self.plan.studied, self.plan.look.max_length, sizes)


def _tuned(plan: Plan, base: Model, folder: Path, steps: Steps, device: str | None) -> Model:
    if plan.tuned is not None:
        steps.say(1, f"the model is tuned already: {plan.tuned}")
        return load(plan.tuned, device=device, dtype="float32")  # as the base is, and as tuning here would have it
    done = (folder / "model" / "config.json").is_file()
    steps.say(1, "the model was tuned before" if done else f"fine-tuning on {_many(plan):,} examples")
    return finetune(
        base,
        list(plan.task.train),
        dev=plan.studied,
        out=folder / "model",
        resume=True,
        device=device,
        progress=plan.look.progress,
        **plan.tuning,
    )


def _weights(folder: Path) -> str:
    """A short name for the weights in a folder, so that steps of another model are not taken for its own."""
    found = []
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")]):
        with path.open("rb") as file:
            found.append(hashlib.file_digest(file, "sha256").hexdigest()[:16])
    return "-".join(found)


def _many(plan: Plan) -> int:
    limit = plan.tuning.get("limit")
    return len(plan.task.train) if limit is None else min(limit, len(plan.task.train))


def _settings(plan: Plan) -> str:
    """How the model was tuned, in short; nothing where it came tuned."""
    if plan.tuned is not None:
        return ""
    one = plan.tuning
    epochs, warm = one["epochs"], f", warm-up {one['warmup']:g}" if one["warmup"] else ""
    spelled = f"{epochs} epoch{'s' if epochs != 1 else ''}"
    return f"{spelled}, batch {one['batch_size']}, learning rate {one['learning_rate']:g}{warm}"


def _joined(
    plan: Plan,
    sizes: xr.Dataset,
    roles: tuple[xr.Dataset, xr.Dataset],
    norms: xr.Dataset,
    scored: xr.Dataset,
    tuned_hash: str,
) -> xr.Dataset:
    """Every number of the task in one Dataset."""
    tokens, longest = sizes["tokens"].values, plan.look.max_length
    classes = reduce.length_classes(tokens, int(sizes["value_size"]), longest)
    order = [str(each) for each in sizes["example"].values]
    rows = [each.sel(example=order) for each in roles]
    parts = [reduce.numbers_of_role(each, classes, plan.look.classifier) for each in rows]
    whole = xr.concat(parts, "role").assign_coords(role=list(reduce.ROLES))
    whole["n"] = whole["n"].isel(role=0)
    about = {
        "value_size": int(sizes["value_size"]),
        "train": 0 if plan.tuned is not None else _many(plan),
        "whole_dev": len(plan.task.dev),
        "mean_tokens": float(np.mean(tokens)),
        "most_tokens": int(sizes["whole"].max()),
        "cut": int((sizes["whole"] > longest).sum()),
    }
    found = xr.merge(
        [whole, reduce.similarity(rows[1]), reduce.agreement(norms), scored.drop_attrs(), xr.Dataset(about)],
        compat="no_conflicts",
        join="outer",
    )
    texts = {"kind": plan.task.kind, "source": plan.task.source, "metric": str(scored.attrs["metric"])}
    texts |= {"tuned_hash": tuned_hash, "data_hash": _fingerprint(plan.studied), "tuning": _settings(plan)}
    found = found.assign({name: ((), each) for name, each in texts.items()})
    return found.expand_dims(task=[plan.task.name]).drop_attrs()


@contextmanager
def _cuts_ignored() -> Iterator[None]:
    """Warnings as they were, but for those that texts are cut."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"(?s).*\bcut\b", DataWarning)
        yield


def whole_of(parts: Sequence[xr.Dataset], **facts: Any) -> xr.Dataset:
    """The tasks side by side, stamped with what was studied of each."""
    whole = xr.concat(parts, "task", join="outer", data_vars="all", combine_attrs="override")
    names = [str(each) for each in whole["task"].values]
    data = dict(zip(names, map(str, whole["data_hash"].values), strict=True))
    tuned = dict(zip(names, map(str, whole["tuned_hash"].values), strict=True))
    return stamp(whole, **{**facts, "data": data, "tuned": tuned, "n": int(whole["n"].sel(length="all").sum())})


def _fingerprint(examples: Sequence[Example]) -> str:
    return fingerprint_examples(examples, labels=True)

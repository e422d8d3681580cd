"""How good a tuned model is, with intervals and every single answer."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.spec import to_spec
from headscope.engine.batch import max_input_length
from headscope.engine.edited import edited, make_edit
from headscope.engine.load import load
from headscope.engine.model import Model, check_model
from headscope.results.stamp import stamp
from headscope.training import metrics
from headscope.training.find import task_of_head
from headscope.training.folder import stamp_of
from headscope.training.job import check_length, examples_of, fingerprint_of
from headscope.training.labels import majority
from headscope.training.predict import predicted
from headscope.training.rows import with_padding
from headscope.training.task import Found, Score, Task

AXES = {"logits": ("example", "class")}


def score(
    model: Any,
    data: Any,
    *,
    task: str = "auto",
    edit: Any = None,
    batch_size: int = 32,
    max_length: int | None = None,
    pad_to: int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Score a model with a head on labelled examples.

    For each metric x that applies there are x, `x_low` and `x_high`: Wilson's 95 % interval for accuracy, else that of
    1,000 bootstrap draws of examples. Along `example` stand `prediction`, `label`, `logits`, and `margin`, by how much
    the right answer leads; `majority` is what always giving the most common label would reach. `edit` changes the
    model's attention while it runs, as in `hs.edited`. Texts are cut as they were when the model was tuned, where its
    folder says so, else where the model ends. `pad_to` fills them up to so many tokens, for edits in which padding
    takes part.
    """
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, but got {batch_size}.")
    if model is None or isinstance(model, str | Path):
        model = load(model)
    check_model(model)
    examples = examples_of(data, "the data")
    found = task_of_head(task, model.network, examples)
    found.check(examples, "the data")
    check_length(model, max_length)
    longest = max_length or _tuned_length(model) or max_input_length(model)
    words = with_padding(model.tokenizer, model.network.config)
    rows = found.rows(words, examples, longest)
    edits = [make_edit(each) for each in ([] if edit is None else edit if isinstance(edit, list | tuple) else [edit])]
    with edited(model, *edits) if edits else nullcontext():
        answers = predicted(model.network, words, found, rows, batch_size=batch_size, pad_to=pad_to, quiet=not progress)
    facts = {
        "command": "hs.score",
        "model": model.spec,
        "weights_hash": model.weights_hash,
        "edits": [to_spec(each) for each in edits],
        "data": fingerprint_of(examples),
        "n": len(examples),
        "max_length": longest,
        "pad_to": pad_to,
        "batch_size": batch_size,
        "device": model.device.type,
        "dtype": str(model.network.dtype).removeprefix("torch."),
    }
    return stamp(_dataset(found, examples, answers), **facts, **_about(found))


def _dataset(task: Task, examples: Sequence[Example], answers: Found) -> xr.Dataset:
    """Metrics as single numbers, answers along `example`."""
    held: dict[str, Any] = {}
    for name, each in task.scores(answers).items():
        held |= _three(name, each)
    if task.name in ("classification", "choice"):
        label, share = majority(answers["label"])
        said = {"long_name": f"share of the most common label, {label}"}
        held["majority"] = ((), share, said)
    held["n"] = ((), len(examples))
    held |= {name: (AXES.get(name, ("example",)), each) for name, each in answers.items()}
    axes: dict[str, Any] = {"example": np.array([each.id for each in examples], dtype=np.str_)}
    if "logits" in answers:
        classes = getattr(task, "classes", None) or map(str, range(answers["logits"].shape[1]))
        axes["class"] = np.array(list(classes), dtype=np.str_)
    return xr.Dataset(held, axes)


def _three(name: str, score: Score) -> dict[str, Any]:
    kind = {"interval": f"95 %, {score.interval}"}
    return {
        name: ((), score.value, kind),
        f"{name}_low": ((), score.low),
        f"{name}_high": ((), score.high),
    }


def _about(task: Task) -> dict[str, Any]:
    return {**task.facts(), "main": task.main, "draws": metrics.TIMES, "seed": metrics.SEED}


def _tuned_length(model: Model) -> int | None:
    """What texts were cut to when the model was tuned, if its folder says so."""
    stamp = stamp_of(Path(model.source)) if model.source else None
    return None if stamp is None else stamp["facts"]["max_length"]

"""Score a tuned model: metrics with confidence intervals, and the answer to every example."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.example import Example, example_coordinates, tabulate_examples
from headscope.engine.batch import check_max_length
from headscope.engine.edited import describe_edits, edit_if_any, make_edits
from headscope.engine.load import load
from headscope.engine.model import Model, check_model
from headscope.results.stamp import fingerprint_examples, stamp
from headscope.training import metrics
from headscope.training.encode import require_padding
from headscope.training.find_task import find_task_of_head
from headscope.training.folder import read_stamp
from headscope.training.job import read_examples
from headscope.training.labels import find_majority
from headscope.training.predict import predict
from headscope.training.task import Answers, Task


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

    For each metric x there are x, `x_low` and `x_high`: Wilson's 95 % interval for accuracy, else the percentile
    interval of 1,000 bootstrap draws of examples. Along `example` are `prediction`, `label`, `logits`, and `margin`,
    the logit of the label minus the largest of the others; `majority` is the share of the most common label. `edit`
    changes the model's attention while it runs, as in `hs.edited`. Texts are truncated as in fine-tuning, where the
    model's folder says so, else to what the model can read. `pad_to` pads them to a number of tokens, for edits that
    use padding.

    >>> from transformers import BertForSequenceClassification
    >>> untrained = hs.load(BertForSequenceClassification(model.network.config), tokenizer=model.tokenizer)
    >>> sorted(hs.score(untrained, [{"text": "Good.", "label": 1}], progress=False).data_vars)[:3]
    ['accuracy', 'accuracy_high', 'accuracy_low']
    """
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, but got {batch_size}.")
    if model is None or isinstance(model, str | Path):
        model = load(model)
    check_model(model)
    examples = read_examples(data, "the data")
    kind = find_task_of_head(task, model.network, examples)
    kind.check(examples, "the data")
    longest = _find_max_length(model, examples, max_length)
    tokenizer = require_padding(model.tokenizer, model.network.config)
    rows = kind.encode(tokenizer, examples, longest)
    edits = make_edits(edit)
    with edit_if_any(model, edits):
        sizes: dict[str, Any] = {"batch_size": batch_size, "pad_to": pad_to}
        answers = predict(model.network, tokenizer, kind, rows, **sizes, quiet=not progress)
    return stamp(
        _make_dataset(kind, examples, answers),
        **_describe_run(model, kind),
        **describe_edits(edits),
        data=fingerprint_examples(examples, labels=True),
        n=len(examples),
        max_length=longest,
        **sizes,
    )


def _find_max_length(model: Model, examples: Sequence[Example], max_length: int | None) -> int | None:
    """Return the requested length, else that of fine-tuning, else what the model can read."""
    tuning = read_stamp(Path(model.source)) if model.source else None
    tuned = tuning["facts"]["max_length"] if tuning else None
    return check_max_length(model, examples, tuned if max_length is None else max_length)


def _make_dataset(task: Task, examples: Sequence[Example], answers: Answers) -> xr.Dataset:
    """Return metrics as single numbers, and answers along `example`, with ids and texts as coordinates."""
    variables: dict[str, Any] = {}
    for name, metric in task.compute_metrics(answers).items():
        low, high = metric.interval()
        variables[name] = ((), metric.value, {"interval": f"95 %, {metric.method}"})
        variables |= {f"{name}_low": ((), low), f"{name}_high": ((), high)}
    if task.name in ("classification", "choice"):
        label, share = find_majority(answers["label"])
        variables["majority"] = ((), share, {"long_name": f"share of the most common label, {label}"})
    variables["n"] = ((), len(examples))
    axes = {"logits": ("example", "class")}
    variables |= {name: (axes.get(name, ("example",)), values) for name, values in answers.items()}
    fields = {name: values for name, values in tabulate_examples(examples).items() if name not in variables}
    coords: dict[str, Any] = example_coordinates(fields)
    if "logits" in answers:
        classes = getattr(task, "classes", None) or map(str, range(answers["logits"].shape[1]))
        coords["class"] = np.array(list(classes), dtype=np.str_)
    return xr.Dataset(variables, coords)


def _describe_run(model: Model, task: Task) -> dict[str, Any]:
    return {
        "command": "hs.score",
        "model": model.spec,
        "weights_hash": model.weights_hash,
        "device": model.device.type,
        "dtype": str(model.network.dtype).removeprefix("torch."),
        **task.facts(),
        "main": task.main,
        "draws": metrics.DRAWS,
        "seed": metrics.SEED,
    }

"""Score a tuned model: metrics with confidence intervals, and the answer to every example."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import with_interval
from headscope.core.example import Example, example_coordinates, tabulate_examples
from headscope.core.options import takes_options
from headscope.core.provenance import stamp
from headscope.engine.edited import describe_edits, make_edits
from headscope.training.labels import find_majority
from headscope.training.options import ScoreOptions
from headscope.training.scoring import make_scoring_job
from headscope.training.task import Answers, Task


@takes_options(ScoreOptions)
def score(options: ScoreOptions) -> xr.Dataset:
    """Score a model with a head on labeled examples.

    For each metric x there are x, `x_low` and `x_high`: Wilson's 95 % interval for accuracy, else the percentile
    interval of 1,000 bootstrap draws of examples. Along `example` are `prediction`, `label`, `logits`, and `margin`,
    the logit of the label minus the largest of the others; `majority` is the share of the most common label. Texts
    are truncated as in fine-tuning, where the model's folder says so, else to what the model can read. `pad_to` is for
    edits that use padding. An encoder-decoder translates each text, and `bleu`, `chrf` and `log_likelihood` compare it
    with the second text of the example.

    >>> from transformers import BertForSequenceClassification
    >>> untrained = hs.load(BertForSequenceClassification(model.network.config), tokenizer=model.tokenizer)
    >>> sorted(hs.score(untrained, [{"text": "Good.", "label": 1}], progress=False).data_vars)[:3]
    ['accuracy', 'accuracy_high', 'accuracy_low']
    """
    job, edits = make_scoring_job(options, pad_to=options.pad_to), make_edits(options.edit)
    answers = job.answer(edits, quiet=not options.progress)
    return stamp(
        _make_dataset(job.task, job.examples, answers),
        **job.describe("hs.score"),
        **describe_edits(edits),
        kind="score",
    )


def _make_dataset(task: Task, examples: Sequence[Example], answers: Answers) -> xr.Dataset:
    """Return metrics as single numbers, and answers along `example`, with ids and texts as coordinates."""
    variables: dict[str, Any] = {}
    for name, metric in task.compute_metrics(answers).items():
        ends = (metric.value, *metric.interval())
        variables |= with_interval(name, (), ends, interval=f"95 %, {metric.method}")
    if task.name in ("classification", "choice"):
        label, share = find_majority(answers["label"])
        variables["majority"] = ((), share, {"long_name": f"share of the most common label, {label}"})
    variables["n"] = ((), len(examples))
    axes = {"logits": "class", "bleu_counts": "bleu_count", "chrf_counts": "chrf_count"}
    variables |= {name: (("example", axes.get(name))[: values.ndim], values) for name, values in answers.items()}
    repeated = {*variables, *(("pair",) if "reference" in answers else ())}
    fields = {name: values for name, values in tabulate_examples(examples).items() if name not in repeated}
    coords: dict[str, Any] = example_coordinates(fields)
    if "logits" in answers:
        classes = getattr(task, "classes", None) or map(str, range(answers["logits"].shape[1]))
        coords["class"] = np.array(list(classes), dtype=np.str_)
    return xr.Dataset(variables, coords)

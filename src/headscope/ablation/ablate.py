"""Ablation: the score of a model without each of its heads, or sets of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from headscope.ablation.changes import compare_scores
from headscope.ablation.head_sets import HeadSets, count_heads, make_head_sets
from headscope.ablation.options import AblateOptions
from headscope.ablation.resumed_answers import answer_edits
from headscope.core.edit import HeadEdit
from headscope.core.errors import InputError
from headscope.core.estimate import name_ends, with_interval
from headscope.core.example import example_coordinates, tabulate_examples
from headscope.core.options import takes_options
from headscope.core.progress import print_status, show_progress
from headscope.core.provenance import stamp
from headscope.core.spec import to_spec
from headscope.engine.edited import describe_edits, make_edit
from headscope.engine.pruning.pruned_config import pruned_heads
from headscope.engine.recording.sites import find_sites
from headscope.engine.resuming.resume import ResumeError
from headscope.training.metrics import Metric
from headscope.training.scoring import ScoringJob, make_scoring_job
from headscope.training.task import Answers
from headscope.uncertainty.corrections import LEVEL, correct_p_values

TEST = {"paired": True, "correction": "holm", "level": LEVEL}
"""How changes are tested."""

MAX_ANSWERS = 20_000_000
"""Answers to every example under every edit are part of the result if there are at most this many."""


@takes_options(AblateOptions)
def ablate(options: AblateOptions) -> xr.Dataset:
    """Score a model without each of its heads.

    `sets` says which heads are edited together: "heads" each head alone, "layers" all of a layer, "all_but_one" all of
    a layer but one; or a list of selections such as ["L3H7+L0H1", "all-L2"].

    `score` is that of the whole model by the main metric of its task. Along `layer` and `head`, or `layer`, or `heads`
    for a list, are: `ablated`, the score under the edit; `change`, from `score` to it; `change_p`, of McNemar's exact
    test for accuracy and of a paired permutation test for other metrics; `change_p_adjusted`, corrected for the number
    of sets (Holm); `change_significant`, whether that is below 0.05; `changed`, the number of examples with another
    prediction. Scores and changes have 95 % intervals (`_low`, `_high`), those of changes by a paired bootstrap over
    examples. `prediction`, or `loss` for language models, has the answer to every example under the edit, and
    `prediction_whole` that of the whole model.

    >>> from transformers import BertForSequenceClassification
    >>> untrained = hs.load(BertForSequenceClassification(model.network.config), tokenizer=model.tokenizer)
    >>> data = [{"text": "Good.", "label": 1}, {"text": "Bad.", "label": 0}]
    >>> hs.ablate(untrained, data, sets="layers", progress=False)["ablated"].dims
    ('layer',)
    """
    base, sets, job = _check_edit(options.edit), options.sets, make_scoring_job(options)
    site = find_sites(job.model).main if options.site is None else options.site
    counts = count_heads(job.model, lambda: job.answer(rows=slice(1)))
    heads = make_head_sets(sets, counts, site, pruned_heads(job.model.network.config))
    edits = [replace(base, heads=selection) for selection in heads.selections]
    baseline, answers = _answer(job, edits, counts, quiet=not options.progress)
    set_kind = sets if isinstance(sets, str) else "list"
    facts = {**job.describe("hs.ablate"), "edit": to_spec(base), "sets": set_kind, "site": site, **TEST}
    facts |= {name: fact for name, fact in describe_edits([base]).items() if name != "edits"}
    what = {"heads": "each head", "layers": "each layer", "all_but_one": "all heads of a layer but one"}.get(
        set_kind, "heads"
    )
    title = f"Change of {job.task.main} without {what} · {to_spec(base)}{f' · {site}' if len(counts) > 1 else ''}"
    return stamp(_make_dataset(job, heads, baseline, answers, title), kind="ablation", **facts)


def _check_edit(edit: Any) -> HeadEdit:
    """Return the edit; raise InputError for one that is not of heads, or that names some."""
    head_edit = make_edit(edit)
    if not isinstance(head_edit, HeadEdit):
        raise InputError(
            f"'{to_spec(head_edit)}' is no edit of heads. Give one of them, such as zero_heads or uniform_heads."
        )
    if head_edit.heads != ("all",):
        raise InputError(
            f"The edit '{to_spec(head_edit)}' names heads, but hs.ablate edits one set after the other. Leave its "
            f"heads out, and name them as a set: sets=['{'+'.join(head_edit.heads)}']."
        )
    return head_edit


def _answer(
    job: ScoringJob, edits: Sequence[HeadEdit], counts: Mapping[str, Mapping[int, int]], *, quiet: bool
) -> tuple[Answers, list[Answers]]:
    """Return the answers of the whole model, and those under each edit."""
    try:
        return answer_edits(job, edits, counts, quiet=quiet)
    except ResumeError as reason:
        if not quiet:
            print_status(f"Every set of heads takes a whole evaluation, because {reason}.")
    with show_progress(1 + len(edits), unit="evaluations", quiet=quiet) as advance:
        answers = []
        for edit in (None, *edits):
            answers.append(job.answer([] if edit is None else [edit]))
            advance(1)
    return answers[0], answers[1:]


def _make_dataset(
    job: ScoringJob, sets: HeadSets, baseline: Answers, answers: Sequence[Answers], title: str
) -> xr.Dataset:
    """Return changes, tests and scores along the dims of the sets, and the answers to every example."""
    name = job.task.main
    before, *after = (job.task.compute_metrics(run)[name] for run in (baseline, *answers))
    columns = _compare(before, after)
    if (answer := _find_answer(baseline)) == "prediction" and baseline[answer].dtype.kind != "f":
        columns["changed"] = np.array([(run[answer] != baseline[answer]).sum() for run in answers])
    variables: dict[str, Any] = {column: (sets.dims, sets.arrange(values)) for column, values in columns.items()}
    variables["change_n"] = (sets.dims, sets.arrange([len(job.examples)] * len(answers)))
    variables["change"] = (*variables["change"], {"long_name": name, "title": title})
    variables["ablated"] = (*variables["ablated"], {"long_name": f"{name} under the edit"})
    score = (before.value, *before.interval())
    variables |= with_interval("score", (), score, long_name=name, interval=f"95 %, {before.method}")
    variables["n"] = ((), len(job.examples))
    coords: dict[str, Any] = dict(sets.coords)
    if len(answers) * len(job.examples) <= MAX_ANSWERS:
        variables[answer] = ((*sets.dims, "example"), sets.arrange([run[answer] for run in answers]))
        variables[f"{answer}_whole"] = ("example", baseline[answer])
        variables |= {column: ("example", baseline[column]) for column in ("label", "tokens") if column in baseline}
        fields = tabulate_examples(job.examples)
        coords |= example_coordinates({field: fields[field] for field in fields if field not in variables})
    return xr.Dataset(variables, coords)


def _compare(before: Metric, after: Sequence[Metric]) -> dict[str, Any]:
    """Return the change of the score under each edit, its interval and tests, and the scores."""
    compared = compare_scores(before, after)
    adjusted = correct_p_values(compared["change_p"])
    scores = np.array([(metric.value, *metric.interval()) for metric in after])
    return {
        **compared,
        "change_p_adjusted": adjusted,
        "change_significant": (adjusted < LEVEL).astype(np.int8),
        **name_ends("ablated", scores.T),
    }


def _find_answer(answers: Answers) -> str:
    """Return the name of the answer to each example that is kept: its prediction, or the loss of its tokens."""
    return "prediction" if "prediction" in answers else "loss"

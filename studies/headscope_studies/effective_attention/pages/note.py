"""The pages docs/note.md and docs/objections.md, from results/effective_attention_*.nc."""

from pathlib import Path

import numpy as np
import pandas as pd

from headscope.core.prose import join_words
from headscope.experiments.claims import MOOT, NOT_REPRODUCED, REFUTED, UNDECIDED
from headscope.experiments.pages import facts as study_facts
from headscope.experiments.pages.generate import Generated
from headscope.experiments.pages.tables import to_grid
from headscope.experiments.rendering.sentences import conjugate
from headscope.experiments.summary import list_tasks
from headscope.experiments.thresholds import count_scaled
from headscope_studies.effective_attention.claims import ALIKE, LOSES, PATTERNS, SHARE, SINK, WEIGHT
from headscope_studies.effective_attention.pages import facts as said
from headscope_studies.effective_attention.pages.facts import Facts
from headscope_studies.effective_attention.pages.facts import describe_change as describe_range
from headscope_studies.effective_attention.pages.null_values import describe_null_values
from headscope_studies.effective_attention.paper import VALUE_SIZE as BERT_SIZE
from headscope_studies.effective_attention.report import TEXTS

FOLDER = Path(__file__).parent
SIGNED = {"size": "signed", "several": "max"}


def write_pages(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the note to the authors, and the objections with their answers."""
    yield from fill_templates(said.read_facts())


def fill_templates(facts: Facts) -> Generated:
    """Yield both pages, filled with the facts."""
    values = _values(facts)
    for name in ("note.md", "objections.md"):
        yield name, (FOLDER / name).read_text(encoding="utf-8").format(**values).encode()


def _values(facts: Facts) -> dict[str, object]:
    """Return what the templates of both pages are filled with."""
    counts = study_facts.count_kinds(facts.every)
    patterns = [task.verdict for claim in PATTERNS for task in facts.cells(claim).values()]
    agree, weights = compare_directions(facts)
    return {
        "models": join_words(facts.models),
        "sizes": said.name_sizes(facts),
        "tasks": join_words(list_tasks(next(iter(facts.models.values())))),
        "pairs": facts.pairs,
        "total": sum(counts.values()),
        "tests": facts.tests,
        "by_size": said.describe_by_size(facts),
        "missing": said.describe_missing(facts),
        "reduced": said.describe_reduced(facts),
        "listed": said.describe_versions(facts, listed=True),
        "not_reproduced": counts[NOT_REPRODUCED],
        "refuted_count": counts[REFUTED],
        "refuted": study_facts.describe_refuted(facts),
        "distances": to_grid(tabulate_distances(facts)),
        "over_seeds": f", {facts.seed_counts}" if facts.seed_counts else "",
        "seeds": study_facts.describe_seeds(facts),
        "lengths": said.describe_lengths(facts, BERT_SIZE),
        "faults": TEXTS["faults"],
        "short": said.describe_short(facts),
        "long": said.describe_long(facts),
        "scores": said.describe_scores(facts),
        "counts": study_facts.describe_counts(facts),
        "holding": said.describe_holding(facts),
        "sinks": said.describe_sinks(facts),
        "twins": said.describe_twins(facts),
        "sink": facts.count(SINK, *facts.exact),
        "sep": facts.count(LOSES["[SEP]"], *facts.exact),
        "cls": said.count_losses(facts, "[CLS]"),
        "itself": facts.count(ALIKE[0], *facts.exact),
        "sink_change": describe_range(facts, "sink_mean", "effective"),
        "sink_paper": describe_range(facts, "sink_mean", "paper"),
        "sink_short": describe_range(facts, "sink_mean", "effective", "at most d"),
        "sink_short_paper": describe_range(facts, "sink_mean", "paper", "at most d"),
        "punctuation_max": _punctuation(facts, "max"),
        "punctuation_sum": _punctuation(facts, "sum"),
        "weight": WEIGHT.text.partition(" of ")[0],
        "share": SHARE.text,
        "null_values": describe_null_values(),
        "published": said.describe_published(facts),
        "versions": said.describe_versions(facts),
        "patterns": said.describe_patterns(facts),
        "same_direction": agree,
        "weights": weights,
        "pattern_verdicts": len(patterns),
        "pattern_undecided": patterns.count(UNDECIDED),
        "quarter": _describe_scaled(facts, 0.25),
        "four": _describe_scaled(facts, 4.0),
        "time": said.describe_time(facts),
        "learned": said.describe_learning(facts),
    }


def tabulate_distances(facts: Facts) -> pd.DataFrame:
    """Return the relative change with both attentions, and the share of short inputs."""
    rows = {}
    for label, data in facts.models.items():
        for lens in ("effective", "paper"):
            cells = {}
            for task in list_tasks(data):
                value = float(data["distance"].sel(role="tuned", length="all", lens=lens, task=task))
                n = data["n"].sel(task=task)
                share = 100 * float(n.sel(length="at most d") / n.sel(length="all"))
                cells[task] = f"{value:.3f}" + (f" ({share:.0f} %)" if lens == "effective" else "")
            rows[f"{label}, {lens}"] = cells
    return pd.DataFrame.from_dict(rows, "index").rename_axis("attention")


def compare_directions(facts: Facts) -> tuple[int, int]:
    """Return how many weights on [SEP] and [CLS] change in the same direction by both averages, and of how many."""
    same, total = 0, 0
    for data in facts.tuned.values():
        ours = data["weight"].sel(**SIGNED, token=["sep", "cls"])
        changes = [weights.sel(lens="paper") - weights.sel(lens="raw")
                   for weights in (ours, data["published_weight"].sel(token=["sep", "cls"]))]  # fmt: skip
        signs = [np.sign(change.transpose("task", "token").values) for change in changes]
        same, total = same + int((signs[0] == signs[1]).sum()), total + signs[0].size
    return same, total


def _punctuation(facts: Facts, several: str) -> str:
    return describe_range(facts, "type_weight", "effective", type="punctuation", size="signed", several=several)


def _describe_scaled(facts: Facts, factor: float) -> str:
    """Return the number of each verdict if all thresholds are scaled."""
    counts = count_scaled(facts.every, factor)
    shown = [kind for kind in facts.kinds if kind != MOOT and counts[kind]]
    return join_words(f"{counts[kind]} {conjugate(kind, counts[kind])}" for kind in shown)

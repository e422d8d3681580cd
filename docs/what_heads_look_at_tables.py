"""The page docs/what_heads_look_at_tables.md: every table behind docs/what_heads_look_at.md; and those of probes."""

from pathlib import Path

import numpy as np
import pandas as pd
import what_heads_look_at_facts as said  # beside this file
import xarray as xr
from matplotlib.figure import Figure
from study_facts import read_template
from study_tables import to_grid
from what_heads_look_at_facts import STEM, HeadFacts

from headscope.core.document import Document, Picture
from headscope.core.prose import join_words
from headscope.experiments.analysis.heads import probe_numbers
from headscope.experiments.analysis.models.networks import MASKED
from headscope.experiments.claims import HOLDS, MOOT
from headscope.experiments.rendering.sentences import describe_tests
from headscope.experiments.thresholds import threshold_table
from headscope.reporting.markdown import to_markdown
from headscope.results.stamp import read_provenance
from headscope.studies.what_heads_look_at import paper, report

DRAWN = ("layers", "behaviour")
"""The figures of the study's report that are on this page."""


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    bodies = [to_markdown(_body(facts, label), _pictures(label), level=2) for label in facts.models]
    probes = [to_grid(said.verdict_frame(facts, part)) for part in ("trees", "coreference", "syntax")
              if any(part in parts for parts in facts.judged.values())]  # fmt: skip
    text = read_template("what_heads_look_at_tables").format(
        judged=report.TEXTS["judged"],
        tests=describe_tests(facts.every),
        thresholds=to_grid(threshold_table(facts.every)),
        no_op=to_grid(said.verdict_frame(facts, "no-op").T.rename_axis("model")),
        probes="\n".join(["## Verdicts on probes\n", *(f"{grid}\n" for grid in probes)]) if probes else "",
        bodies="\n".join(bodies),
        runs="\n\n".join(_describe_run(label, data) for label, data in facts.surface.items()),
    )
    return text.encode()


def _body(facts: HeadFacts, label: str) -> Document:
    """Return the tables of one model: what its tokens count, lists of heads, and the published way to count."""
    parts = {"numbers": facts.surface, "no_op": facts.no_op, "clusters": facts.clusters}
    whole = report.document({name: part[label] for name, part in parts.items() if label in part})
    chosen = [section for section in whole.sections if section.title in report.MEASURED]
    sections = [
        type(section)(section.title, [part for part in section.parts
                                      if not isinstance(part, Picture) or part.name in DRAWN])
        for section in chosen
    ]  # fmt: skip
    return Document(label, "", sections, ())


def _pictures(label: str) -> dict[str, str]:
    return {name: f"pictures/{STEM}{label}_{name}.svg" for name in DRAWN}


def drawn(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    figures = {}
    for label in facts.models:
        names = _pictures(label)
        for section in _body(facts, label).sections:
            figures |= {Path(names[part.name]).name: part.figure for part in section.parts
                        if isinstance(part, Picture) and part.name in names}  # fmt: skip
    return figures


def _describe_run(label: str, data: xr.Dataset) -> str:
    facts = read_provenance(data)
    made = f"`{facts['command']}`, headscope {facts['version']}, weights {facts['weights_hash'][:12]}"
    return f"**{label}**: {made}, data {facts['data']}, n = {facts['n']:,}, {facts['dtype']} on {facts['device']}."


def describe_clusters(facts: HeadFacts) -> str:
    """Return how far heads of one layer and of different layers are apart, for each model."""
    parts = []
    for label, data in facts.clusters.items():
        raw = data.sel(lens="raw")
        parts.append(f"{label} {float(raw['within']):.3f} within and {float(raw['between']):.3f} nats between layers "
                     f"(p = {float(raw['p']):.4f})")  # fmt: skip
    return f"Mean divergence: {'; '.join(parts)}."


def describe_perplexity(facts: HeadFacts) -> str:
    """Return the perplexity of the masked language models; nothing without them."""
    parts = [f"{float(data['quality'].sel(task=MASKED)):.0f} ({label})" for label, data in facts.networks.items()
             if MASKED in data["task"].values]  # fmt: skip
    return f"Their perplexity on the inputs is {join_words(parts)}." if parts else ""


def report_syntax(facts: HeadFacts) -> str:
    """Return the section on syntax, or nothing without results."""
    if not facts.treebanks:
        return ""
    return read_template("what_heads_look_at_syntax").format(
        sentence=describe_syntax(facts),
        relations=to_grid(relation_frame(facts)),
        uas=to_grid(uas_frame(facts)),
        attention=paper.UAS["attention"],
        words=paper.UAS["attention_and_words"],
    )


def relation_frame(facts: HeadFacts) -> pd.DataFrame:
    """Return for every relation the best head beside the best offset, a column for each model and treebank."""
    rows: dict[str, dict[str, str]] = {}
    for label, treebank in facts.treebanks:
        (judged,) = facts.judged[f"{label}, {treebank}"]["syntax"]
        holds = {task.task: task.verdict == HOLDS for task in judged.tasks}
        numbers = probe_numbers.number_relations(facts.trees(label, treebank)["dependency"])
        for name in map(str, numbers["task"].values):
            part = numbers.sel(task=name)
            value, low, high, offset = (100 * float(part[key]) for key in ("head", "head_low", "head_high", "offset"))
            text = f"{value:.0f} [{low:.0f}, {high:.0f}] ({offset:.0f})"
            cell = f"**{text}**" if holds[name] else text
            rows.setdefault(name, {})[f"{label}, {treebank}"] = f"{cell}, n = {int(part['n']):,}"
    frame = pd.DataFrame.from_dict(rows, "index").rename_axis("relation").fillna("–")
    frame["paper"] = [f"{paper.RELATIONS[name]:.0f}" if name in paper.RELATIONS else "–" for name in frame.index]
    return frame


def uas_frame(facts: HeadFacts) -> pd.DataFrame:
    """Return the UAS of the best head, the trained probes and their baselines, and of the control task."""
    rows: dict[str, dict[str, str]] = {}
    for label, treebank in facts.treebanks:
        column = f"{label}, {treebank}"
        for name, data in facts.trees(label, treebank).items():
            whole = data.sel(relation=probe_numbers.ALL)
            for task in map(str, whole["task"].values):
                for predictor in map(str, whole["predictor"].values):
                    part = whole.sel(task=task, predictor=predictor)
                    value, low, high = (100 * float(part[f"accuracy{end}"]) for end in ("", "_low", "_high"))
                    own = predictor in ("head", "probe", "random_weights")
                    if not np.isfinite(value) or not (own or (name == "dependency" and task != "control")):
                        continue
                    title = {"head": "one head", "probe": name, "random_weights": f"{name}, random weights"}
                    text = title.get(predictor, predictor).replace("_", " ") + (
                        ", control" if task == "control" else ""
                    )
                    rows.setdefault(text, {})[column] = f"{value:.1f} [{low:.1f}, {high:.1f}]"
    return pd.DataFrame.from_dict(rows, "index").rename_axis("probe").fillna("–")


def describe_syntax(facts: HeadFacts) -> str:
    """Return the honest sentence: for how many relations some head is better than the best offset, and overall."""
    parts, best = [], []
    for label, treebank in facts.treebanks:
        (judged,) = facts.judged[f"{label}, {treebank}"]["syntax"]
        verdicts = [task.verdict for task in judged.tasks if task.verdict != MOOT]
        parts.append(f"{verdicts.count(HOLDS)} of {len(verdicts)} ({label}, {treebank})")
        whole = facts.trees(label, treebank)["dependency"].sel(task="dependency", relation=probe_numbers.ALL)
        best.append(100 * float(whole["accuracy"].sel(predictor="head")))
    return (
        f"Some head finds a relation better than the best fixed offset, by 5 points or more, for {join_words(parts)} "
        f"relations. No head knows syntax as a whole: the best one finds {min(best):.0f} to {max(best):.0f} % of all "
        "other words."
    )


def report_coreference(facts: HeadFacts) -> str:
    """Return the section on coreference, or nothing without results."""
    if not facts.coreference:
        return ""
    theirs = paper.table_of_coreference()["all"].to_dict()
    verdicts = to_grid(said.verdict_frame(facts, "coreference"))
    return read_template("what_heads_look_at_coreference").format(verdicts=verdicts, **theirs)

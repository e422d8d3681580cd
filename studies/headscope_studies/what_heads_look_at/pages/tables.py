"""The page docs/tables.md: every table behind docs/what_heads_look_at.md; and those of probes."""

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.document import Document, Picture
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.experiments.claims import FEWEST, HOLDS, MOOT, judge
from headscope.experiments.pages.tables import to_grid
from headscope.experiments.rendering.sentences import describe_tests
from headscope.experiments.thresholds import threshold_table
from headscope.reporting.markdown import to_markdown
from headscope_studies.what_heads_look_at import paper, probe_numbers, report
from headscope_studies.what_heads_look_at.networks import MASKED
from headscope_studies.what_heads_look_at.pages import facts as said
from headscope_studies.what_heads_look_at.pages.facts import STEM, HeadFacts

FOLDER = Path(__file__).parent

DRAWN = ("layers", "behaviour")
"""The figures of the study's report that are on this page."""


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    bodies = [to_markdown(_body(facts, label), _pictures(label), level=2) for label in facts.models]
    probes = [to_grid(said.verdict_frame(facts, part)) for part in ("trees", "coreference", "syntax")
              if any(part in parts for parts in facts.judged.values())]  # fmt: skip
    text = (
        (FOLDER / "tables.md")
        .read_text(encoding="utf-8")
        .format(
            judged=report.TEXTS["judged"],
            tests=describe_tests(facts.every),
            thresholds=to_grid(threshold_table(facts.every)),
            no_op=to_grid(said.verdict_frame(facts, "no-op").T.rename_axis("model")),
            probes="\n".join(["## Verdicts on probes\n", *(f"{grid}\n" for grid in probes)]) if probes else "",
            bodies="\n".join(bodies),
            runs="\n\n".join(_describe_run(label, data) for label, data in facts.surface.items()),
        )
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


def draw_pictures(facts: HeadFacts) -> dict[str, Figure]:
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
    variants = variant_frame(facts)
    return (
        (FOLDER / "syntax.md")
        .read_text(encoding="utf-8")
        .format(
            sentence=describe_syntax(facts, variants),
            whole=to_grid(said.verdict_frame(facts, "trees")),
            relations=to_grid(relation_frame(facts)),
            variants=to_grid(variants),
            uas=to_grid(uas_frame(facts)),
            attention=paper.UAS["attention"],
            words=paper.UAS["attention_and_words"],
        )
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
                    own_name = "one head" if name == "dependency" else name
                    title = {"head": own_name, "probe": name, "random_weights": f"{own_name}, random weights"}
                    text = title.get(predictor, predictor).replace("_", " ") + (
                        ", control" if task == "control" else ""
                    )
                    rows.setdefault(text, {})[column] = f"{value:.1f} [{low:.1f}, {high:.1f}]"
    return pd.DataFrame.from_dict(rows, "index").rename_axis("probe").fillna("–")


def describe_syntax(facts: HeadFacts, variants: pd.DataFrame) -> str:
    """Return the honest sentence: for how many relations some head is better than the best offset, and overall."""
    parts, best, always = [], [], variants["in all halves"]
    for label, treebank in facts.treebanks:
        (judged,) = facts.judged[f"{label}, {treebank}"]["syntax"]
        verdicts = [task.verdict for task in judged.tasks if task.verdict != MOOT]
        parts.append(f"{verdicts.count(HOLDS)} of {len(verdicts)} ({label}, {treebank}; "
                     f"{always[f'{label}, {treebank}']} with every division)")  # fmt: skip
        whole = facts.trees(label, treebank)["dependency"].sel(task="dependency", relation=probe_numbers.ALL)
        best.append(100 * float(whole["accuracy"].sel(predictor="head")))
    return (
        f"No head of these models knows syntax as a whole: the best one finds the syntactic head of {min(best):.0f} to "
        f"{max(best):.0f} % of the words. Single relations have heads that find them better than the best fixed "
        f"offset, by 5 points or more: {join_words(parts)} relations. For the others that is not shown."
    )


def variant_frame(facts: HeadFacts) -> pd.DataFrame:
    """Return how many relations have a better head, with other halves of the documents and other attention."""
    rows = {}
    for label, treebank in facts.treebanks:
        (judged,) = facts.judged[f"{label}, {treebank}"]["syntax"]
        data, verdicts, row = facts.probes["dependency"], {}, {}
        kinds = [name for name in map(str, data["attention"].values) if name != "raw"]
        divisions = [("raw", int(seed)) for seed in data["seed"].values]
        for attention, seed in [*divisions, *((name, 0) for name in kinds)]:
            parts = facts.trees(label, treebank, attention, seed)
            if "dependency" not in parts:
                continue
            again = judge(judged.claim, probe_numbers.number_relations(parts["dependency"]), judged.tests)
            verdicts[attention, seed] = {task.task: task.verdict for task in again.tasks}
            title = f"raw, halves {seed}" if attention == "raw" else attention
            row[title] = f"{list(verdicts[attention, seed].values()).count(HOLDS)} of {len(again.tasks)}"
        same = [verdicts[key] for key in divisions if key in verdicts]
        row["in all halves"] = str(sum(all(one.get(name) == HOLDS for one in same) for name in same[0]))
        row["in some, not all"] = str(sum(0 < [one.get(name) for one in same].count(HOLDS) < len(same)
                                          for name in same[0]))  # fmt: skip
        rows[f"{label}, {treebank}"] = row
    return pd.DataFrame.from_dict(rows, "index").rename_axis("model, treebank").fillna("–")


def count_documents(facts: HeadFacts) -> str:
    """Return in a sentence on how few documents of a treebank some intervals rest; nothing without treebanks."""
    runs = [run for data in facts.probes.values() for run in read_provenance(data).get("runs", ())]
    least = min(runs, key=lambda run: run["documents"], default=None)
    if least is None:
        return ""
    bank, few = least["treebank"], least["documents"]
    rule = (f" The rule that fewer than {FEWEST} inputs decide nothing counts words and mentions; if it counted "
            f"documents, every verdict on {bank} would be undecided.")  # fmt: skip
    return (f"\n- Intervals of probes are from a bootstrap of documents, of which {bank} has as few as {few} to report "
            f"on: so few give intervals that are rather too narrow.{rule if few < FEWEST else ''}")  # fmt: skip


def describe_coreference(facts: HeadFacts) -> str:
    """Return the honest sentence: how many antecedents one head and the baselines find in each set."""
    parts, unbeaten, equal = [], [], []
    first = next(iter(facts.coreference.values()))
    for name in map(str, first["data"].values):
        heads, scores = [], []
        for label, data in facts.coreference.items():
            part = data.sel(data=name, kind="all").isel(task=0)
            part = part.sel(lens="raw") if "lens" in part.dims else part
            score = {key: 100 * float(part["accuracy"].sel(predictor=key))
                     for key in ("head", "rules", "head_match", "nearest")}  # fmt: skip
            heads.append(f"{score['head']:.0f} % ({label})")
            scores.append(score["head"])
        simple = (f"rules find {score['rules']:.0f} %, a match of head words {score['head_match']:.0f} % and the "
                  f"nearest mention {score['nearest']:.0f} %")  # fmt: skip
        if score["rules"] == score["head_match"] == score["nearest"]:  # no words to match
            simple = f"every baseline finds {score['nearest']:.0f} %"
            equal.append(name)
        elif max(scores) <= score["rules"]:
            unbeaten.append(name)
        parts.append(f"{join_words(heads)} on {name}, where {simple}")
    rules = (
        f" For all mentions together, no chosen head is above the rules on {join_words(unbeaten)}." if unbeaten else ""
    )
    rules += f" On {join_words(equal)} rules know no more than that: to be close to them says little." if equal else ""
    return f"One head finds the antecedents of {'; '.join(parts)}.{rules}"


def report_coreference(facts: HeadFacts) -> str:
    """Return the section on coreference, or nothing without results."""
    if not facts.coreference:
        return ""
    theirs = paper.table_of_coreference()["all"].to_dict()
    verdicts = to_grid(said.verdict_frame(facts, "coreference"))
    return (
        (FOLDER / "coreference.md")
        .read_text(encoding="utf-8")
        .format(verdicts=verdicts, sentence=describe_coreference(facts), **theirs)
    )

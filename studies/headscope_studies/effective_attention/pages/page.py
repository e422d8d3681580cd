"""The pages docs/effective_attention.md and docs/tables.md with their pictures."""

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import join_words
from headscope.experiments.pages import facts as study_facts
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import format_range
from headscope.plotting.forest import forest
from headscope.plotting.trends import trends
from headscope.results.store import open_result
from headscope_studies.effective_attention.claims import ALIKE, CLAIMS, LOSES, SINK, WEIGHT
from headscope_studies.effective_attention.pages import facts as said
from headscope_studies.effective_attention.pages import note, tables
from headscope_studies.effective_attention.pages.facts import STEM, Facts
from headscope_studies.effective_attention.pages.facts import describe_change as describe_range
from headscope_studies.effective_attention.pages.null_values import RESULT, describe_quantity

FOLDER = Path(__file__).parent
WEIGHTS = {
    "the sink, from all others": ("sink_mean", {}),
    "[SEP], from all others": ("weight", {"token": "sep"}),
    "[CLS], from all others": ("weight", {"token": "cls"}),
    "[CLS] to [CLS], last layer": ("type_weight", {"type": "cls"}),
    "[CLS] to punctuation": ("type_weight", {"type": "punctuation"}),
    "[CLS] to nouns": ("type_weight", {"type": "noun"}),
    "[CLS] to pronouns": ("type_weight", {"type": "pronoun"}),
    "[CLS] to verbs": ("type_weight", {"type": "verb"}),
}
"""What the forest plot shows: variables and selections by the titles of its panels."""

SIGNED = {"size": "signed", "several": "max"}
SINKS = {"cls": "[CLS]", "sep": "[SEP]", "special": "other special", "punctuation": "punctuation", "word": "word"}


def page(facts: Facts) -> bytes:
    """Return the page."""
    first = next(iter(facts.models.values()))
    inputs = [int(data["n"].sel(length="all").sum()) for data in facts.models.values()]
    values = {
        "models": join_words(facts.models),
        "sizes": said.name_sizes(facts),
        "tasks": join_words(list_tasks(first)),
        "inputs": format_range(inputs, ",.0f", ""),
        "seeds": study_facts.describe_seeds(facts).partition(";")[0].rstrip(".") + ".",
        "specials": said.describe_specials(facts),
        "missing": said.describe_missing(facts),
        "reduced": said.describe_reduced(facts),
        "learned": said.describe_learning(facts).replace(
            ": results on tuning there may describe a model that learned little", ""
        ),
        "by_size": said.describe_by_size(facts),
        "counts": study_facts.describe_counts(facts),
        "holding": said.describe_holding(facts),
        "refuted": study_facts.describe_refuted(facts),
        "tests": facts.tests,
        "over_seeds": " that hold those of all seeds" if facts.seed_counts else "",
        "weight": WEIGHT.text.partition(" of ")[0],
        "itself": facts.count(ALIKE[0], *facts.exact),
        "null_values": _describe_null(),
        "thresholds": join_words(dict.fromkeys(claim.threshold.text for claim in CLAIMS if claim.threshold.value)),
        "short": said.describe_short(facts),
        "long": said.describe_long(facts),
        "sinks_text": said.describe_sinks(facts),
        "twins": said.describe_twins(facts),
        "versions": said.describe_versions(facts),
        "patterns": said.describe_patterns(facts),
        "scores": said.describe_scores(facts),
        "time": said.describe_time(facts),
        "spread": study_facts.describe_seeds(facts).partition("; ")[2].capitalize(),
        **{name: f"pictures/{STEM}{name}.svg" for name in PICTURES},
        **_changes(facts),
    }
    return (FOLDER / "page.md").read_text(encoding="utf-8").format(**values).encode()


def _describe_null() -> str:
    """Return in short what a projection on random values does, beside one on the model's."""
    data = open_result(RESULT).sel(length="all")
    parts = [describe_quantity(data, name).partition(" [")[0] for name in ("sink", "dispersion")]
    tasks = join_words(map(str, data["task"].values))
    return (
        f"Part of this any projection would do ([random values](tables.md#random-values), models "
        f"before tuning, {tasks}): {'; '.join(parts)}."
    )


def _changes(facts: Facts) -> dict[str, str]:
    """Return for how many pairs weights are lost, and by how much."""
    chosen = {"sink": SINK, "sep": LOSES["[SEP]"], "punctuation": LOSES["punctuation"]}
    values = {name: facts.count(claim, *facts.exact) for name, claim in chosen.items()}
    values["cls"] = said.count_losses(facts, "[CLS]")
    special = {name: {"token": name, **SIGNED} for name in ("sep", "cls")}
    for name, where in special.items():
        values[f"{name}_change"] = describe_range(facts, "weight", "effective", **where)
        values[f"{name}_paper"] = describe_range(facts, "weight", "paper", **where)
    values["itself_change"] = describe_range(facts, "type_weight", "effective", type="cls", **SIGNED)
    for end, length in (("", "all"), ("_short", "at most d"), ("_long", "more than d")):
        suffix = "_change" if not end else ""
        values[f"sink{end}{suffix}"] = describe_range(facts, "sink_mean", "effective", length)
        values[f"sink{end}_paper"] = describe_range(facts, "sink_mean", "paper", length)
    return values


def draw_changes(facts: Facts, width: float = 6.9) -> Figure:
    """Draw the changes of weights in per cent of the raw weight."""
    panels = {}
    for title, (name, where) in WEIGHTS.items():
        chosen = {**where, **(SIGNED if where else {})}
        parts = [
            facts.relative(label, name, **chosen).sel(lens=["effective", "paper"]).reset_coords(drop=True)
            for label in facts.models
        ]
        panels[title] = xr.concat(parts, "model", join="outer").assign_coords(model=list(facts.tuned))
    label = "change of the weight, in per cent of the raw weight"
    return forest(panels, band=100 * WEIGHT.value, label=label, series_of={"effective": 1, "paper": 2}, width=width)


def draw_lengths(facts: Facts, width: float = 6.9) -> Figure:
    """Draw the relative change of attention against the number of tokens, with a line at d."""
    panels, marks = {}, {}
    for label, data in facts.models.items():
        part = data.sel(role="tuned")
        counts = part["count_by_tokens"].astype(float)
        values = part["distance_by_tokens"].where(counts > 1)
        weights = counts.where(np.isfinite(values))
        mean = (values * weights).sum("task") / weights.sum("task")
        panels[label] = xr.Dataset({"tasks": values, "mean": mean.where(weights.sum("task") > 0)})
        size = int(data["value_size"].values[0])
        marks[label] = (size + 0.5, f"d = {size}")
    labels = ("tokens of the input", "relative change of attention")
    return trends(panels, x="tokens", labels=labels, series_of={"effective": 1, "paper": 2}, marks=marks, width=width)


def draw_sinks(facts: Facts, width: float = 6.9) -> Figure:
    """Draw the weight of the sink by layer, raw and effective, and which token it is."""
    panels, kinds = {}, {}
    for label, data in facts.tuned.items():
        weight = data["sink_weight"]
        panels[label] = xr.Dataset({"tasks": weight, "mean": weight.mean("task")})
        share = data["sink_kind"].mean("task").rename(sink="kind").transpose("layer", "kind")
        share = share.sel(kind=(share.max("layer") >= 0.01).values)
        kinds[label] = share.assign_coords(kind=[SINKS.get(str(kind), str(kind)) for kind in share["kind"].values])
    every = list(dict.fromkeys(kind for share in kinds.values() for kind in share["kind"].values))
    kinds = {label: share.reindex(kind=every, fill_value=0.0) for label, share in kinds.items()}
    labels = ("layer", "weight on the sink from all other tokens")
    return trends(panels, x="layer", labels=labels, series_of={"raw": 0, "effective": 1}, shares=kinds, width=width)


PICTURES = {"verdicts": draw_verdicts, "forest": draw_changes, "lengths": draw_lengths, "sinks": draw_sinks}


def draw_pictures(facts: Facts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{STEM}{name}.svg": make(facts) for name, make in PICTURES.items()}


def draw_table_pictures(facts: Facts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return draw_scaled(facts)


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "effective_attention.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "effective_attention_tables.md", tables.page(facts)


PAGES = StudyPages(
    {"effective_attention": write_page, "note": note.write_pages},
    {"effective_attention_tables": write_tables},
    said.list_reports,
)

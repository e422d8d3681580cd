"""The pages docs/effective_attention.md and docs/tables.md with their pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import join_words
from headscope.experiments.claims import UNCLEAR
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, draw_verdicts, to_grid
from headscope.plotting import canvas, series, theme
from headscope.plotting.forest import forest
from headscope.plotting.trends import trends
from headscope.plotting.verdict_grid import find_looks
from headscope_studies.effective_attention.claims import LOSES, WEIGHT
from headscope_studies.effective_attention.pages import note, tables
from headscope_studies.effective_attention.pages.facts import SIGNED, STEM, Facts, list_reports, read_facts
from headscope_studies.effective_attention.pages.pad_positions import read_pad_positions

WEIGHTS = {
    "the sink, from all others": ("sink_mean", {}),
    "[SEP], from all others": ("weight", {"token": "sep"}),
    "[CLS], from all others": ("weight", {"token": "cls"}),
    "[CLS] to itself, last layer": ("type_weight", {"type": "cls"}),
    "[CLS] to punctuation": ("type_weight", {"type": "punctuation"}),
    "[CLS] to nouns": ("type_weight", {"type": "noun"}),
    "[CLS] to pronouns": ("type_weight", {"type": "pronoun"}),
    "[CLS] to verbs": ("type_weight", {"type": "verb"}),
}
"""What the forest plot shows: variables and selections by the titles of its panels."""

SHADES = ("#ffffff", "#dcdcdc", "#b4b4b4")  # of undecided verdicts, by what is unclear
LEAST_NAMED = 6  # verdicts of a bar whose number is written into it
SINKS = {"cls": "[CLS]", "sep": "[SEP]", "special": "other special", "punctuation": "punctuation", "word": "word"}


def page(facts: Facts) -> bytes:
    """Return the page."""
    pictures = {name: f"pictures/{STEM}{name}.svg" for name in PICTURES}
    table = to_grid(read_pad_positions().tabulate_distances())
    return note.fill_page("page.md", facts, pictures=pictures, pad_table=table, sep_losses=list_losses(facts))


def list_losses(facts: Facts) -> str:
    """Return in which models, and on which of their tasks, [SEP] loses weight exactly."""
    losing: dict[str, list[str]] = {label: [] for label in facts.models}
    for (label, task), cell in facts.cells(LOSES["[SEP]"]).items():
        losing[label] += [task] * cell.exact
    on = {label: "all tasks" if tasks == facts.tasks else join_words(tasks) for label, tasks in losing.items() if tasks}
    return join_words([f"in {label} on {tasks}" for label, tasks in on.items()], empty="nowhere")


def draw_changes(facts: Facts, width: float = 6.9) -> Figure:
    """Draw the changes of weights in per cent of the raw weight."""
    panels = {}
    for title, (name, where) in WEIGHTS.items():
        selection = {**where, **(SIGNED if where else {})}
        changes = [
            facts.relative(label, name, **selection).sel(lens=["effective", "paper"]).reset_coords(drop=True)
            for label in facts.models
        ]
        panels[title] = xr.concat(changes, "model", join="outer").assign_coords(model=list(facts.tuned))
    label = "change of the weight, in per cent of the raw weight"
    return forest(panels, band=100 * WEIGHT.value, label=label, series_of={"effective": 1, "paper": 2}, width=width)


def draw_lengths(facts: Facts, width: float = 6.9) -> Figure:
    """Draw the relative change of attention against the number of tokens, with a line at d."""
    panels, marks = {}, {}
    for label, data in facts.models.items():
        tuned = data.sel(role="tuned")
        counts = tuned["count_by_tokens"].astype(float)
        values = tuned["distance_by_tokens"].where(counts > 1)
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
    names = list(dict.fromkeys(kind for share in kinds.values() for kind in share["kind"].values))
    kinds = {label: share.reindex(kind=names, fill_value=0.0) for label, share in kinds.items()}
    labels = ("layer", "weight on the sink from all other tokens")
    return trends(panels, x="layer", labels=labels, series_of={"raw": 0, "effective": 1}, shares=kinds, width=width)


@theme.apply()
def draw_choices(facts: Facts, width: float = 6.9) -> Figure:
    """Draw how many verdicts there are of each kind, a bar for each choice that a reader might make otherwise."""
    counts = facts.choice_counts
    counts = counts.loc[:, (counts > 0).any()]
    looks = {kind: look[0] for kind, look in find_looks(facts.kinds).items()}
    looks |= {f"undecided: {reason}": shade for reason, shade in zip(UNCLEAR, SHADES, strict=True)}
    figure = canvas.new_figure((width, 0.9 + 0.3 * len(counts)))
    panel, left = figure.subplots(), np.zeros(len(counts))
    for kind in counts.columns:
        values = counts[kind].to_numpy()
        panel.barh(counts.index, values, left=left, color=looks[kind], edgecolor=theme.quiet, linewidth=0.4, label=kind)
        for at, (start, value) in enumerate(zip(left, values, strict=True)):
            if value >= LEAST_NAMED:
                look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": theme.text_size("note")}
                panel.text(start + value / 2, at, str(value), color=theme.text_colour(looks[kind]), **look)
        left += values
    panel.invert_yaxis()
    panel.set_xlim(0, left.max())
    panel.set_xlabel("verdicts", fontsize=theme.text_size("note"))
    series.style_axes(panel, "x")
    columns = series.fit_legend(list(counts.columns), width)[0]
    figure.legend(loc="outside lower center", ncols=columns, fontsize=theme.text_size("note"))
    return figure


PICTURES = {"verdicts": draw_verdicts, "lengths": draw_lengths, "forest": draw_changes, "choices": draw_choices}


def draw_pictures(facts: Facts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{STEM}{name}.svg": draw(facts) for name, draw in PICTURES.items()}


def draw_table_pictures(facts: Facts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), f"{STEM}sinks.svg": draw_sinks(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "effective_attention.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "effective_attention_tables.md", tables.page(facts)


PAGES = StudyPages(
    {"effective_attention": write_page, "note": note.write_pages},
    {"effective_attention_tables": write_tables},
    list_reports,
)

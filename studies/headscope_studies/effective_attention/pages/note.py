"""The pages docs/note.md and docs/objections.md, from results/effective_attention_*.nc."""

from pathlib import Path

import numpy as np
import pandas as pd

from headscope.experiments.pages.generate import Generated
from headscope.experiments.pages.tables import to_grid
from headscope.experiments.summary import list_tasks
from headscope.experiments.template import fill_template, join_lines
from headscope_studies.effective_attention import claims, paper
from headscope_studies.effective_attention.pages.facts import SIGNED, Facts, read_facts, round_up
from headscope_studies.effective_attention.pages.null_values import read_null_values
from headscope_studies.effective_attention.pages.pad_positions import read_pad_positions, read_release
from headscope_studies.effective_attention.report import fill_text

FOLDER = Path(__file__).parent


def write_pages(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the note to the authors, and the objections with their answers."""
    yield from fill_templates(read_facts())


def fill_templates(facts: Facts) -> Generated:
    """Yield both pages, filled with the facts."""
    values = {"distances": to_grid(tabulate_distances(facts)), "faults": fill_text("faults")}
    for name in ("note.md", "objections.md"):
        yield name, fill_page(name, facts, **values)


def fill_page(name: str, facts: Facts, **values: object) -> bytes:
    """Return a page of the study, from its template, filled with the facts and further values."""
    text = fill_template(
        FOLDER / name,
        facts=facts,
        null=read_null_values(),
        claims=claims,
        paper=paper,
        signed=SIGNED,
        round_up=round_up,
        median=np.median,
        pads=read_pad_positions(),
        release=read_release(),
        **values,
    )
    return join_lines(text).encode()


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

"""The pages docs/argument_cues.md and docs/tables.md with their pictures."""

from functools import partial
from pathlib import Path

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import join_words
from headscope.experiments.pages import facts as study_facts
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import draw_scaled, to_grid
from headscope.experiments.rendering.report import select_interval
from headscope.plotting.facets import interval_facets
from headscope.plotting.verdict_grid import verdict_grid
from headscope.reporting.frames import Quantity, to_frame
from headscope_studies.argument_cues import paper, report
from headscope_studies.argument_cues.answers import TUNED
from headscope_studies.argument_cues.data import ARCT
from headscope_studies.argument_cues.pages import facts as said
from headscope_studies.argument_cues.pages import networks, tables
from headscope_studies.argument_cues.pages.facts import CueFacts
from headscope_studies.argument_cues.parts import ALL

FOLDER = Path(__file__).parent
SETS = ("dev", "test", "adversarial")


def page(facts: CueFacts) -> bytes:
    """Return the page."""
    first = facts.each[0][1]
    values = {
        "models": join_words(map(partial(_describe_model, facts), facts.measured)),
        "tuning": str(first["tuning"].item()),
        "train": int(first["train"]),
        "points": int(first["n"]),
        "dev": int(first["points"].sel(set="dev")),
        "runs": said.describe_runs(facts),
        "best": f"{100 * max(paper.BERT_BEST.values()):.0f} %",
        "counts": study_facts.describe_counts(facts),
        "claims": said.describe_claims(facts),
        "tests": facts.tests,
        "printed": said.describe_not_printed(facts),
        "strongest": said.describe_strongest(facts),
        "accuracy_table": accuracy_table(facts),
        "order": networks.describe_order(facts),
        "baselines": networks.describe_baselines(facts),
        "follow_said": networks.describe_follow(facts),
        "fair": networks.describe_fair(facts),
        "heads_said": networks.describe_heads(facts),
        "heads_model": _find_heads(facts)[0],
        "audits": networks.describe_audits(facts),
        "scaled": said.describe_scaled(facts),
        **{name: f"pictures/{facts.stem}{name}.svg" for name in PICTURES},
    }
    return (FOLDER / "page.md").read_text(encoding="utf-8").format(**values).encode()


def _describe_model(facts: CueFacts, label: str) -> str:
    """Return a model with its size, where its heads were measured."""
    heads = facts.more[label].get("heads")
    return label if heads is None else f"{label} ({heads.sizes['layer']} layers × {heads.sizes['head']} heads)"


def accuracy_table(facts: CueFacts) -> str:
    """Return the accuracy of every tuned model with every part of the input, beside the paper's best."""
    frames = {}
    for label, data in facts.each:
        row = data.sel(network=TUNED, part=data["seeds"].sel(network=TUNED) > 0)
        frame = to_frame(row, {"part": "part"}, [
            Quantity("test", "accuracy", {"set": "test"}, 100),
            Quantity("median", "accuracy_median", {"set": "test"}, 100),
            Quantity("largest", "accuracy_max", {"set": "test"}, 100),
            Quantity("dev", "accuracy", {"set": "dev"}, 100),
        ])  # fmt: skip
        lost = zip(row["failed"].values, row["seeds"].values, strict=True)
        best = [100 * paper.BERT_BEST[part] if part in paper.BERT_BEST else None for part in row["part"].values]
        frames[label] = frame.assign(**{"failed": [f"{int(failed)} of {int(seeds)}" for failed, seeds in lost],
                                        "BERT-large, best": pd.array(best, dtype="Int64")})  # fmt: skip
    return to_grid(pd.concat(frames, names=["model", "part"]))


def draw_verdicts(facts: CueFacts) -> Figure:
    """Draw the verdict on every claim for every model; there is one dataset, so that models are its columns."""
    cells = [facts.cells(claim) for claim in facts.claims]
    columns = {(ARCT, label): [row[label, ARCT].verdict for row in cells] for label in facts.measured}
    texts = [claim.text.rstrip(".") for claim in facts.claims]
    return verdict_grid(pd.DataFrame(columns, index=texts), facts.kinds)


def draw_accuracy(facts: CueFacts) -> Figure:
    """Draw the accuracy by part of the input: a row for each model, a panel for each set."""
    rows = {}
    for label, data in facts.each:
        part = select_interval(data, "accuracy", 100).rename(network="lens").reset_coords(drop=True)
        rows[f"{label}: accuracy (%)"] = {name: part.sel(set=name, drop=True) for name in SETS if name in data["set"]}
    return interval_facets(rows, x="part")


def draw_follow(facts: CueFacts) -> Figure:
    """Draw the accuracy by where the cue points: a row for each model, a panel for each set."""
    rows = {}
    for label, data in facts.each:
        part = select_interval(data.sel(part=ALL), "where", 100).rename(network="lens").reset_coords(drop=True)
        rows[f"{label}: accuracy (%)"] = {name: part.sel(set=name, drop=True) for name in SETS[:2]}
    return interval_facets(rows, x="case", label="the cue points")


def draw_heads(facts: CueFacts) -> Figure:
    """Draw the difference of attention to the cue of every head of one model."""
    return report.draw_heads(_find_heads(facts)[1])


def _find_heads(facts: CueFacts) -> tuple[str, xr.Dataset]:
    """Return the first model whose heads were compared, and its heads."""
    return next((label, parts["heads"]) for label, parts in facts.more.items() if "heads" in parts)


PICTURES = {"verdicts": draw_verdicts, "accuracy": draw_accuracy, "follow": draw_follow, "heads": draw_heads}


def draw_pictures(facts: CueFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{facts.stem}{name}.svg": make(facts) for name, make in PICTURES.items()}


def draw_table_pictures(facts: CueFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {**draw_scaled(facts), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "argument_cues.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "argument_cues_tables.md", tables.page(facts)


PAGES = StudyPages({"argument_cues": write_page}, {"argument_cues_tables": write_tables}, said.list_reports)

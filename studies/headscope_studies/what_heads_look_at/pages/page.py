"""The page docs/what_heads_look_at.md with its pictures, and that of its tables."""

from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import count_noun, join_words
from headscope.core.provenance import read_provenance
from headscope.experiments.pages.generate import Generated, StudyPages, write_pictures
from headscope.experiments.pages.tables import to_grid
from headscope.experiments.rendering.report import select_interval
from headscope.experiments.summary import list_tasks
from headscope.experiments.thresholds import draw_thresholds
from headscope.plotting.draw import draw
from headscope.plotting.facets import interval_facets
from headscope_studies.what_heads_look_at.no_op_figures import draw_no_ops
from headscope_studies.what_heads_look_at.pages import coreference, probes, tables
from headscope_studies.what_heads_look_at.pages import facts as said
from headscope_studies.what_heads_look_at.pages.facts import STEM, HeadFacts
from headscope_studies.what_heads_look_at.surface_tables import TITLES

FOLDER = Path(__file__).parent
DEPTH = ("previous", "next", "cls", "sep", "period_comma")


def page(facts: HeadFacts) -> bytes:
    """Return the page."""
    data = next(iter(facts.surface.values()))
    apart = max(float(abs(one["share"].sel(lens="raw") - one["clark"]).max()) for one in facts.surface.values())
    values = {
        "models": join_words(f"{label} ({one.sizes['layer']} layers × {one.sizes['head']} heads)"
                             for label, one in facts.surface.items()),
        "inputs": count_noun(int(data["n"].values.ravel()[0]), "input"), "corpus": list_tasks(data)[0],
        "length": read_provenance(data)["max_length"], "tuned": said.describe_tuned(facts),
        "plain": _answer_plainly(facts),
        "answer": " ".join(
            filter(None, (said.describe_answer(facts), said.describe_layers(facts), said.describe_equal(facts)))
        ),
        "answers": to_grid(said.answer_frame(facts)),
        "tests": max(claim.tests for claim in facts.every), "counts": said.describe_claims(facts),
        "parts": to_grid(said.count_frame(facts)), "documents": tables.count_documents(facts),
        "surface": to_grid(said.verdict_frame(facts, "surface")), "heads": said.describe_heads(facts),
        "alike": tables.describe_clusters(facts), "syntax": tables.report_syntax(facts),
        "coreference": tables.report_coreference(facts), "perplexity": tables.describe_perplexity(facts),
        "clark": f"{apart:.3f}",
        **{name: f"pictures/{STEM}{name}.svg" for name in ("no_op", "depth", "entropy", "clusters")},
    }  # fmt: skip
    return (FOLDER / "page.md").read_text(encoding="utf-8").format(**values).encode()


def _answer_plainly(facts: HeadFacts) -> str:
    text = said.is_no_op_by_all(facts)
    return f"A no-op, in the mean over layers: {text}." if text else "Undecided."


def draw_no_op(facts: HeadFacts) -> Figure:
    """Draw what tokens count in every model, and in those that were tuned from it."""
    parts = [data.assign_coords(task=[f"{label}, {name}" for name in list_tasks(data)])
             for label, data in facts.networks.items()]  # fmt: skip
    names = [f"ratio{end}" for end in ("", "_low", "_high")]
    return draw_no_ops(xr.concat([part[names] for part in parts], "task"))


def draw_depth(facts: HeadFacts) -> Figure:
    """Draw shares by layer: a row for each model, a column for each lens."""
    rows: dict[str, dict[str, xr.Dataset]] = {}
    for label, data in facts.surface.items():
        lines = select_interval(data.isel(task=0, drop=True), "share_layer", 100).sel(target=list(DEPTH))
        lines = lines.assign_coords(target=[TITLES[name] for name in DEPTH])
        rows[f"{label} (%)"] = {str(lens): lines.sel(lens=lens, drop=True).rename(target="lens")
                                for lens in data["lens"].values}  # fmt: skip
    return interval_facets(rows, x="layer", label="layer", lines=True)


def draw_entropy(facts: HeadFacts) -> Figure:
    """Draw the entropy of all rows and of the row of [CLS] by layer, a row for each model."""
    names = {"all tokens": "entropy_layer", "[CLS]": "cls_entropy_layer"}
    rows = {f"{label} (nats)": {title: select_interval(data.isel(task=0, drop=True), name)
                                for title, name in names.items()}
            for label, data in facts.surface.items()}  # fmt: skip
    return interval_facets(rows, x="layer", label="layer", lines=True)


def draw_clusters(facts: HeadFacts) -> Figure:
    """Draw the heads of the deepest model in two dimensions."""
    label = max(facts.clusters, key=lambda name: facts.clusters[name].sizes["layer"])
    return draw(facts.clusters[label], "clusters:colour=layer")


PICTURES = {"no_op": draw_no_op, "depth": draw_depth, "entropy": draw_entropy, "clusters": draw_clusters}


def draw_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page by file name."""
    return {f"{STEM}{name}.svg": make(facts) for name, make in PICTURES.items()}


def draw_table_pictures(facts: HeadFacts) -> dict[str, Figure]:
    """Return the pictures of the page of all tables by file name."""
    return {f"{STEM}scaled_thresholds.svg": draw_thresholds(facts.every), **tables.draw_pictures(facts)}


def write_page(docs: Path) -> Generated:  # noqa: ARG001
    """Yield the page with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_pictures(facts))
    yield "what_heads_look_at.md", page(facts)


def write_tables() -> Generated:
    """Yield the page of all tables with its pictures."""
    facts = said.read_facts()
    yield from write_pictures(draw_table_pictures(facts))
    yield "what_heads_look_at_tables.md", tables.page(facts)


PAGES = StudyPages(
    {"what_heads_look_at": write_page, "probes": probes.write_page, "coreference": coreference.write_page},
    {"what_heads_look_at_tables": write_tables, "probes_tables": probes.write_tables},
    said.list_reports,
)

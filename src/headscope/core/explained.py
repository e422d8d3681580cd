"""Which page of the docs explains what a module does."""

import sys
from types import FrameType

DOCS = "docs/"
"""Where the pages are: in the repository and on their site, which has the same paths."""

PAGES = {
    "ablation": "ablation.md#ablating-each-head",
    "ablation.head_importance": "ablation.md#how-much-each-head-matters",
    "ablation.pruning_curve": "ablation.md#how-many-heads-can-go",
    "audit": "cues.md",
    "contribution": "lenses.md#what-is-around-the-heads",
    "core.lens": "lenses.md#which-lens-when",
    "core.maps": "figures.md#maps-as-arrays-datasets-and-tables",
    "core.target": "importances.md#which-prediction",
    "core.trace": "capture.md",
    "data": "reading.md",
    "data.tagging": "reading.md#tags",
    "data.tokenizing": "reading.md#words-and-token-types",
    "display": "viewer.md",
    "edits": "edits.md#edits-of-heads",
    "effective": "lenses.md#effective",
    "engine": "capture.md",
    "engine.default_model": "start.md#install",
    "engine.edited": "edits.md",
    "engine.importances": "importances.md",
    "engine.pruning": "ablation.md#removing-heads",
    "experiments": "studies.md",
    "extras": "start.md#install",
    "families": "models.md",
    "figures": "gallery.md",
    "flow": "rollout_and_flow.md",
    "head_atlas": "atlas.md",
    "importance_methods": "importances.md",
    "judging": "faithfulness.md",
    "lenses": "lenses.md#which-lens-when",
    "measuring": "measuring.md",
    "patterns": "patterns.md",
    "plotting": "figures.md",
    "probes": "probes.md",
    "probing": "probes.md",
    "readers": "reading.md#sources",
    "reporting": "figures.md#reports",
    "results": "measuring.md#the-result",
    "results.cluster": "measuring.md#clusters-of-heads",
    "results.compare": "measuring.md#comparing-results",
    "results.store": "measuring.md#files-that-exist",
    "statistics": "statistics.md",
    "studies": "studies.md",
    "studio": "viewer.md#the-studio",
    "training": "training.md",
    "viewer": "viewer.md",
}
"""Pages by folder of the package, or by file; other folders are explained where they are used."""


def find_page(topic: str) -> str:
    """Return the page on a folder or a file of the package, or no text.

    >>> find_page("engine.pruning.cut"), find_page("engine.capture"), find_page("core.spec")
    ('docs/ablation.md#removing-heads', 'docs/capture.md', '')
    """
    while topic and topic not in PAGES:
        topic = topic.rpartition(".")[0]
    return f"{DOCS}{PAGES[topic]}" if topic else ""


def find_page_of_caller() -> str:
    """Return the page on the innermost module that is being run and has one, or no text."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        package, _, topic = frame.f_globals.get("__name__", "").partition(".")
        if package == "headscope" and (page := find_page(topic)):
            return page
        frame = frame.f_back
    return ""

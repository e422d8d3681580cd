"""The page docs/gallery.md: every figure with the lines that draw it, from the results in docs/results/gallery."""

import inspect
from pathlib import Path
from textwrap import dedent
from typing import Any

from matplotlib.figure import Figure

import headscope as hs
from headscope.core.catalog import figures
from headscope.core.catalog.listing import list_parameters

DOCS = Path(__file__).parents[1]

SOURCES = {
    "maps": """
        trace = hs.capture(hs.load(), hs.read("sample")[1], layers=[2, 3])
        maps = [hs.view(trace, "raw"), hs.view(trace, "effective")]
        """,
    "paths": """
        trace = hs.capture(hs.load(), "The author told his old friend that she was tired.")
        paths = hs.view(trace, "rollout")
        """,
    "ranges": """
        trace = hs.capture(hs.load(), hs.read("sample")[1], max_length=40)
        ranges = hs.identifiability(trace, 3, 4, 7)  # layer, head, query
        """,
    "patches": """
        trace = hs.capture(hs.load("google/vit-base-patch16-224"), "cat.jpg")
        patches = hs.view(trace, "raw")
        """,
    "matter": """
        model = hs.load("path/to/classifier")
        matter = hs.importances(model, "the keys that the old man near the door lost")
        """,
    "heads": """
        statistics = ["entropy", "distance", "special_tokens", "token_types"]
        heads = hs.measure(hs.load(), hs.read("sample")[:20], statistics=statistics, rows=True)
        """,
    "clusters": """
        statistics = ["head_distance", "offsets", "special_tokens", "peak"]
        measured = hs.measure(hs.load(), hs.read("sample")[:20], lens="raw", statistics=statistics)
        clusters = hs.cluster(measured)
        """,
    "syntax": """
        syntax = hs.probe(hs.load(), "trees.conllu", "dependency:min_count=20", lens="raw")
        """,
    "judged": """
        lenses = ["raw", "effective", "norm"]
        judged = hs.faithfulness(hs.load(), hs.read("sample")[:8], lenses=lenses, max_length=48)
        """,
    "removed": """
        model, data = hs.load("path/to/classifier"), hs.read("agreement_templates:test")[:60]
        removed = hs.faithfulness(model, data, lenses=["raw", "rollout"], judge="tokens", target="label")
        """,
    "changes": """
        model, data = hs.load("path/to/classifier"), hs.read("agreement_templates:test")[:200]
        changes = hs.ablate(model, data, sets="layers")
        """,
    "fewer": """
        model, data = hs.load("path/to/classifier"), hs.read("agreement_templates:test")[:200]
        fewer = hs.pruning_curve(model, data, steps=25)
        """,
    "scores": """
        scores = hs.score(hs.load("path/to/classifier"), "agreement_templates:test")
        """,
    "words": """
        words = hs.cues("arct:dev")
        """,
    "study": """
        study = hs.study("effective-attention", out="study").data
        """,
    "patterns": "",
}
"""How each result is made, by the name of its variable; docs/runs/gallery.py makes them."""

STUDY = "effective_attention/results/effective_attention_all-MiniLM-L6-v2.nc"
STORED = {"study": DOCS.parent / "studies" / "headscope_studies" / STUDY}
"""Results that are committed elsewhere."""

GROUPS = {
    "Maps": {
        "matrix": ("maps", 'hs.draw(maps, "matrix", lens="effective", layer=3, head=4, size=3.3)'),
        "compare": ("maps", 'hs.draw(maps, "compare", layer=3, head=4, size=3.3)'),
        "head_grid": ("maps", 'hs.draw(maps, "head_grid", lens="raw", size=6.9)'),
        "arcs": ("paths", 'hs.draw(paths, "arcs", layer=5)'),
        "layered": ("paths", 'hs.draw(paths, "layered", query=9, size=5)'),
        "identifiability": ("ranges", 'hs.draw(ranges, "identifiability", size=6.9)'),
        "overlay": ("patches", 'hs.draw(patches, "overlay", layer=1, mean=True)'),
    },
    "Words": {
        "words": ("matter", 'hs.draw(matter, "words")'),
        "cues": ("words", 'hs.draw(words, "cues", size=4)'),
    },
    "Every head over a dataset": {
        "heads": ("heads", 'hs.draw(heads, "heads", variable="entropy", size=6.9)'),
        "curve": ("heads", 'hs.draw(heads, "curve", variable="distance", size=4)'),
        "bars": ("heads", 'hs.draw(heads, "bars", variable="token_types", at="layer=5", size=5)'),
        "stacked_bars": (
            "heads",
            'hs.draw(heads, "stacked_bars", variable="special_tokens", at="source=others", size=5)',
        ),
        "scatter": ("heads", 'hs.draw(heads, "scatter", x="entropy", y="distance", lens="raw", size=4)'),
        "distribution": ("heads", 'hs.draw(heads, "distribution", variable="entropy", size=5)'),
        "clusters": ("clusters", 'hs.draw(clusters, "clusters", colour="behaviour", size=5)'),
        "dendrogram": ("clusters", 'hs.draw(clusters, "dendrogram", size=6.9)'),
        "accuracies": ("syntax", 'hs.draw(syntax, "accuracies", size=5)'),
    },
    "Interventions": {
        "ablation": ("changes", 'hs.draw(changes, "ablation", size=4)'),
        "pruning_curve": ("fewer", 'hs.draw(fewer, "pruning_curve", size=4)'),
        "faithfulness": ("judged", 'hs.draw(judged, "faithfulness", size=4)'),
        "faithfulness_curve": ("removed", 'hs.draw(removed, "faithfulness_curve", size=4)'),
    },
    "Scores and studies": {
        "scores": ("scores", 'hs.draw(scores, "scores", size=4)'),
        "tasks": ("study", 'hs.draw(study, "tasks", variable="score", size=4)'),
    },
}
"""The result and the call of each figure."""

ELSEWHERE = {"confusion": "patterns-confusion.svg", "typical_maps": "patterns-typical.svg"}
"""Figures of `headscope_patterns`, on the page about patterns."""

HEADER = """# All figures

Each figure with the lines that draw it, after `import headscope as hs`. [Figures](figures.md) says how to size them,
color them and put them into a paper; in the shell the same parameters are options. Each picture is what the lines
gave, with the small default model; for *overlay* a network of random weights looked at a drawn disc. The classifier
is the small model, tuned on 800 sentences made from templates to tell whether a missing verb is singular; the study
is that of [five GLUE tasks](effective_attention.md).
"""


def page() -> bytes:
    """Return the page."""
    known, shown = set(figures.names()), {name for group in GROUPS.values() for name in group} | set(ELSEWHERE)
    if different := known ^ shown:
        raise SystemExit(
            f"docs/pages/gallery_page.py: {', '.join(sorted(different))} must be in GROUPS and in the catalog."
        )
    parts = [HEADER]
    for group, entries in GROUPS.items():
        parts.append(f"## {group}\n")
        parts += [_describe(name, *entry) for name, entry in entries.items()]
    parts.append("## Pattern classes\n")
    for name, picture in ELSEWHERE.items():
        parts.append(f"{_head(name)}\nOn [the page about patterns](patterns.md).\n\n![{name}](pictures/{picture})\n")
    return "\n".join(parts).encode()


def pictures() -> dict[str, Figure]:
    """Return the pictures by file name."""
    return {
        f"gallery_{name}.svg": eval(call, {"hs": hs, source: open_source(source)})
        for entries in GROUPS.values()
        for name, (source, call) in entries.items()
    }


def open_source(name: str) -> Any:
    """Return a result of docs/runs/gallery.py, or of a study."""
    return hs.open_result(STORED.get(name, DOCS / "results" / "gallery" / f"{name}.nc"))


def _head(name: str) -> str:
    kind = figures.find(name)
    first = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    return f"### `{name}`\n\n{first}\n\nParameters: `{list_parameters(kind)}`\n"


def _describe(name: str, source: str, call: str) -> str:
    code = dedent(SOURCES[source]).strip()
    return f"{_head(name)}\n```python\n{code}\n{call}\n```\n\n![{name}](pictures/gallery_{name}.svg)\n"

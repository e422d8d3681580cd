"""Generate the figures and tables of the docs from the result files and the code.

    python docs/make.py                   write them all
    python docs/make.py clusters cues     write those of these pages
    python docs/make.py --check           list what would change, and fail if anything would

The result files in docs/results, and in the folders of studies, are stamped with the command that made them.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from pages import (
    ablation_page,
    api_page,
    atlas_page,
    clusters_page,
    cues_page,
    faithfulness_page,
    flow_page,
    gallery_page,
    heads_page,
    importances_page,
    lenses_page,
    long_page,
    models_page,
    padding_page,
    performance_page,
    pruning_page,
    rollout_page,
    training_page,
    viewer_page,
    words_page,
)

from headscope.core.provenance import read_provenance
from headscope.experiments.pages.generate import Generated, fill_page, find_pages, read_guide, write_pictures
from headscope.plotting.draw import draw
from headscope.results.store import open_result
from headscope_patterns.pages import patterns_page

DOCS = Path(__file__).parent


def describe_edits() -> str:
    """Return what docs/runs/edits.py measured."""
    data = open_result(DOCS / "results" / "edits.nc")
    paper = data.relative.sel(keys="paper")
    model, largest = read_provenance(data)["model"].rpartition("/")[2], float(data.largest.sel(keys="visible").max())
    return (
        f"Measured with {model} in float32 on the {data.sizes['example']} bundled paragraphs, last hidden states of "
        f"real\ntokens: with `visible` no number changes by more than {largest:.1e}. With `paper`, padded and truncated"
        f" to 128\ntokens, the change is {float(paper.median()):.1%} in the median paragraph (‖difference‖ / ‖output‖) "
        f"and {float(paper.max()):.1%} at most.\n"
    )


def make_comparison() -> Generated:
    """Yield the figures of the README."""
    maps = open_result(DOCS / "results" / "what_reaches.nc")
    layer, head = int(maps["layer"][0]), int(maps["head"][0])
    yield from write_pictures(
        {
            "compare.svg": draw(maps, "compare"),
            "column_matrix.svg": draw(maps, "matrix", layer=layer, head=head, size=3.3),
            "column_compare.svg": draw(maps, "compare", layer=layer, head=head, size=3.3),
        }
    )


def make_rollout_and_flow() -> Generated:
    """Yield the page on rollout and flow, and its figures."""
    yield from write_pictures(
        {
            "flow_saturation.svg": flow_page.picture(),
            "flow_complexity.svg": flow_page.complexity_picture(),
            **rollout_page.pictures(),
        }
    )
    yield from fill_page(
        DOCS / "rollout_and_flow.md",
        {
            "cost": rollout_page.table(),
            "saturation": flow_page.describe_saturation(),
            "real_speed": flow_page.describe_real_speed(),
            "speed": flow_page.describe_speed(),
        },
    )


def make_measuring() -> Generated:
    """Yield what the page on measuring says of clusters of heads, and its figures."""
    yield from write_pictures(clusters_page.pictures())
    texts = {"clusters": clusters_page.describe_clusters(), "cluster_speed": clusters_page.describe_speed()}
    yield from fill_page(DOCS / "measuring.md", texts)


def make_ablation() -> Generated:
    """Yield the page on ablating and removing heads."""
    texts = {"ablation_cost": ablation_page.table(), "pruning_cost": pruning_page.table()}
    yield from fill_page(DOCS / "ablation.md", texts)


def make_cues() -> Generated:
    """Yield the page on cues, and its figures."""
    yield from write_pictures(cues_page.pictures())
    yield from fill_page(DOCS / "cues.md", cues_page.parts())


def make_faithfulness() -> Generated:
    """Yield the page on judging lenses, and its figure."""
    yield from write_pictures(faithfulness_page.pictures())
    texts = {"measured": faithfulness_page.describe_measured(), "cost": faithfulness_page.describe_cost()}
    yield from fill_page(DOCS / "faithfulness.md", texts)


def make_training() -> Generated:
    """Yield the page on fine-tuning."""
    texts = {"tuned": training_page.table(), "translation": training_page.translation()}
    yield from fill_page(DOCS / "training.md", texts)


def make_page(page: Any, pictures: Mapping[str, Figure]) -> Generated:
    """Yield a page that is generated as a whole, and its figures."""
    yield from write_pictures(pictures)
    yield f"{page.__name__.rpartition('.')[2].removesuffix('_page')}.md", page.page()


def make_index() -> Generated:
    """Yield the page on all studies: what they share, then what each of them says of itself."""
    text = (DOCS / "templates" / "studies.md").read_text(encoding="utf-8")
    yield "studies.md", text.replace("<!-- guides -->", "\n".join(map(read_guide, find_pages()))).encode()


def list_study_generators() -> dict[str, Callable[[], Generated]]:
    """Return what generates the pages of each study, by the names of the pages."""
    pages = {page: generate for study in find_pages().values() for page, generate in study.docs.items()}
    return {page: partial(generate, DOCS) for page, generate in pages.items()}


GENERATORS: dict[str, Callable[[], Generated]] = {
    "compare": make_comparison,
    "models": lambda: fill_page(DOCS / "models.md", models_page.parts()),
    "lenses": lambda: fill_page(DOCS / "lenses.md", {"cost": lenses_page.describe_cost()}),
    "edits": lambda: fill_page(DOCS / "edits.md", {"measured": describe_edits()}),
    "importances": lambda: fill_page(DOCS / "importances.md", {"sums": importances_page.describe_sums()}),
    "reading": lambda: fill_page(DOCS / "reading.md", {"tagger": words_page.table()}),
    "viewer": lambda: fill_page(DOCS / "viewer.md", {"beside": viewer_page.table()}),
    "rollout_and_flow": make_rollout_and_flow,
    "measuring": make_measuring,
    "ablation": make_ablation,
    "faithfulness": make_faithfulness,
    "atlas": lambda: fill_page(DOCS / "atlas.md", {"cost": atlas_page.table()}),
    "long": lambda: fill_page(DOCS / "long.md", long_page.tables()),
    "training": make_training,
    "cues": make_cues,
    "api": lambda: make_page(api_page, {}),
    "padding": lambda: make_page(padding_page, {"padding.svg": padding_page.picture()}),
    "gallery": lambda: make_page(gallery_page, gallery_page.pictures()),
    "heads": lambda: make_page(heads_page, heads_page.pictures()),
    "patterns": lambda: make_page(patterns_page, patterns_page.pictures()),
    "performance": lambda: make_page(performance_page, {}),
    "studies": make_index,
    **list_study_generators(),
}
"""What generates each page with its figures. Every file has one generator."""


def find_stale(names: Iterable[str]) -> Iterator[tuple[Path, bytes]]:
    """Yield the files of these generators that are missing or have other content than they should."""
    for name in names:
        for file, content in GENERATORS[name]():
            path = DOCS / file
            if not path.is_file() or number_clips(path.read_bytes()) != number_clips(content):
                yield path, content


def number_clips(content: bytes) -> bytes:
    """Return a picture with numbers for the ids of its clip paths; other content as it is.

    matplotlib hashes the corners of a clip path into its id, and their last bits depend on the processor.
    """
    ids = dict.fromkeys(re.findall(rb'<clipPath id="(p[0-9a-f]{10})">', content))
    for number, clip in enumerate(ids):
        content = content.replace(clip, b"clip-%d" % number)
    return content


def main() -> None:
    """Write or check what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"all by default: {', '.join(GENERATORS)}")
    parser.add_argument("--check", action="store_true", help="list what would change, and fail if anything would")
    arguments = parser.parse_args()
    if unknown := set(arguments.pages) - set(GENERATORS):
        parser.error(f"no page is called {', '.join(sorted(unknown))}; there are {', '.join(GENERATORS)}")
    stale = list(find_stale(arguments.pages or GENERATORS))
    for path, content in stale:
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        sys.stdout.write(f"{'stale' if arguments.check else 'wrote'}: {path.relative_to(DOCS.parent)}\n")
    sys.exit(1 if arguments.check and stale else 0)


if __name__ == "__main__":
    main()

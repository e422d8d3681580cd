"""Generate the figures and tables of the docs from the result files and the code.

    python docs/make.py            write them
    python docs/make.py --check    list what would change, and fail if anything would

The result files in docs/results are stamped with the command that made them.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pages import (
    ablation_page,
    api_page,
    argument_cues_facts,
    argument_cues_page,
    attention_flow_facts,
    attention_flow_page,
    clusters_page,
    coreference_page,
    cues_page,
    dark_secrets_facts,
    dark_secrets_page,
    effective_attention_page,
    flow_page,
    heads_page,
    note_page,
    padding_page,
    patterns_page,
    performance_page,
    probes_page,
    pruning_page,
    rollout_page,
    sixteen_heads_facts,
    sixteen_heads_page,
    training_page,
    what_heads_look_at_facts,
    what_heads_look_at_page,
    words_page,
)
from pages.effective_attention_facts import read_facts

from headscope.core.catalog import families
from headscope.plotting.draw import draw
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result, save

DOCS = Path(__file__).parent


def make_pictures() -> Iterator[tuple[Path, bytes]]:
    """Yield the path and content of each figure."""
    maps, facts = open_result(DOCS / "results" / "what_reaches.nc"), read_facts()
    layer, head = int(maps["layer"][0]), int(maps["head"][0])
    figures = {
        "compare.svg": draw(maps, "compare"),
        "column_matrix.svg": draw(maps, "matrix", layer=layer, head=head, size=3.3),
        "column_compare.svg": draw(maps, "compare", layer=layer, head=head, size=3.3),
        "padding.svg": padding_page.picture(),
        "flow_saturation.svg": flow_page.picture(),
        **heads_page.pictures(),
        **coreference_page.pictures(),
        **clusters_page.pictures(),
        **rollout_page.pictures(),
        **cues_page.pictures(),
        **patterns_page.pictures(),
        **probes_page.pictures(),
        **effective_attention_page.drawn(facts),
        **attention_flow_page.drawn(attention_flow_facts.read_facts()),
        **dark_secrets_page.drawn(dark_secrets_facts.read_facts()),
        **sixteen_heads_page.drawn(sixteen_heads_facts.read_facts()),
        **argument_cues_page.drawn(argument_cues_facts.read_facts()),
        **what_heads_look_at_page.drawn(what_heads_look_at_facts.read_facts()),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, figure in figures.items():
            yield DOCS / "pictures" / name, save(figure, Path(folder) / name).read_bytes()


def fill_page(name: str, mark: str, text: str) -> tuple[Path, bytes]:
    """Return a page with this text between its marks."""
    page = DOCS / name
    return page, fill_text(page.read_text(encoding="utf-8"), mark, text).encode()


def fill_text(page: str, mark: str, text: str) -> str:
    """Return the text of a page with this text between its marks."""
    parts = re.split(rf"(<!-- {mark} -->\n|<!-- /{mark} -->)", page)
    parts[2] = text
    return "".join(parts)


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


def make_family_table() -> str:
    """Return the table of all types of models."""
    known = [(name, families.find(name)) for name in families.names()]
    return "".join(
        f"| {name} | {', '.join(family.kinds)} | {'hooks' if family.hooks else 'interface'} |\n"
        for name, family in known
        if family.kinds
    )


def make_all() -> Iterator[tuple[Path, bytes]]:
    """Yield the path and content of everything that is generated."""
    yield from make_pictures()
    yield fill_page("capture.md", "families", make_family_table())
    yield fill_page("edits.md", "measured", describe_edits())
    yield fill_page("words.md", "tagger", words_page.table())
    page = fill_page("rollout_and_flow.md", "cost", rollout_page.table())[1].decode()
    page = fill_text(page, "saturation", flow_page.describe_saturation())
    yield DOCS / "rollout_and_flow.md", fill_text(page, "speed", flow_page.describe_speed()).encode()
    page = fill_page("clusters.md", "clusters", clusters_page.describe_clusters())[1].decode()
    yield DOCS / "clusters.md", fill_text(page, "speed", clusters_page.describe_speed()).encode()
    yield fill_page("ablation.md", "cost", ablation_page.table())
    page = (DOCS / "coreference.md").read_text(encoding="utf-8")
    for mark, text in coreference_page.parts().items():
        page = fill_text(page, mark, text)
    yield DOCS / "coreference.md", page.encode()
    yield fill_page("pruning.md", "cost", pruning_page.table())
    page = fill_page("training.md", "tuned", training_page.table())[1].decode()
    yield DOCS / "training.md", fill_text(page, "translation", training_page.translation()).encode()
    page = (DOCS / "cues.md").read_text(encoding="utf-8")
    for mark, text in cues_page.parts().items():
        page = fill_text(page, mark, text)
    yield DOCS / "cues.md", page.encode()
    yield fill_page("probes.md", "measured", probes_page.describe_measured())
    yield from probes_page.made()
    yield DOCS / "api.md", api_page.page()
    yield DOCS / "padding.md", padding_page.page()
    yield DOCS / "heads.md", heads_page.page()
    yield DOCS / "patterns.md", patterns_page.page()
    yield DOCS / "performance.md", performance_page.page()
    facts = read_facts()
    yield from effective_attention_page.made(facts)
    yield from note_page.made(facts)
    yield from attention_flow_page.made(attention_flow_facts.read_facts())
    yield from dark_secrets_page.made(dark_secrets_facts.read_facts())
    yield from sixteen_heads_page.made(sixteen_heads_facts.read_facts())
    yield from argument_cues_page.made(argument_cues_facts.read_facts())
    yield from what_heads_look_at_page.made(what_heads_look_at_facts.read_facts())


def main() -> None:
    """Write or check everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="list what would change, and fail if anything would")
    check = parser.parse_args().check
    stale = [(path, content) for path, content in make_all() if not path.is_file() or path.read_bytes() != content]
    for path, content in stale:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        sys.stdout.write(f"{'stale' if check else 'wrote'}: {path.relative_to(DOCS.parent)}\n")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()

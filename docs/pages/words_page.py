"""The table of docs/reading.md, from docs/results/tagger.nc."""

from pathlib import Path

from headscope.core.provenance import read_provenance
from headscope.results.store import open_result

DOCS = Path(__file__).parents[1]
TREEBANKS = {"ewt": "EWT dev", "gum": "GUM dev"}
WORDS = {"gold": "words of the treebank", "own": "words split by headscope", "small": "lower case"}
TAGS = {"strict": "", "wide": ", wide"}


def table() -> str:
    """Return the F1 of every type on both treebanks, and the hash of the model file."""
    data = open_result(DOCS / "results" / "tagger.nc")
    lines = [
        f"| treebank | words | {' | '.join(map(str, data.type.values))} |",
        "|---" * (2 + data.sizes["type"]) + "|",
    ]
    for treebank, title in TREEBANKS.items():
        for words, label in WORDS.items():
            for tags, suffix in TAGS.items():
                scores = data.f1.sel(treebank=treebank, words=words, tags=tags).values
                lines.append(f"| {title} | {label}{suffix} | {' | '.join(f'{score:.3f}' for score in scores)} |")
    counts = ", ".join(f"{title} {int(data.n.sel(treebank=name)):,} words" for name, title in TREEBANKS.items())
    facts = read_provenance(data)
    size = (DOCS.parent / "src" / "headscope" / "data" / "bundled" / facts["model"]).stat().st_size / 1e6
    model = f"{facts['model']}, {size:.2f} MB, {facts['weights_hash'][:12]}, by {facts['command']}"
    return "\n".join(lines) + f"\n\n{counts}; {model}.\n"

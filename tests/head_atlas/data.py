"""A small corpus, tiny models, and what an atlas wrote."""

import json
import re
from pathlib import Path

import headscope as hs
from headscope.core.example import Example
from tests.models import WORDS

STATISTICS = ["activity", "entropy", "effective_share"]
LENSES = ["raw", "effective"]


def examples(count: int) -> list[Example]:
    """Texts of 2 to 30 words, no two alike."""
    return [
        Example(
            f"text {index}",
            " ".join(WORDS[(index * 7 + step * (1 + index % 5)) % len(WORDS)] for step in range(2 + index * 11 % 29)),
            label=index % 2,
        )
        for index in range(count)
    ]


def make_atlas(model, out, data=None, **options):
    """Write a small atlas, without a progress bar."""
    defaults = {"statistics": STATISTICS, "lens": LENSES, "examples": 3, "batch_size": 4, "progress": False}
    return hs.atlas(model, examples(20) if data is None else data, out=out, **(defaults | options))


def read_header(folder: Path) -> dict:
    """What all heads share."""
    return json.loads((folder / "atlas.json").read_text(encoding="utf-8"))


def read_head(folder: Path, name: str) -> dict:
    """The file of one head, which is a classic script that calls a function."""
    text = (folder / "heads" / f"{name}.js").read_text(encoding="ascii")
    return json.loads(re.fullmatch(r"headscopeAtlas\((.*)\);\n", text)[1])


def read_heads(folder: Path) -> dict[str, dict]:
    """All heads by name."""
    return {name: read_head(folder, name) for name in read_header(folder)["files"]}


def read_files(folder: Path) -> dict[str, bytes]:
    """The content of every file."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

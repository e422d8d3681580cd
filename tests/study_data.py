"""Small studies of a tiny model, run once and shared by many tests."""

import json
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path

from headscope.core.catalog import studies
from tests.measuring.data import saved_model
from tests.models import text

WIDTH = 40


@cache
def place() -> Path:
    """A folder with a tiny model and labelled pairs; some are shorter than a head's value dimensions."""
    folder = Path(tempfile.mkdtemp(prefix="headscope-study-"))
    saved_model(folder / "base")
    for name, many, seed in (("train", 16, 0), ("dev", 12, 100)):
        rows = [
            {
                "id": f"{name}-{at}",
                "text": f"{('dog', 'cat')[at % 2]} {text(1 + 2 * at % 20, seed=at + seed)}",
                "pair": f"{text(1 + at % 9, seed=at + seed + 50)}{' .' if at % 3 else ''}",
                "label": at % 2,
            }
            for at in range(many)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


@cache
def tiny_options(name: str) -> dict[str, object]:
    """The parameters of a tiny run, which each study has in `tests/tiny.py` of its folder."""
    return import_module(f"{studies.find(name).__module__}.tests.tiny").options(place())


def tiny(name: str, **changes):
    """A study of a tiny model that takes seconds."""
    return studies.make(name, **{**tiny_options(name), **changes})


@cache
def found(name: str, again: int = 0):
    """The results of a tiny study; with another number it is run anew."""
    return tiny(name).run(place() / "base", place() / f"{name}-{again}", device="cpu")

"""How much code one call walks through: own files visited, switches between them, frames entered.

    python tools/walk.py

Two walks with the small default model, each after a first one that loads what is loaded once: capture, view and draw of
one sentence; and a measurement of entropy and distance over four sentences.
"""

import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import headscope as hs

PACKAGE = str(Path(hs.__file__).parent)
TEXTS = ["The cat sat on the mat.", "She gave him the book.", "It rained all day.", "Nobody knows why they left."]


def count_walk(call: Callable[[], Any]) -> str:
    """Return the number of own files that a call visits, of switches between them, and of own frames."""
    files: list[str] = []

    def observe(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            files.append(frame.f_code.co_filename)

    call()
    sys.setprofile(observe)
    try:
        call()
    finally:
        sys.setprofile(None)
    switches = sum(one != other for one, other in pairwise(files))
    return f"{len(set(files))} files, {switches:,} switches, {len(files):,} own frames"


def main() -> None:
    """Print both walks."""
    model = hs.load()

    def look() -> None:
        trace = hs.capture(model, TEXTS[0])
        figure = hs.draw(hs.view(trace, "effective"), "matrix", layer=0, head=0)
        with tempfile.TemporaryDirectory() as folder:
            hs.save(figure, Path(folder) / "map.png")

    sys.stdout.write(f"capture, view, draw: {count_walk(look)}\n")
    options = {"lens": "effective", "statistics": ["entropy", "distance"], "progress": False}
    measured = count_walk(lambda: hs.measure(model, TEXTS, **options))
    sys.stdout.write(f"measure:             {measured}\n")


if __name__ == "__main__":
    main()

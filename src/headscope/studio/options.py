"""Options of `headscope studio`, and the limits of its server."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from headscope.core.options import option

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class StudioOptions:
    """What `headscope studio` takes."""

    folder: Path = option(Path(), "Folder of results, data and models; no other file is opened.")
    _: KW_ONLY
    model: Sequence[str] = option(
        (), "A hub id or a folder to choose from. Default: a small BERT, and models in FOLDER."
    )
    port: int = option(0, "Port of the server; 0 is a free one.")
    host: str = option(LOOPBACK, "Address of the server; any but the default lets other computers connect.")
    browser: bool = option(True, "Open the page in a browser.", flag="no-browser")


@dataclass(frozen=True)
class Limits:
    """What one studio takes; more is refused with a sentence."""

    body: int = 1_000_000  # bytes of a request
    body_seconds: float = 10.0  # to send it
    header_seconds: float = 10.0  # to send the head of a request
    connections: int = 512
    streams: int = 32  # of events
    letters: int = 200_000  # of a text
    tokens: int = 4_096
    weights: int = 60_000_000  # of all heads and lenses of a view; more are read layer by layer
    layer_weights: int = 80_000_000  # of all heads of one layer
    new_tokens: int = 200  # generated ones
    models: int = 2  # loaded at once, and in one view
    lenses: int = 8  # of a view
    views: int = 12  # stored; the one that was not used for longest goes first
    view_weights: int = 240_000_000  # of all stored views
    looks: int = 8  # that run or wait
    blocks: int = 1_024  # that are read or wait
    running: int = 1  # jobs at once
    jobs: int = 8  # that run or wait
    listed: int = 1_000  # files
    entries: int = 50_000  # of folders that are looked at to find them
    depth: int = 5  # folders below FOLDER in which files are found

"""The views that are kept: what the viewer of a page shows, until newer ones need the room."""

import json
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass

from headscope.studio.guard import Refusal
from headscope.studio.options import Limits
from headscope.viewer.source import Source

GONE = "This view is no longer kept: newer ones took its place, or the studio was started again. Look again."


@dataclass(frozen=True)
class StoredView:
    """A source, its header as JSON, and how many weights it keeps in memory."""

    id: str
    source: Source
    header: bytes
    weights: int


class ViewStore:
    """Views by id; the one that was not used for longest goes first."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.lock = limits, threading.Lock()
        self.views: OrderedDict[str, StoredView] = OrderedDict()

    def add(self, source: Source, weights: int) -> StoredView:
        """Keep a source, whose header is computed here, and drop older ones beyond the limits."""
        header = json.dumps(source.header(), allow_nan=False).encode()
        view = StoredView(secrets.token_hex(8), source, header, weights)
        with self.lock:
            self.views[view.id] = view
            while len(self.views) > 1 and self._is_full():
                self.views.popitem(last=False)
        return view

    def find(self, identity: str) -> StoredView:
        """Return a view, which is then the newest."""
        with self.lock:
            if identity not in self.views:
                raise Refusal(404, GONE)
            self.views.move_to_end(identity)
            return self.views[identity]

    def _is_full(self) -> bool:
        weights = sum(view.weights for view in self.views.values())
        return len(self.views) > self.limits.views or weights > self.limits.view_weights

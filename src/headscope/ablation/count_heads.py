"""The number of heads of every layer, counted while a model runs."""

from collections.abc import Callable
from typing import Any

from headscope.core.edit import Edit, LayerHeads
from headscope.engine.edited import edited
from headscope.engine.model import Model


class _HeadCounter(Edit):
    """Counts the heads of each layer, and changes nothing."""

    counts: dict[str, dict[int, int]]

    def __call__(self, heads: LayerHeads) -> None:
        """Keep the number of heads of a layer."""
        self.counts.setdefault(heads.site, {})[heads.layer] = heads.context.shape[1]


def count_heads(model: Model, run: Callable[[], Any]) -> dict[str, list[int]]:
    """Return the number of heads of each layer, by attention site; `run` runs the model on any input."""
    counter = _HeadCounter()
    counter.counts = {}
    with edited(model, counter):
        run()
    return {site: [counts[layer] for layer in sorted(counts)] for site, counts in counter.counts.items()}

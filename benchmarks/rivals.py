"""A model's forward pass, and what headscope adds to it step by step."""

from collections.abc import Callable
from typing import Any

import torch

from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.edited import edited
from headscope.engine.model import Model
from headscope.experiments.timing import Rival
from headscope.studies.effective_attention.timing import SETTLING


def end_to_end(model: Model, batch: int, length: int) -> dict[str, Callable[[], Any]]:
    """The plain forward pass with attentions, then capture, view and whole maps, each with all that goes before it.

    Each returns everything it made, so that no rival frees memory on the clock.
    """
    given = _texts(model, batch, length)
    there = {name: each.to(model.network.device) for name, each in given.items()}

    @torch.no_grad()
    def forward() -> Any:
        return model.network(**there, output_attentions=True)

    def captured() -> Any:
        return capture(model, given)

    def factored() -> Any:
        trace = captured()
        return trace, view(trace, "effective")

    def materialised() -> Any:
        trace, maps = factored()
        return trace, [maps.layer(label) for label in maps.layers]

    return {each.__name__: each for each in (forward, captured, factored, materialised)}


def in_place(model: Model, batch: int, length: int) -> Rival:
    """The forward pass with effective attention in place of attention."""
    there = {name: each.to(model.network.device) for name, each in _texts(model, batch, length).items()}

    @torch.no_grad()
    def forward() -> Any:
        return model.network(**there)

    return Rival(forward, lambda: edited(model, "effective_attention"), SETTLING)


def _texts(model: Model, batch: int, length: int) -> dict[str, torch.Tensor]:
    ids = torch.randint(1000, model.network.config.vocab_size, (batch, length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

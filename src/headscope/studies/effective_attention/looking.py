"""What is measured of every head: one pass for the tuned model, one for the base, one beside norms."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from headscope.core.example import Example
from headscope.engine.capture import capture
from headscope.engine.model import Model
from headscope.measuring.measure import measure
from headscope.measuring.plan import count_tokens

LENSES = {
    "standard": "raw",
    "visible": "effective",
    "padded": "effective:keys=padded",
    "paper": "effective:keys=paper",
}
"""The attentions that are compared, by the names that tables give them."""

BESIDE_NORMS = {"standard": "raw", "visible": "effective", "norm": "norm"}


@dataclass(frozen=True)
class Look:
    """What decides the numbers of a measurement, beside model and examples."""

    max_length: int
    classifier: str
    seed: int
    progress: bool


def looked_at(
    model: Model, examples: Sequence[Example], look: Look, path: Path, *, against: Model | None = None
) -> xr.Dataset:
    """The value of every example for every head: patterns, special tokens, types of tokens, effective share.

    Texts are filled up to `max_length`, as the published code does, so that all attentions see the same batches; the
    exact one does not notice. With `against` also the similarity of every map with that of the other model.
    """
    statistics = [
        f"patterns:classifier={look.classifier}",
        "special_tokens:several=max",
        "token_types",
        "effective_share",
        *(["similarity"] if against is not None else []),
    ]
    found = measure(
        model,
        list(examples),
        lens=list(LENSES.values()),
        statistics=statistics,
        against=against,
        max_length=look.max_length,
        pad_to=look.max_length,
        rows=True,
        out=path,
        resume=True,
        progress=look.progress,
    )
    return found.isel(site=0).assign_coords(lens=list(LENSES))


def beside_norms(model: Model, examples: Sequence[Example], look: Look, path: Path) -> xr.Dataset:
    """How far standard and exact effective attention agree with the norm-based analysis of the same heads."""
    found = measure(
        model,
        list(examples),
        lens=list(BESIDE_NORMS.values()),
        statistics=["lens_agreement", "token_types"],
        max_length=look.max_length,
        rows=True,
        out=path,
        resume=True,
        progress=look.progress,
    )
    return found.isel(site=0).assign_coords(lens=list(BESIDE_NORMS))


def lengths(model: Model, examples: Sequence[Example], max_length: int) -> xr.Dataset:
    """How many tokens every example has, cut as it is studied and whole, and the value dimensions of a head."""
    whole = count_tokens(model, examples, None)
    values = capture(model, [examples[0].text], layers=0, keep=("values",), max_length=max_length).values
    assert values is not None
    return xr.Dataset(
        {
            "tokens": ("example", [min(each, max_length) for each in whole]),
            "whole": ("example", whole),
            "value_size": values[0].shape[-1],
        },
        coords={"example": [each.id for each in examples]},
    )

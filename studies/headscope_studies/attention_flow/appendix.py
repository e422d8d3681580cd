"""What the paper names without a number: single heads, special tokens, receptive fields of decoders; its sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.example import Example
from headscope.core.lens import view
from headscope.engine.capture import stream
from headscope.engine.model import Model
from headscope.experiments.summary import summarise
from headscope_studies.attention_flow.paper import SENTENCES, SHOWN
from headscope_studies.attention_flow.prediction_rows import KEPT, RowComparison, correlate, find_prediction_tokens
from headscope_studies.attention_flow.replaced_word import show_replaced
from headscope_studies.attention_flow.token_scores import measure_token_scores, split_token_scores

SPECIAL = {
    "blank-out": "blank_out:replace=unk",
    "blank-out, special tokens too": "blank_out:replace=unk,special=replace",
    "gradient": "input_gradient",
    "gradient, special tokens too": "input_gradient",
}
"""Importances of ordinary tokens, and of all."""

HEADS = {"raw": "raw", "rollout": "rollout:heads=each", "flow": "flow:heads=each"}
"""A head's own attention, and that through the merged layers below (appendix A.1)."""

FIELD = {
    **{name: name for name in SHOWN},
    "rollout ÷ receptive field": "rollout:receptive_field=true",
    "flow ÷ receptive field": "flow:receptive_field=true",
}
"""The paper's conclusion asks to normalize by the receptive field under a causal mask."""


def score_tokens(model: Model, examples: Sequence[Example], methods: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return the importances of tokens by label; special tokens count where the label says so."""
    tables: dict[str, list[Any]] = {}
    for label, method in methods.items():
        special = label.endswith("special tokens too")
        measured = measure_token_scores(
            model, examples, {label: method}, target="label", max_length=None, special=special
        )
        tables |= split_token_scores(measured)
    return tables


def compare_lenses(
    model: Model, examples: Sequence[Example], lenses: Mapping[str, str], methods: Mapping[str, str]
) -> xr.Dataset:
    """Return the mean `correlation` of lenses with importances, `lens importance layer`."""
    comparison = RowComparison(lenses, score_tokens(model, examples, methods), {"subject": "subject_position"})
    rows = comparison.measure(model, examples, max_length=None, quiet=True)
    return summarise("correlation", rows["correlation"])


def compare_heads(model: Model, examples: Sequence[Example], method: str) -> xr.Dataset:
    """Return the mean `correlation` of every head with an importance, `lens layer head`."""
    scores = score_tokens(model, examples, {"own": method})["own"]
    rows: list[Any] = []
    for trace in stream(model, list(examples), keep=KEPT, target="label"):
        places, real = find_prediction_tokens(trace.keys).tolist(), trace.keys.real.cpu()
        maps = [view(trace, lens) for lens in HEADS.values()]
        for at, place in enumerate(places):
            table = [
                [one.layer(label)[at, :, place][:, real[at]].detach().double().cpu().numpy() for label in one.layers]
                for one in maps
            ]
            rows.append(correlate(np.array(table), scores[len(rows)]))
    dims = ("example", "lens", "layer", "head")
    coords = {"lens": list(HEADS), "layer": range(1, rows[0].shape[1] + 1), "head": range(rows[0].shape[2])}
    return summarise("correlation", xr.DataArray(np.array(rows), coords, dims))


def show_sentences(model: Model) -> xr.Dataset:
    """Return the paper's sentences with the word replaced that it replaces, `shown version lens layer token`."""
    lenses = dict(zip(SHOWN, SHOWN, strict=True))
    shown = []
    for number, (text, position, other, label) in enumerate(SENTENCES, start=1):
        columns = {"subject_position": position, "swapped_subject": other}
        example = Example(f"sentence {number}", text, words=tuple(text.split()), label=label, columns=columns)
        one = show_replaced(model, {"chosen": [example]}, lenses, max_length=None).sel(shown=["chosen"])
        shown.append(one.assign_coords(shown=[f"sentence {number}"]))
    width = max(one.sizes["token"] for one in shown)
    padded = [one.pad(token=(0, width - one.sizes["token"]), constant_values=np.nan) for one in shown]
    return xr.concat([one.assign_coords(token=range(width)) for one in padded], "shown")

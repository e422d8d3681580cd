"""What a masked word attends to, beside the words that a masked language model would fill in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.lens import view
from headscope.core.provenance import stamp
from headscope.core.tokens import ROLES, Tokens
from headscope.core.trace import Trace
from headscope.engine.capture import stream
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.plotting.facets import interval_facets
from headscope.results.hashes import fingerprint_examples
from headscope.training.find_task import find_task_of_head
from headscope_studies.attention_flow.prediction_rows import KEPT, average_heads

MASK = "{mask}"
"""What stands for the masked word in the words of an example."""


def predicts_masked_words(model: Model) -> bool:
    """Return whether a model predicts masked words."""
    try:
        find_task_of_head("mlm", model.network, [])
    except InputError:
        return False
    return model.tokenizer.mask_token is not None


def measure_sentences(
    model: Any, sentences: Mapping[str, Mapping[str, str]], lenses: Mapping[str, str], *, device: str | None = None
) -> xr.Dataset | None:
    """Return `measure_masked` of sentences with "{mask}", stamped; None for a model without a head for masked words.

    Each sentence has two of its words, with the word that each of them calls for in place of the mask.
    """
    loaded = model if isinstance(model, Model) else load(model, device=device, dtype="float32")
    if not predicts_masked_words(loaded):
        return None
    examples = []
    for number, (text, fillers) in enumerate(sentences.items()):
        words = tuple(text.split())
        columns = {"candidates": tuple(map(words.index, fillers)), "fillers": tuple(fillers.values())}
        examples.append(Example(str(number), text, words=words, columns=columns))
    facts = {"masked_model": Path(loaded.spec).name, "weights_hash": loaded.weights_hash, "n": len(examples)}
    return stamp(measure_masked(loaded, examples, lenses), **facts, data=fingerprint_examples(examples))


def measure_masked(
    model: Model,
    examples: Sequence[Example],
    lenses: Mapping[str, str],
    *,
    batch_size: int = 16,
    max_length: int | None = None,
) -> xr.Dataset:
    """Return the weight from the mask to each candidate, and the probability of the word that goes with it.

    Examples have `words`, one of which is "{mask}", and the columns `candidates`, positions of two words that the
    masked word may refer to, and `fillers`, the word that each of them calls for. The weight is the share of the mask's
    row, summed over a candidate's tokens. A filler that the tokenizer splits has no probability, which is NaN.
    """
    masked = [_put_mask(example, model.tokenizer.mask_token) for example in examples]
    weights, chances = [], []
    keep = (*KEPT, "model_output")
    for trace in stream(model, masked, batch_size=batch_size, keep=keep, max_length=max_length):
        positions = _find_masks(trace.keys)
        chances.append(_read_chances(model, trace, positions))
        weights.append(np.stack([_weigh(trace, view(trace, lens), positions) for lens in lenses.values()], 1))
    dims = ("example", "lens", "layer", "candidate")
    layers = [label + 1 for label in trace.layers]
    return xr.Dataset(
        {
            "weight": (dims, np.concatenate(weights)),
            "probability": (("example", "candidate"), np.concatenate(chances)),
            "text": ("example", [example.text for example in masked]),
            "name": (("example", "candidate"), [_name_candidates(example) for example in masked]),
            "filler": (("example", "candidate"), [list(example.columns["fillers"]) for example in masked]),
        },
        {"example": [example.id for example in masked], "lens": list(lenses), "layer": layers},
    )


def count_agreement(masked: xr.Dataset) -> dict[str, int]:
    """Return by lens in how many texts the name with more weight in the last layer goes with the more probable word."""
    last = masked.isel(layer=-1)
    weight, chance = (
        np.diff(last[name].transpose(..., "candidate").values, axis=-1) for name in ("weight", "probability")
    )
    same = (np.sign(weight[..., 0]) == np.sign(chance)) & (chance != 0)  # example lens
    return {str(lens): int(count) for lens, count in zip(last["lens"].values, same.sum(0), strict=True)}


def masked_table(masked: xr.Dataset) -> pd.DataFrame:
    """Return the words that fill the mask and their probabilities, and the last layer's weight on each candidate."""
    last, rows = masked.isel(layer=-1), []
    for text in last["example"].values:
        sentence = last.sel(example=text)
        names = [str(name) for name in sentence["name"].values]
        row: dict[str, Any] = {"text": str(sentence["text"].values)}
        for filler, chance in zip(sentence["filler"].values, sentence["probability"].values, strict=True):
            row[f"p({filler})"] = float(chance)
        for lens in last["lens"].values:
            weights = sentence["weight"].sel(lens=lens).values
            row[str(lens)] = ", ".join(f"{name} {weight:.3f}" for name, weight in zip(names, weights, strict=True))
        rows.append(row)
    return pd.DataFrame(rows).set_index("text")


def draw_masked(masked: xr.Dataset) -> Figure:
    """Draw the weight from the mask to each candidate by layer: panels by lens down, by text across."""
    table: dict[str, dict[str, xr.Dataset]] = {}
    series = [f"goes with “{word}”" for word in masked["filler"].values[0]]
    for lens in masked["lens"].values:
        for letter, example in zip("abcdefgh", masked["example"].values, strict=False):
            sentence = masked.sel(lens=lens, example=example)
            values = (("layer", "lens"), sentence["weight"].transpose("layer", "candidate").values)
            lines = xr.Dataset(
                dict.fromkeys(("value", "low", "high"), values), {"layer": sentence["layer"], "lens": series}
            )
            first, second = map(str, sentence["name"].values)
            table.setdefault(str(lens), {})[f"({letter}) {first}, {second}"] = lines.drop_vars(
                "example", errors="ignore"
            )
    return interval_facets(table, x="layer", label="layer", lines=True)


def _put_mask(example: Example, mask: str) -> Example:
    words = tuple(mask if word == MASK else word for word in example.words or ())
    return Example(example.id, " ".join(words), words=words, columns=example.columns)


def _find_masks(tokens: Tokens) -> list[int]:
    is_mask = (tokens.roles == ROLES.index("mask")).cpu()
    if not bool(is_mask.any(-1).all()):
        raise InputError("A text has no mask token within its first tokens. Give a larger max_length.")
    return is_mask.int().argmax(-1).tolist()


def _read_chances(model: Model, trace: Trace, positions: Sequence[int]) -> Any:
    """Return the probability of the fillers of every example, `example candidate`."""
    logits = trace.model_output.logits
    rows = torch.stack([logits[at, position].double().softmax(-1) for at, position in enumerate(positions)]).cpu()
    table = np.full((len(positions), 2), np.nan)
    for at, example in enumerate(trace.examples):
        for column, word in enumerate(example.columns["fillers"]):
            ids = model.tokenizer.encode(word, add_special_tokens=False)
            table[at, column] = float(rows[at, ids[0]]) if len(ids) == 1 else np.nan
    return table


def _weigh(trace: Trace, maps: Any, positions: Sequence[int]) -> Any:
    sizes, words = average_heads(maps).abs(), trace.keys.word.cpu()
    table = []
    for at, (mask_position, example) in enumerate(zip(positions, trace.examples, strict=True)):
        row = sizes[at, :, mask_position]
        shares = row / row.sum(-1, keepdim=True)
        table.append([shares[:, words[at] == position].sum(-1).numpy() for position in example.columns["candidates"]])
    return np.array(table).transpose(0, 2, 1)


def _name_candidates(example: Example) -> list[str]:
    return [(example.words or ())[position] for position in example.columns["candidates"]]

"""Examples with one word replaced: the prediction and the prediction token's row, before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.example import Example
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.model import Model
from headscope.plotting.facets import row_facets
from headscope.training.score import score
from headscope_studies.attention_flow.prediction_rows import KEPT, select_rows

CANDIDATES = 8
"""Examples of each kind that are tried, until one's prediction flips."""

VERSIONS = ("before", "after")
KINDS = ("right", "wrong", "chosen")
"""What a shown example is: predicted correctly, predicted wrongly, or chosen by the user."""


@dataclass(frozen=True)
class ReplacedWord:
    """An example, and the same with another word; `note` says which, such as article → articles."""

    before: Example
    after: Example
    note: str


def replace_words(example: Example, blank: str) -> list[ReplacedWord]:
    """Return the example with its subject in the other number, or else with each of its words left blank.

    >>> [replaced.after.text for replaced in replace_words(Example("0", "a cat"), "[UNK]")]
    ['[UNK] cat', 'a [UNK]']
    """
    words = example.words or tuple(example.text.split())
    columns = example.columns
    position, other = columns.get("subject_position"), columns.get("swapped_subject")
    known = [(int(position), str(other))] if position is not None and other else []
    before = replace(example, text=" ".join(words), words=words)
    results = []
    for index, word in known or [(index, blank) for index in range(len(words))]:
        changed = (*words[:index], word, *words[index + 1 :])
        after = replace(before, id=f"{example.id} {index}", text=" ".join(changed), words=changed)
        results.append(ReplacedWord(before, after, f"{words[index]} → {word}"))
    return results


def choose_kinds(examples: Sequence[Example], scored: xr.Dataset) -> dict[str, list[Example]]:
    """Return some examples that are predicted correctly, and some that are not; those with attractors come first."""
    right = scored["prediction"].values == scored["label"].values
    ordered = sorted(range(len(examples)), key=lambda at: not examples[at].columns.get("attractors"))
    kinds = {"right": [at for at in ordered if right[at]], "wrong": [at for at in ordered if not right[at]]}
    return {kind: [examples[at] for at in positions[:CANDIDATES]] for kind, positions in kinds.items() if positions}


def show_replaced(
    model: Model, kinds: Mapping[str, Sequence[Example]], lenses: Mapping[str, str], *, max_length: int | None
) -> xr.Dataset:
    """Return one example of each kind with the word that changes its prediction most, `shown version …`.

    `probability` is that of the class predicted before. Of several examples the first whose prediction flips is
    shown. The rows are the variable `weights`, with NaN behind the last token; `tokens` are separated by tabs. A kind
    without examples has an empty id.
    """
    blank = model.tokenizer.unk_token or model.tokenizer.mask_token
    replacements = {kind: _choose(model, examples, blank, max_length) for kind, examples in kinds.items()}
    examples = [_show(model, *replaced, lenses, max_length) for replaced in replacements.values()]
    width = max(example.sizes["token"] for example in examples)
    padded = [example.pad(token=(0, width - example.sizes["token"]), constant_values=np.nan) for example in examples]
    whole = xr.concat(padded, "shown").assign_coords(shown=list(replacements), token=range(width))
    texts = {str(name): "" for name, variable in whole.data_vars.items() if variable.dtype.kind in "UO"}
    return whole.reindex(shown=KINDS, fill_value={**texts, "weights": np.nan, "probability": np.nan})


def choose_shown(shown: xr.Dataset) -> dict[str, xr.Dataset]:
    """Return the examples of one kind by task, where there is one; of several seeds that of the first that has one."""
    shown_by_task: dict[str, xr.Dataset] = {}
    seeds = shown.transpose("task", "seed", ...) if "seed" in shown.dims else shown.expand_dims("seed", 1)
    for task in map(str, seeds["task"].values):
        by_seed = (seeds.sel(task=task).isel(seed=at) for at in range(seeds.sizes["seed"]))
        known = [data for data in by_seed if str(data["id"].values)]
        shown_by_task |= {task: known[0]} if known else {}
    return shown_by_task


def read_replaced(shown: xr.Dataset) -> dict[str, Any]:
    """Return the text of an example, the replaced word, and the prediction with its probability before and after."""
    before, after = (shown.sel(version=version) for version in VERSIONS)
    return {
        **{name: str(shown[name].values) for name in ("task", "id", "label", "note")},
        "seed": int(shown["seed"]) if "seed" in shown.coords else None,
        "text": str(before["text"].values),
        "before": str(before["prediction"].values),
        "after": str(after["prediction"].values),
        "probability_before": float(before["probability"]),
        "probability_after": float(after["probability"]),
    }


def draw_replaced(shown: xr.Dataset) -> Figure:
    """Draw the prediction token's row, divided by its sum, before and after the word is replaced."""
    tokens = [str(text).split("\t") for text in shown["tokens"].values]
    weights = shown["weights"].isel(token=slice(max(map(len, tokens))))
    return row_facets(weights / weights.sum("token"), tokens, VERSIONS, label="share of the row")


def _choose(model: Model, examples: Sequence[Example], blank: str, max_length: int | None) -> tuple[Any, xr.Dataset]:
    """Return the replacement to show, with the scores of both versions."""
    best: tuple[bool, float, Any, Any] | None = None
    for example in examples:
        versions = replace_words(example, blank)
        options: dict[str, Any] = {"max_length": max_length, "progress": False}
        scored = score(model, [versions[0].before, *(version.after for version in versions)], **options)
        probability = _softmax(scored["logits"].values)[:, int(scored["prediction"][0])]
        least = int(probability[1:].argmin())
        flips = bool(scored["prediction"][1 + least] != scored["prediction"][0])
        rank = (flips, float(probability[0] - probability[1 + least]))
        if best is None or rank > best[:2]:
            both = scored.isel(example=[0, 1 + least])
            best = (*rank, versions[least], both.assign(probability=("example", probability[[0, 1 + least]])))
        if flips:
            break
    assert best is not None
    return best[2], best[3]


def _show(
    model: Model, replaced: ReplacedWord, scored: xr.Dataset, lenses: Mapping[str, str], max_length: int | None
) -> xr.Dataset:
    both = [replaced.before, replaced.after]
    trace = capture(model, both, keep=KEPT, target="predicted", max_length=max_length)
    rows = {name: select_rows(view(trace, lens)) for name, lens in lenses.items()}
    counts = trace.keys.counts.tolist()
    weights = np.full((len(both), len(lenses), len(trace.layers), max(counts)), np.nan)
    for index, lens_rows in enumerate(rows.values()):
        for at, row in enumerate(lens_rows):
            weights[at, index, :, : row.shape[-1]] = row
    classes = scored["class"].values
    names = {name: [str(classes[int(label)]) for label in scored[name].values] for name in ("prediction", "label")}
    variables = {
        "weights": (("version", "lens", "layer", "token"), weights),
        "tokens": ("version", ["\t".join(row) for row in trace.keys.text]),
        "text": ("version", [example.text for example in both]),
        "prediction": ("version", names["prediction"]),
        "probability": ("version", scored["probability"].values),
        "label": names["label"][0],
        "id": replaced.before.id,
        "note": replaced.note,
    }
    layers = [label + 1 for label in trace.layers]
    return xr.Dataset(variables, {"version": list(VERSIONS), "lens": list(lenses), "layer": layers})


def _softmax(logits: Any) -> Any:
    sizes = np.exp(logits - logits.max(-1, keepdims=True))
    return sizes / sizes.sum(-1, keepdims=True)

"""The layout of HeadVis: `config.json`, `scatter_data.json` and `heads/L{layer}H{head}.json`.

Fields are those that `data_pipeline.py` of HeadVis (github.com/anthropics/headvis) specifies. Intervals of activation
are three here: 3 = strongest, 2 = median, 1 = weakest by the activity of the atlas.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.errors import InputError
from headscope.engine.recording.sites import find_sites
from headscope.head_atlas.selection import GROUPS, Head
from headscope.head_atlas.sparse import UNIT
from headscope.measuring.job import MeasureJob

TOP_TOKENS = 50
"""Tokens in the lists of those that attend most, and are attended to most."""

INTERVALS = {group: len(GROUPS) - index for index, group in enumerate(GROUPS)}


TWO_TEXTS = (
    "The layout of HeadVis has one text for queries and keys, but the {} attention of this model is from one text to "
    "another. Leave headvis out, or choose another site."
)


def check_headvis(job: MeasureJob) -> None:
    """Raise InputError, before anything is measured, if queries and keys are tokens of different texts."""
    site = str(job.facts["site"])
    if len(set(find_sites(job.observer.model).sides_of(site))) > 1:
        raise InputError(TWO_TEXTS.format(site))


def write_headvis(header: Mapping[str, Any], heads: Mapping[Head, Any], folder: Path) -> None:
    """Write the folder. `heads` gives for each head a function that returns what its file holds.

    Only the first lens is written: HeadVis shows one attention.
    """
    (folder / "heads").mkdir(parents=True)
    (folder / "attributions").mkdir()
    scalars = [scalar for scalar in header["scalars"] if not scalar["classes"]]
    _write(folder / "config.json", _make_config(header, scalars, list(heads)))
    _write(folder / "scatter_data.json", _make_scatter(header, scalars, list(heads)))
    for (layer, head), read in heads.items():
        _write(folder / "heads" / f"L{layer}H{head}.json", make_head(read()["examples"]))
    _write(folder / "server_config.json", {})  # no server
    _write(folder / "attributions" / "manifest.json", {})


def make_head(examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the file of one head: its sequences, distances of attention, and tokens by weight."""
    sequences = [_make_sequence(example) for example in examples if example["maps"][0] is not None]
    activations = [sequence["max_activation"] for sequence in sequences]
    return {
        "sequences": sequences,
        "qk_distance_histogram": count_distances(sequences),
        "top_query_tokens": _rank_tokens(sequences, 0),
        "top_key_tokens": _rank_tokens(sequences, 1),
        "histogram": {},  # optional, and not known of all examples
        "statistics": {
            "n_samples": len(sequences),
            "mean_max_activation": round(float(np.mean(activations)), 4) if activations else 0.0,
        },
    }


def _make_sequence(example: Mapping[str, Any]) -> dict[str, Any]:
    stored, tokens = example["maps"][0], example["queries"]["text"]
    queries = np.repeat(np.arange(len(stored["counts"])), stored["counts"])
    keys, weights = np.array(stored["keys"], int), np.array(stored["weights"], float) * UNIT
    elsewhere = (queries > 0) & (keys > 0) & (queries != keys)  # neither the first token nor the diagonal
    return {
        "sequence_id": example["position"],
        "interval": INTERVALS[example["group"]],
        "tokens": tokens,
        "attention_indices": (queries * len(tokens) + keys).tolist(),
        "attention_values": [round(weight, 4) for weight in weights.tolist()],
        "seq_len": len(tokens),
        "max_activation": round(float(weights[elsewhere].max(initial=0.0)), 4),
    }


def count_distances(sequences: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Return how many kept weights lie at each distance of query and key, in bins that double."""
    longest = max((sequence["seq_len"] for sequence in sequences), default=1)
    edges = [0, *(2**power for power in range(max(1, int(longest - 1).bit_length()) + 1))]
    places = [_places(sequence) for sequence in sequences]
    distances = np.concatenate([np.abs(queries - keys) for queries, keys in places]) if places else np.array([], int)
    return {"bin_edges": edges, "bin_values": np.histogram(distances, edges)[0].tolist()}


def _places(sequence: Mapping[str, Any]) -> tuple[Any, Any]:
    queries, keys = np.divmod(np.array(sequence["attention_indices"], int), sequence["seq_len"])
    return queries, keys


def _rank_tokens(sequences: Sequence[Mapping[str, Any]], side: int) -> list[dict[str, Any]]:
    """Return tokens by the weight that they give (side 0) or get (side 1), the largest first."""
    weights: Counter[str] = Counter()
    for sequence in sequences:
        for place, weight in zip(_places(sequence)[side], sequence["attention_values"], strict=True):
            weights[sequence["tokens"][place]] += weight
    return [{"token": token, "weight": round(weight, 4)} for token, weight in weights.most_common(TOP_TOKENS)]


def _name_metric(scalar: Mapping[str, Any]) -> str:
    """Return the name of a number by head, with its lens where it is measured through several."""
    return str(scalar["name"]) if scalar["lens"] is None else f"{scalar['name']} ({scalar['lens']})"


def _make_config(
    header: Mapping[str, Any], scalars: Sequence[Mapping[str, Any]], heads: Sequence[Head]
) -> dict[str, Any]:
    described = {_name_metric(scalar): scalar["label"] for scalar in scalars}
    return {
        "model_name": header["model"],
        "heads": [list(head) for head in heads],
        "n_layers": len(header["layers"]),
        "n_heads": len(header["heads"]),
        "n_intervals": len(GROUPS),
        "metrics": list(described),
        "metric_descriptions": described,
        "head_data_pattern": "L{layer}H{head}.json",
        "has_umap": False,
        "umap_heads": [],
        "custom_plots": [{"key": "qk_distance_histogram", "label": "Q-K distance"}],
        "custom_tables": [
            {"key": "top_query_tokens", "label": "Top query tokens"},
            {"key": "top_key_tokens", "label": "Top key tokens"},
        ],
        "statistics_display": {
            "n_samples": {"label": "Examples", "format": "default"},
            "mean_max_activation": {"label": "Mean max activation", "format": "default"},
        },
        "pipeline_config": {"made_with": header["made"], "lens": header["lenses"][0]["name"], **header["kept"]},
    }


def _make_scatter(
    header: Mapping[str, Any], scalars: Sequence[Mapping[str, Any]], heads: Sequence[Head]
) -> list[dict[str, Any]]:
    """Return a row for each head; those with all numbers first, because HeadVis takes its axes from the first row."""
    rows = []
    for layer, head in heads:
        row, column = header["layers"].index(layer), header["heads"].index(head)
        numbers = {_name_metric(scalar): scalar["values"][row][column] for scalar in scalars}
        rows.append({"layer": layer, "head": head, **{name: x for name, x in numbers.items() if x is not None}})
    return sorted(rows, key=len, reverse=True)


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, allow_nan=False), encoding="utf-8")

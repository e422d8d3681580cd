"""Heads that attend to words in a relation: how much, beside words at the same distance, and one head on two texts."""

from collections import Counter
from collections.abc import Sequence
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.errors import InputError
from headscope.core.estimate import estimate, take_interval, with_interval
from headscope.core.example import Example, sample_examples
from headscope.core.lens import view
from headscope.core.provenance import stamp
from headscope.data.bundled.files import bundled_file
from headscope.data.reading.read import read
from headscope.engine.capture import capture
from headscope.engine.model import Model
from headscope.experiments.claims import FEWEST
from headscope.maps.word_pairs import has_name, list_word_pairs
from headscope.maps.words import to_words
from headscope.measuring.measure import measure
from headscope.results.hashes import fingerprint_examples
from headscope.statistics.relations import Relations
from headscope.uncertainty.corrections import correct_p_values, simultaneous_factor
from headscope.uncertainty.intervals import t_test

SAMPLE = "ewt_sample.conllu"
LEFT_OUT = ("root", "punct")
MOST = 12
ENCODED = 0.1
"""Weight above that at the same distance from which a head is counted as attending to a relation."""

LARGER = "larger"
"""The direction that is judged: the larger of both, as in the paper, which does not say from which word to which."""

SHORT = range(5, 13)
"""Numbers of words of the texts whose maps are shown."""


def read_relations(source: Any = None) -> list[Example]:
    """Read texts with related words: a treebank, a table of word pairs, or None for the sentences of the package."""
    if source is None:
        with as_file(bundled_file(SAMPLE)) as path:
            return read(f"conllu@{path}")
    table = (
        isinstance(source, str | Path) and "@" not in str(source) and Path(source).suffix in (".tsv", ".tab", ".txt")
    )
    return read(f"word_pairs@{source}" if table else source)


def choose_relations(examples: Sequence[Example]) -> tuple[str, ...]:
    """Return the most common relations, without subtypes, that are in enough texts; fewer where none are."""
    counts = Counter(name for example in examples for name in {_name(pair[2]) for pair in list_word_pairs(example)})
    common = [name for name, _ in counts.most_common() if name not in LEFT_OUT]
    if not common:
        raise InputError("No two words of these texts are related. Give a treebank with heads, or a table of pairs.")
    return tuple([name for name in common if counts[name] >= FEWEST][:MOST] or common[:MOST])


def measure_relations(
    model: Model, examples: Sequence[Example], names: Sequence[str] = (), *, max_length: int | None, progress: bool
) -> xr.Dataset:
    """Return the weights between related words along `task`, which are relations, direction, layer and head.

    `gain` is the mean weight above that of words at the same distance, `gain_p` of a t-test, and `gain_p_adjusted`
    corrected for all heads and relations of a direction (Holm). `best_gain_change` is that of the head with the largest
    gain, and `encoding` the share of heads whose gain reaches `ENCODED`; their intervals hold for all heads together.
    """
    chosen = Relations(names=tuple(names) or choose_relations(examples))
    options: dict[str, Any] = {"max_length": max_length, "progress": progress}
    data = measure(model, list(examples), lens="raw", statistics=[chosen], **options).isel(site=0, lens=0, drop=True)
    data = data.rename(relation="task").transpose("task", "direction", "layer", "head")
    table = xr.merge([take_interval(data, stem, name) for stem, name in _QUANTITIES.items()])
    count = data["relations_gain_n"].sel(direction=LARGER).max(("layer", "head"))
    error = data["relations_gain_sd"] / np.sqrt(data["relations_gain_n"])
    p = t_test(data["relations_gain"].values, error.values, np.maximum(data["relations_gain_n"].values - 1, 1))
    adjusted = np.stack([correct_p_values(p[:, at]) for at in range(p.shape[1])], axis=1)
    tests = {"gain_p": (table["gain"].dims, p), "gain_p_adjusted": (table["gain"].dims, adjusted)}
    table = table.assign(tests).assign(n=count.astype(int).reset_coords(drop=True))
    facts = {"command": "relation heads", "model": model.spec, "weights_hash": model.weights_hash}
    data_hash = fingerprint_examples(examples)
    return stamp(table.merge(summarise_best(table)).drop_attrs(), **facts, data=data_hash, n=len(examples))


_QUANTITIES = {"relations": "weight", "relations_baseline": "baseline", "relations_gain": "gain"}


def summarise_best(table: xr.Dataset) -> xr.Dataset:
    """Return the largest gain of all heads, and the share of heads that attend to the relation, for each relation."""
    rows: dict[str, list[list[float]]] = {"best_gain_change": [], "encoding": []}
    for name in table["task"].values:
        part = table.sel(task=name, direction=LARGER)
        value, low, high = (end.values.ravel() for end in estimate(part, "gain").ends)
        factor = simultaneous_factor(value.size, int(part["n"]))
        ends = value, value - factor * (value - low), value + factor * (high - value)
        rows["best_gain_change"].append([float(end.max()) for end in ends])
        rows["encoding"].append([float((end >= ENCODED).mean()) if np.isfinite(end).all() else np.nan for end in ends])
    variables: dict[str, Any] = {}
    for quantity, table_of_ends in rows.items():
        variables |= with_interval(quantity, ("task",), np.array(table_of_ends).T)
    return xr.Dataset(variables, {"task": table["task"].values})


def find_best_head(relation: xr.Dataset) -> tuple[int, int]:
    """Return the layer and the head with the largest gain for one relation."""
    gain = relation["gain"].sel(direction=LARGER).transpose("layer", "head")
    layer, head = np.unravel_index(int(np.nanargmax(gain.values)), gain.shape)
    return int(gain["layer"].values[layer]), int(gain["head"].values[head])


def name_best_head(relation: xr.Dataset) -> str:
    """Return the name of the head with the largest gain for one relation, such as L3H7."""
    return "L{}H{}".format(*find_best_head(relation))


def show_relation(
    model: Model, examples: Sequence[Example], relations: xr.Dataset, *, max_length: int | None, seed: int = 0
) -> xr.Dataset:
    """Return the maps between words of the best head of the relation with the largest gain, on two random texts.

    `weights` are along example, query and key, NaN beyond the words of a text; `pair` has the two related words.
    """
    name = str(relations["task"].values[int(relations["best_gain_change"].values.argmax())])
    layer, head = find_best_head(relations.sel(task=name))
    fitting = [example for example in examples if _find_pair(example, name) and len(example.words or ()) in SHORT]
    shown = sample_examples(fitting or [example for example in examples if _find_pair(example, name)], 2, seed)
    maps = to_words(view(capture(model, shown, layers=layer, heads=head, max_length=max_length), "raw"))
    width = maps.keys.real.shape[1]
    words = [[*texts, *[""] * (width - len(texts))] for texts in maps.keys.text]
    weights = np.asarray(maps.layer(layer)[:, 0].cpu(), dtype=float)
    hidden = ~np.asarray(maps.keys.real.cpu())
    weights[hidden[:, :, None] | hidden[:, None]] = np.nan
    numbers = [row.index for row in maps.keys.word.tolist()]
    pairs = [[find(word) for word in _find_pair(example, name)] for find, example in zip(numbers, shown, strict=True)]
    variables = {
        "weights": (("example", "query", "key"), weights),
        "word": (("example", "key"), np.array(words)),
        "pair": (("example", "end"), np.array(pairs)),
        "layer": layer,
        "head": head,
    }
    return xr.Dataset(variables, {"example": [example.id for example in shown]}, {"relation": name})


def _name(relation: str) -> str:
    return relation.partition(":")[0]


def _find_pair(example: Example, name: str) -> tuple[int, ...]:
    """Return the first two words of a text that stand in a relation; nothing without such."""
    return next(((i, j) for i, j, relation in list_word_pairs(example) if has_name(relation, name)), ())

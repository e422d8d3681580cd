"""Probe the syntax of pretrained models, for docs/probes.md.

One run for each model, treebank, probe and seed, which may be parallel; then the results are joined to one file for
each probe, whose stamp lists its runs. For both treebanks, all three probes and the seeds 0, 1 and 2, with the default
model, all-MiniLM-L6-v2, or with `--model e5-small`:

    python runs/probes.py run dependency --treebank en_ewt-dev.conllu --seed 0 --device cuda --out FOUND
    python runs/probes.py join FOUND --out results

The trained probes of these runs had no baseline of distances yet: the same probes of one-hot distances were fitted
later to the same halves, on a CPU, and added to the joined files:

    python runs/probes.py distances --treebank en_ewt-dev.conllu --device cpu --out FOUND
    python runs/probes.py add FOUND --out results

Runs write small files of plain arrays into FOUND, and need no HDF5. Seed 0 has all kinds of attention, or those that
`--attention` names, and the model with random weights; other seeds draw other halves of the documents and other control
tasks. A part of the runs can be joined, too.
"""

import argparse
import warnings
from collections.abc import Mapping
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.core.provenance import read_provenance, stamp
from headscope.experiments.runs import add_commands, call_command, make_parser, to_single
from headscope.maps.dependencies import ControlHeads, list_relations, read_heads
from headscope.measuring.probe import ModelStream, make_stream, make_stream_settings, split_documents
from headscope.probing.arcs import fit_weights, predict_heads, score_arcs
from headscope.probing.trained import PREDICTORS, TASKS, SentenceStream, replace_attention
from headscope.probing.word_vectors import scale_vectors
from headscope.results.accuracies import tabulate_accuracies
from headscope.results.npz import read_npz, write_npz
from headscope.results.store import open_result

DEFAULT = "all-MiniLM-L6-v2"
TREEBANKS = {"en_ewt-dev": "EWT", "en_gum-dev": "GUM"}
RAW = {"raw": {"lens": "raw"}}
LENSES = {**RAW, "effective": {"lens": "effective"}, "norm": {"lens": "norm"}}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "dependency": {**LENSES, "raw, first token": {"lens": "raw", "query": "first"}},
    "attention": LENSES,
    "attention_and_words": RAW,
}
"""The options of hs.probe by the name of the attention in the result."""

DISTANCES: dict[str, dict[str, Any]] = {
    "attention": {"factor_kinds": 2, "l2": 1e-5},
    "attention_and_words": {"factor_kinds": 4, "l2": 1e-4},
}
"""The parameters of the trained probes."""

SEEDS = (0, 1, 2)
FILL = {"accuracy_n": 0, **{f"accuracy{end}": float("nan") for end in ("", "_low", "_high")}}

LARGE = ("head_accuracy", "head_weight")
"""Left out: they are not shown."""

SHARED = ("probe", "weights_hash", "config_hash", "device", "dtype")
PER_RUN = ("data", "columns", "n", "n_train", "documents", "documents_train", "seed")


def run(chosen: argparse.Namespace) -> None:
    """Fit one probe to one model and treebank, with one seed."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label = Path(chosen.model).name if chosen.model else DEFAULT
    treebank = TREEBANKS[chosen.treebank.stem]
    model = hs.load(chosen.model, device=chosen.device, dtype="float32")
    data = hs.read(str(chosen.treebank))
    results = {}
    for name in chosen.attention or (VARIANTS[chosen.probe] if chosen.seed == 0 else RAW):
        options = VARIANTS[chosen.probe][name]
        whole = {"random_weights": chosen.seed == 0 and name == "raw", "seed": chosen.seed, "limit": chosen.limit}
        whole["batch_size"] = 32
        result = hs.probe(model, data, f"{chosen.probe}:seed={chosen.seed}", **options, **whole, progress=False)
        results[name] = result.drop_vars(LARGE, errors="ignore").drop_dims(["layer", "head"], errors="ignore")
    facts = read_provenance(result)
    joined = _stack([part.drop_attrs() for part in results.values()], "attention").assign_coords(
        attention=list(results)
    )
    joined = joined.expand_dims(model=[label], treebank=[treebank])
    kept = {name: facts[name] for name in (*SHARED, *PER_RUN)} | {"probe": chosen.probe, "limit": chosen.limit}
    chosen.out.mkdir(parents=True, exist_ok=True)
    path = chosen.out / f"{chosen.probe}.{label}.{treebank}.{chosen.seed}.{'-'.join(results)}.probe.npz"
    write_npz(
        stamp(
            joined.expand_dims(seed=[chosen.seed]),
            command="what_heads_look_at/runs/probes.py run",
            **kept,
        ),
        path,
    )


def distances(chosen: argparse.Namespace) -> None:
    """Fit the trained probes to one-hot distances in place of attention, for one model and treebank and three seeds."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label = Path(chosen.model).name if chosen.model else DEFAULT
    model = hs.load(chosen.model, device=chosen.device, dtype="float32")
    examples = hs.read(str(chosen.treebank))
    for name, seed in product(DISTANCES, SEEDS):
        path = chosen.out / f"{name}.{label}.{TREEBANKS[chosen.treebank.stem]}.{seed}.distances.npz"
        if path.is_file():
            continue
        streams = [
            make_stream(model, half, make_stream_settings("raw", batch_size=32))
            for half in split_documents(examples, seed)
        ]
        result = fit_distances(streams, DISTANCES[name], seed)
        result = result.expand_dims(model=[label], treebank=[TREEBANKS[chosen.treebank.stem]], seed=[seed])
        facts = {"command": "what_heads_look_at/runs/probes.py distances", "weights_hash": model.weights_hash}
        write_npz(stamp(result, **facts, device=model.device.type, n=len(streams[1].examples)), path)


def fit_distances(streams: list[ModelStream], options: Mapping[str, Any], seed: int) -> xr.Dataset:
    """Return the accuracy of a trained probe of one-hot distances, as `train_probe` has it beside that of attention."""
    both = [example for stream in streams for example in stream.examples]
    forms = list(dict.fromkeys(word for example in both for word in example.words or ()))
    vectors = np.ones((len(forms), 1), np.float32)
    if options["factor_kinds"] == 4:  # of words, too
        vectors = scale_vectors(streams[0].embed(forms).double().cpu().numpy())
    relations = list(list_relations(*(stream.examples for stream in streams), 100))
    tasks = (read_heads, ControlHeads.draw(both, seed))
    vocabulary = {form: row for row, form in enumerate(forms)}
    seen, new = (replace_attention(SentenceStream(stream, relations, tasks, vocabulary)) for stream in streams)
    documents = max(sentence.document for sentence in new) + 1
    hits, counts = np.zeros((2, 1, documents, len(relations))), np.zeros((documents, len(relations)), np.int64)
    for task in (0, 1):
        weights, _ = fit_weights(seen, vectors, task=task, iterations=100, **options)
        table = np.einsum("fd,dkh->fkh", vectors, weights.astype(np.float32))
        for sentence in new:
            heads = predict_heads(score_arcs(sentence.attention, table[sentence.forms]))
            hits[task, 0, sentence.document] += sentence.count_hits(heads, task)
            counts[sentence.document] += sentence.groups.sum(0) if task == 0 else 0
    groups = {"relation": relations}
    return tabulate_accuracies(hits, counts, tasks=TASKS, predictors=(PREDICTORS[-1],), groups=groups, seed=seed)


def add(chosen: argparse.Namespace) -> None:
    """Add the accuracies of distances to the joined files, for raw attention."""
    for name in DISTANCES:
        path = chosen.out / f"probes_{name}.nc"
        data = open_result(path).load()
        runs = [read_npz(file) for file in sorted(chosen.folder.glob(f"{name}.*.distances.npz"))]
        added = _combine([one.drop_attrs() for one in runs], ["model", "treebank", "seed"])
        added = added.expand_dims(attention=["raw"])
        facts = {**read_provenance(data), "distances": read_provenance(runs[0])["command"]}
        whole = data.drop_attrs()
        along = [variable for variable in whole.data_vars if "predictor" in whole[variable].dims]
        last = added[along].reindex_like(whole[along].isel(predictor=0, drop=True), fill_value=FILL)
        last = last.transpose(*whole["accuracy"].dims).map(to_single)
        if PREDICTORS[-1] in whole["predictor"].values:
            whole = whole.drop_sel(predictor=PREDICTORS[-1])
        both = xr.concat([whole[along], last], "predictor")
        result = whole.drop_vars([*along, "predictor"]).merge(both)
        hs.save(stamp(result, **facts), path, overwrite=True)


def join(chosen: argparse.Namespace) -> None:
    """Write the runs of each probe as one file, single precision."""
    paths = sorted(chosen.folder.glob("*.probe.npz"))
    for probe, group in groupby(paths, key=lambda path: path.name.partition(".")[0]):
        runs = [read_npz(path) for path in group]
        whole = _combine([one.drop_attrs() for one in runs], ["model", "treebank", "seed", "attention"])
        data = stamp(whole.map(to_single, keep_attrs=True), **_describe_runs(runs))
        hs.save(data, chosen.out / f"probes_{probe}.nc", overwrite=True)


def _describe_runs(runs: list[xr.Dataset]) -> dict[str, Any]:
    """Return the provenance of joined runs."""
    facts = [read_provenance(one) for one in runs]
    pairs = [(str(one["model"].item()), str(one["treebank"].item())) for one in runs]
    named = list(zip(pairs, runs, facts, strict=True))
    sizes = {bank: fact["n"] + fact["n_train"] for (_, bank), _, fact in named}
    return {
        "command": "what_heads_look_at/runs/probes.py, one run for each model, treebank and seed, joined",
        **{name: facts[0][name] for name in ("probe", "device", "dtype", "limit")},
        "model": sorted({model for model, _ in pairs}),
        "weights_hash": {model: fact["weights_hash"] for (model, _), _, fact in named},
        "data": {bank: fact["data"] for (_, bank), _, fact in named},
        "n": sum(sizes.values()),
        "runs": [
            {"model": model, "treebank": bank, "attention": list(map(str, one["attention"].values))}
            | {name: fact[name] for name in PER_RUN}
            for (model, bank), one, fact in named
        ],
    }


def _combine(runs: list[xr.Dataset], axes: list[str]) -> xr.Dataset:
    """Return runs as one Dataset along several axes."""
    if not axes:
        return runs[0]
    first, *rest = axes
    labels = list(dict.fromkeys(label for one in runs for label in one[first].values.tolist()))
    parts = [[one.sel({first: [label]}) for one in runs if label in one[first].values] for label in labels]
    return _stack([_combine(part, rest) for part in parts], first)


def _stack(parts: list[xr.Dataset], axis: str) -> xr.Dataset:
    """Return parts along an axis, with NaN and counts of 0 where one has no value; labels stay in their order."""
    labels = {
        other: list(dict.fromkeys(label for part in parts for label in part[other].values.tolist()))
        for other in map(str, parts[0].dims)
        if other != axis
    }
    fill: dict[str, Any] = {name: 0 for name in parts[0].data_vars if parts[0][name].dtype.kind in "iu"}
    fill |= {name: "" for name in parts[0].data_vars if parts[0][name].dtype.kind in "OU"}
    fill |= {name: False for name in parts[0].data_vars if parts[0][name].dtype.kind == "b"}
    fill |= {name: float("nan") for name in parts[0].data_vars if parts[0][name].dtype.kind == "f"}
    return xr.concat([part.reindex(labels, fill_value=fill) for part in parts], axis)


if __name__ == "__main__":
    parser = make_parser(__doc__)
    running, joining, fitting, adding = add_commands(parser, run=run, join=join, distances=distances, add=add)
    for command in (running, fitting):
        command.add_argument("--treebank", type=Path, required=True, help="en_ewt-dev.conllu or en_gum-dev.conllu")
        command.add_argument("--model", help="a folder or a hub id; by default the model of the package")
        command.add_argument("--device", default="cpu")
    running.add_argument("probe", choices=list(VARIANTS))
    running.add_argument("--seed", type=int, default=0)
    running.add_argument("--attention", action="append", help="such as raw; may be repeated. Default: all of the seed")
    running.add_argument("--limit", type=int, help="sentences of the treebank, for a try")
    for command in (joining, adding):
        command.add_argument("folder", type=Path)
    call_command(parser)

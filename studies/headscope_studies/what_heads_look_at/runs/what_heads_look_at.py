"""Measure what heads look at with pretrained models on WikiText-2, for docs/what_heads_look_at.md.

One run for the surface of each model, and one for each model and seed of the two models that are tuned from it; all may
be parallel. The files in results were made on a GPU with these commands, with the seeds 0, 1 and 2, with the
default model, all-MiniLM-L6-v2, and with `--model e5-small`:

    python runs/what_heads_look_at.py surface --text TEXT --out FOUND
    python runs/what_heads_look_at.py losses --text TEXT --place GLUE --seed 1 --work WORK --out FOUND
    python runs/what_heads_look_at.py join FOUND --out results

TEXT is the folder with valid.txt and test.txt of WikiText-2; 1,000 pairs of consecutive paragraphs are drawn from both.
Distances of heads in the row of [CLS] were added to the results later, on a CPU, and so were the sizes of gradients,
of the default model, tuned less than above, because the results had ratios of them alone:

    python runs/what_heads_look_at.py from_cls --text TEXT --out results
    python runs/what_heads_look_at.py gradients --text TEXT --limit 100 --train-limit 480 --epochs 2 \\
        --tuning-batch 16 --work WORK --out results
    python runs/what_heads_look_at.py examples --text TEXT --out results

The masked language model learns from the snippets of GAP that come with the package, the classifier from MRPC. Runs
write small files of plain arrays into FOUND, and need neither HDF5 nor any dataset library. What heads know of syntax
and coreference is measured by what_heads_look_at/runs/probes.py and what_heads_look_at/runs/coreference.py.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.core.example import sample_examples
from headscope.core.provenance import read_provenance, stamp
from headscope.engine.model import Model
from headscope.experiments.runs import add_join, make_parser, merge_facts, to_single
from headscope.experiments.tasks import read_glue
from headscope.experiments.tuned import describe_tuning
from headscope.results.hashes import fingerprint_examples
from headscope.results.npz import read_npz, write_npz
from headscope.results.store import open_result
from headscope_studies.what_heads_look_at import networks
from headscope_studies.what_heads_look_at.measure import measure_clusters, measure_from_cls, measure_surface
from headscope_studies.what_heads_look_at.surface import name_head

DEFAULT = "all-MiniLM-L6-v2"
INPUTS, LENGTH, BATCH = 1000, 128, 32
NAME, TASK = "WikiText-2", "mrpc"
KINDS = {"MRPC": "paraphrase detection"}
MASKED: dict[str, Any] = {"epochs": 20, "batch_size": 32, "learning_rate": 2e-4, "warmup": 0.06}
CLASSIFIER: dict[str, Any] = {"epochs": 3, "batch_size": 16, "learning_rate": 5e-5, "warmup": 0.06}
SHARED = ("version", "weights_hash", "data", "n", "max_length", "device", "dtype")
"""Facts that all runs of one model must have in common."""

EXAMPLE = ("The cat sat on the mat, because it was warm.", "It did not want to move.")

COMMAND = "what_heads_look_at/runs/what_heads_look_at.py"
PARTS = {"surface": "", "clusters": "_clusters", "no_op": "_no_op"}


def read_pairs(folder: Path, limit: int | None) -> list[hs.Example]:
    """Return the pairs of paragraphs that are studied."""
    return sample_examples(hs.read(f"paragraph_pairs:format=wikitext@{folder}"), limit or INPUTS, 0)


def surface(chosen: argparse.Namespace) -> None:
    """Measure neighbours, special tokens, punctuation, entropy and clusters of one model."""
    model, inputs, label, facts = _prepare(chosen)
    options: dict[str, Any] = {"max_length": LENGTH, "progress": False, "batch_size": BATCH}
    clusters = measure_clusters(model, inputs, **options)
    numbers = measure_surface(model, inputs, **options)
    for part, data in (("surface", numbers.expand_dims(task=[NAME])), ("clusters", clusters.drop_attrs(deep=False))):
        write_npz(stamp(data, **facts), chosen.out / f"{label}.what_heads_look_at.{part}.npz")


def from_cls(chosen: argparse.Namespace) -> None:
    """Add the distances of heads in the row of [CLS] to the clusters of one model."""
    model, inputs, label, facts = _prepare(chosen)
    path = chosen.out / f"what_heads_look_at_{label}{PARTS['clusters']}.nc"
    clusters = open_result(path).load()
    known = read_provenance(clusters)
    if chosen.limit is None and any(known[name] != facts[name] for name in ("data", "weights_hash")):
        raise SystemExit(f"{path.name} is of other inputs or weights.")
    distance = measure_from_cls(model, inputs, max_length=LENGTH, progress=False, batch_size=BATCH)
    whole = clusters.drop_attrs(deep=False).assign(cls_distance=distance.drop_attrs())
    facts = {**known, "from_cls": f"{COMMAND} from_cls, {len(inputs)} inputs, {facts['device']}"}
    hs.save(stamp(whole, **facts), path, overwrite=True)


def gradients(chosen: argparse.Namespace) -> None:
    """Tune a masked language model with one seed, and measure how large the gradients of its loss are."""
    model, inputs, label, facts = _prepare(chosen)
    snippets = [*hs.read("gap_halves:development"), *hs.read("gap_halves:validation")]
    given = {"epochs": chosen.epochs, "batch_size": chosen.tuning_batch, "limit": chosen.train_limit}
    more = {name: value for name, value in given.items() if value is not None}
    masking = {**MASKED, **more, "seed": chosen.seed, "max_length": LENGTH}
    masked = networks.tune_masked(model, None, snippets, out=chosen.work / f"{label}-gradients", **masking)
    options: dict[str, Any] = {"max_length": LENGTH, "progress": False, "batch_size": BATCH}
    data = networks.measure_gradients(masked, inputs, seed=chosen.seed, **options)
    learned = min(len(snippets), chosen.train_limit or len(snippets))
    facts |= {"seed": chosen.seed, "tuning": f"{learned:,} snippets of GAP, {describe_tuning(masking)}"}
    path = chosen.out / f"what_heads_look_at_{label}_gradients.nc"
    hs.save(stamp(data.map(to_single), **facts), path, overwrite=True)


def examples(chosen: argparse.Namespace) -> None:
    """Store the maps of heads that look at neighbors, at special tokens, or nowhere in particular, on one input."""
    warnings.simplefilter("ignore", hs.DataWarning)
    model, label = hs.load(chosen.model, device=chosen.device, dtype="float32"), Path(chosen.model or DEFAULT).name
    surface = open_result(chosen.out / f"what_heads_look_at_{label}.nc").isel(task=0).sel(lens="raw").load()
    shares = {name: surface["share"].sel(target=name, drop=True) for name in ("previous", "next", "cls", "sep")}
    maps = hs.view(hs.capture(model, *EXAMPLE), "raw")
    chosen_heads = {}
    for name, values in {**shares, "broad": -surface["peak"]}.items():
        at = np.unravel_index(int(values.transpose("layer", "head").values.argmax()), values.shape)
        chosen_heads[name] = tuple(map(int, at))
    weights = [maps.layer(layer)[0, head].cpu().numpy() for layer, head in chosen_heads.values()]
    table = xr.Dataset(
        {"weights": (("kind", "query", "key"), np.stack(weights).astype(np.float32))},
        {
            "kind": list(chosen_heads),
            "name": ("kind", [name_head(*at) for at in chosen_heads.values()]),
            "query_token": ("query", list(maps.queries.text[0])),
            "key_token": ("key", list(maps.keys.text[0])),
        },
    )
    facts = {"command": f"{COMMAND} examples", "study": "what_heads_look_at", "model": label, "n": 1}
    facts |= {"weights_hash": model.weights_hash, "data": " ".join(EXAMPLE), "device": model.device.type}
    hs.save(stamp(table, **facts), chosen.out / f"what_heads_look_at_{label}_examples.nc", overwrite=True)


def losses(chosen: argparse.Namespace) -> None:
    """Tune a masked language model and a classifier with one seed, and measure the gradients of their losses."""
    model, inputs, label, facts = _prepare(chosen)
    options: dict[str, Any] = {"max_length": LENGTH, "progress": False, "batch_size": BATCH}
    parts = [networks.compare_pretrained(model, inputs, **options)]
    if not chosen.pretrained:
        facts["tuning"], tuned = _compare_tuned(chosen, model, inputs, chosen.work / f"{label}-{chosen.seed}", options)
        parts += tuned
    numbers = networks.join_networks(*parts).expand_dims(seed=[chosen.seed], axis=1)
    facts |= {"seed": chosen.seed}
    write_npz(stamp(numbers, **facts), chosen.out / f"{label}.{chosen.seed}.what_heads_look_at.no_op.npz")


def _compare_tuned(
    chosen: argparse.Namespace, model: Model, inputs: list[hs.Example], folder: Path, options: dict[str, Any]
) -> tuple[dict[str, str], list[xr.Dataset]]:
    """Return how the two models were tuned, and what their tokens count."""
    (task,), _ = read_glue(str(chosen.place), (TASK,), KINDS)
    snippets = [*hs.read("gap_halves:development"), *hs.read("gap_halves:validation")]
    given = {"epochs": chosen.epochs, "batch_size": chosen.tuning_batch, "limit": chosen.train_limit}
    more = {name: value for name, value in given.items() if value is not None}
    masking, classifying = (
        {**settings, **more, "seed": chosen.seed, "max_length": LENGTH} for settings in (MASKED, CLASSIFIER)
    )
    masked = networks.tune_masked(model, None, snippets, out=folder / "masked", **masking)
    tuned = networks.tune_classifier(model, None, task.train, out=folder / "tuned", **classifying)
    dev = sample_examples(task.dev, chosen.limit, 0)
    sizes = [min(len(texts), chosen.train_limit or len(texts)) for texts in (snippets, task.train)]
    tuning = {
        networks.MASKED: f"{sizes[0]:,} snippets of GAP, {describe_tuning(masking)}",
        networks.CLASSIFIER: f"{sizes[1]:,} pairs of {task.name}, {describe_tuning(classifying)}",
    }
    return tuning, [
        networks.compare_masked(masked, inputs, seed=chosen.seed, **options),
        networks.compare_classifier(tuned, dev, f"{task.name} dev ({task.kind})", **options),
    ]


def _prepare(chosen: argparse.Namespace) -> tuple[Model, list[hs.Example], str, dict[str, Any]]:
    """Return the model, its inputs, its name, and the facts of the run."""
    warnings.simplefilter("ignore", hs.DataWarning)  # paragraphs are truncated on purpose
    model, label = hs.load(chosen.model, device=chosen.device, dtype="float32"), Path(chosen.model or DEFAULT).name
    inputs = read_pairs(chosen.text, chosen.limit)
    facts = {
        "command": COMMAND,
        "study": "what_heads_look_at",
        "model": label,
        "weights_hash": model.weights_hash,
        "data": fingerprint_examples(inputs),
        "n": len(inputs),
        "max_length": LENGTH,
        "device": model.device.type,
        "dtype": "float32",
    }
    return model, inputs, label, facts


def join(chosen: argparse.Namespace) -> None:
    """Save the parts of each model, weights in single precision; of tuned models all seeds in one file."""
    for label in sorted({path.name.partition(".")[0] for path in chosen.folder.glob("*.what_heads_look_at.*.npz")}):
        for part, ending in PARTS.items():
            paths = sorted(chosen.folder.glob(f"{label}.*what_heads_look_at.{part}.npz"))
            if not paths:
                continue
            runs = [read_npz(path) for path in paths]
            facts = merge_facts(runs, SHARED, COMMAND)
            plain = [run.drop_attrs() for run in runs]
            data = plain[0] if part != "no_op" else xr.concat(plain, "seed", coords="minimal", compat="override")
            facts |= {"seed": data["seed"].values.tolist()} if part == "no_op" else {}
            path = chosen.out / f"what_heads_look_at_{label}{ending}.nc"
            data = data if part == "clusters" else data.map(to_single, keep_attrs=True)
            hs.save(stamp(data, **facts), path, overwrite=True)


def main() -> None:
    """Measure the surface, measure losses, or join."""
    parser = make_parser(__doc__)
    commands: Any = parser.add_subparsers(required=True)
    added = {"from_cls": from_cls, "gradients": gradients, "examples": examples}
    verbs = {"surface": surface, **added, "losses": losses}
    for name, function in verbs.items():
        command = commands.add_parser(name, help=str(function.__doc__))
        command.add_argument("--text", type=Path, required=True, help="the folder of WikiText-2")
        command.add_argument("--model", help="a hub id or a folder; nothing: the default")
        command.add_argument("--limit", type=int, help="number of inputs; 1,000 by default")
        command.add_argument("--device", choices=("cpu", "cuda"))
        command.add_argument("--out", type=Path, required=True, help="where the small results go")
        command.set_defaults(what=function)
        if function in (gradients, losses):
            command.add_argument("--seed", type=int, default=0, help="seed of tuning and of masks")
            command.add_argument("--epochs", type=int, help="of tuning; 20 for masked words and 3 for a classifier")
            command.add_argument("--tuning-batch", type=int, help="of tuning; 32 and 16 by default")
            command.add_argument("--train-limit", type=int, help="number of texts to tune on; all by default")
            command.add_argument("--work", type=Path, help="where tuned models are kept")
    command.add_argument("--place", type=Path, help="the folder of GLUE")
    command.add_argument("--pretrained", action="store_true", help="measure the model itself alone, without a loss")
    add_join(commands, join)
    chosen = parser.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()

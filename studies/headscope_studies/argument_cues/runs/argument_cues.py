"""Run the study argument-cues with pretrained models on ARCT, and the same audit of other data, for docs.

One process for each model, kind of network and part of the input, with ten seeds each; they may be parallel. The files
in results were made on a GPU with these commands, with the default model, all-MiniLM-L6-v2, and with
`--model e5-small`, for every part: warrant, "reason + warrant", "claim + warrant", all, "all, balanced":

    python runs/argument_cues.py run --arct ARCT --part all --work WORK --out FOUND
    python runs/argument_cues.py run --arct ARCT --network BiLSTM --work WORK --out FOUND
    python runs/argument_cues.py run --arct ARCT --network "bag of vectors" --work WORK --out FOUND
    python runs/argument_cues.py audit RTE --train glue:rte:train@GLUE --dev glue:rte:dev@GLUE \\
        --work WORK --out FOUND
    python runs/argument_cues.py audit SST-2 --train glue:sst-2:train@GLUE --dev glue:sst-2:dev@GLUE \\
        --train-limit 8000 --work WORK --out FOUND
    python runs/argument_cues.py join FOUND --arct ARCT --model e5-small --out results

ARCT is a folder with the original and the adversarial files. "all, balanced" learns from the adversarial training set.
Every network is trained with the settings of the study; these were chosen with one seed on train and dev, and the test
set was not looked at. Each training writes a small file of plain arrays into FOUND, and is not repeated where the file
is there; neither HDF5 nor any dataset library is needed. `join` needs no GPU. Pairs of cues were added later:

    python runs/argument_cues.py recount --arct ARCT --out results
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import xarray as xr

import headscope as hs
from headscope.core.provenance import read_provenance, stamp
from headscope.experiments.describe import describe_study
from headscope.experiments.runs import merge_facts, to_single
from headscope.experiments.steps import print_progress
from headscope.results.hashes import fingerprint_examples
from headscope.results.npz import read_npz, write_npz
from headscope.results.store import open_result
from headscope_studies.argument_cues import ArgumentCues
from headscope_studies.argument_cues.answers import NETWORKS, TUNED
from headscope_studies.argument_cues.data import read_arct
from headscope_studies.argument_cues.listed import list_cues
from headscope_studies.argument_cues.measure import (
    describe_numbers,
    join_runs,
    list_points,
    plan_training,
    run_network,
)
from headscope_studies.argument_cues.paper import PATTERNS
from headscope_studies.argument_cues.parts import list_parts

COMMAND = "argument_cues/runs/argument_cues.py over ARCT, one process for each network and part, joined"
DEFAULT = "all-MiniLM-L6-v2"
SEEDS, AUDIT_SEEDS = 10, 3
PART = "argument_cues"  # the runs of other studies may be in the same folder
SHARED = ("version", "weights_hash", "data", "dtype")
"""Facts that all runs of one model must have in common."""


def run(chosen: argparse.Namespace) -> None:
    """Train one kind of network on one part of the input, or on all of them, with several seeds."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label = name_model(chosen.model)
    study, whole, base = _prepare(chosen)
    name = "-".join([label, chosen.network, chosen.part or "every", str(chosen.seed)]).replace(" ", "_")
    training, cue = plan_training(study, base, whole, chosen.work / name, device=chosen.device)
    parts = list_parts(whole.texts, whole.choice, balanced=True)
    if chosen.part is not None and chosen.part not in [part.name for part in parts]:
        raise SystemExit(f"There is no part '{chosen.part}': {', '.join(part.name for part in parts)}.")
    data = fingerprint_examples(list_points(training.data), labels=True)
    facts = {**describe_study(study, base), "model": label, "data": data}
    for part in (part for part in parts if chosen.part in (None, part.name)):
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            path = chosen.out / f"{label}.{chosen.network}.{part.name}.{seed}.{PART}.npz".replace(" ", "_")
            if not path.is_file():
                answers = run_network(training, cue, chosen.network, part, seed, lambda *_: None)
                write_npz(stamp(answers, **{**facts, "seed": seed}), path)
                sys.stderr.write(f"{path.name}: {float(answers['learned'].item()):.3f} of its training examples\n")


def _prepare(chosen: argparse.Namespace) -> tuple[ArgumentCues, Any, Any]:
    study = ArgumentCues(
        data=str(chosen.arct),
        balanced=True,
        limit=chosen.limit,
        train_limit=chosen.train_limit,
        epochs=chosen.epochs,
        baseline_epochs=chosen.epochs,
    )
    return study, study.read_data(), hs.load(chosen.model, device=chosen.device, dtype="float32")


def audit(chosen: argparse.Namespace) -> None:
    """Audit another dataset with one model."""
    label, out = name_model(chosen.model), chosen.work / f"{chosen.name}-audit"
    study = ArgumentCues(
        data=chosen.train,
        dev=chosen.dev,
        seeds=chosen.seeds,
        limit=chosen.limit,
        train_limit=chosen.train_limit,
        epochs=chosen.epochs,
        baseline_epochs=chosen.epochs,
    )
    results = study.run(chosen.model, out, device=chosen.device, progress=print_progress)
    for name in ("numbers", "cues"):
        data = results[name]
        data = data.assign_coords(task=[chosen.name]) if "task" in data.dims else data
        facts = {**read_provenance(results[name]), "model": label}
        write_npz(stamp(data, **facts), chosen.out / f"audit.{chosen.name}.{name}.{PART}.npz")


def join(chosen: argparse.Namespace) -> None:
    """Join the runs of one model in one file, the heads and the cues in others; and copy the other audits."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label = name_model(chosen.model)
    paths = [
        path
        for network in NETWORKS
        for path in sorted(chosen.folder.glob(f"{label}.{network.replace(' ', '_')}.*.{PART}.npz"))
    ]
    study, whole, base = _prepare(chosen)
    training, cue = plan_training(study, base, whole, chosen.folder)
    order = [part.name for part in list_parts(whole.texts, whole.choice, balanced=True)]
    runs = sorted((read_npz(path) for path in paths), key=lambda run: _rank(run, order))
    facts = join_facts(runs)
    if facts["data"] != fingerprint_examples(list_points(training.data), labels=True):
        raise SystemExit("These runs answered other points than those in the folder of ARCT.")
    results = join_runs(runs, training.data, cue)
    numbers = describe_numbers(results["numbers"], training, whole, cue)
    facts |= {"n": int(numbers["n"].values[0]), "seeds": numbers["run"].values.tolist()}
    tables = {
        "": numbers,
        "_answers": results["answers"],
        "_heads": results["heads"],
        "_cues": list_cues(whole, PATTERNS),
    }
    for name, table in tables.items():
        hs.save(stamp(table.map(to_single), **facts), chosen.out / f"{PART}_{label}{name}.nc", overwrite=True)
    for path in sorted(chosen.folder.glob(f"audit.*.{PART}.npz")):
        _, name, kind, *_ = path.name.split(".")
        data = read_npz(path)
        hs.save(
            data.map(to_single).assign_attrs(data.attrs), chosen.out / f"{PART}_audit_{name}_{kind}.nc", overwrite=True
        )


def recount(chosen: argparse.Namespace) -> None:
    """Count cues and pairs of cues again in the joined files, whose other numbers stay."""
    warnings.simplefilter("ignore", hs.DataWarning)
    listed = list_cues(read_arct(str(chosen.arct)), PATTERNS).map(to_single)
    for path in sorted(chosen.out.glob(f"{PART}_*_cues.nc")):
        if not path.name.startswith(f"{PART}_audit"):
            hs.save(stamp(listed, **read_provenance(open_result(path).load())), path, overwrite=True)


def name_model(model: str | None) -> str:
    """Return the name of a model: that of its folder."""
    return Path(model or DEFAULT).name


def join_facts(runs: list[xr.Dataset]) -> dict[str, Any]:
    """Return the provenance of runs of one model, with the devices of all of them."""
    first = {name: value for name, value in read_provenance(runs[0]).items() if name != "seed"}
    shared = {name: value for name, value in merge_facts(runs, SHARED, COMMAND).items() if name != "seed"}
    return {**first, **shared, "device": ", ".join(sorted({str(read_provenance(run)["device"]) for run in runs}))}


def _rank(run: xr.Dataset, parts: list[str]) -> tuple[int, int, int]:
    network, part = (str(run[name].item()) for name in ("network", "part"))
    return NETWORKS.index(network), parts.index(part), int(run["seed"].item())


def main() -> None:
    """Run, audit, or join."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs: Any = options.add_subparsers(required=True)
    running = verbs.add_parser("run", help="train one kind of network with several seeds")
    running.add_argument("--network", choices=NETWORKS, default=TUNED)
    running.add_argument("--part", help="a part of the input, such as 'reason + warrant'; all of them by default")
    running.add_argument("--seed", type=int, default=0, help="the first seed")
    running.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds")
    running.set_defaults(what=run)
    auditing = verbs.add_parser("audit", help="audit another dataset")
    auditing.add_argument("name")
    auditing.add_argument("--train", required=True)
    auditing.add_argument("--dev", required=True)
    auditing.add_argument("--seeds", type=int, default=AUDIT_SEEDS, help="number of seeds")
    auditing.set_defaults(what=audit)
    joining = verbs.add_parser("join", help="join the results of all runs of one model")
    joining.add_argument("folder", type=Path)
    joining.set_defaults(what=join)
    counting = verbs.add_parser("recount", help="count cues and pairs of cues again in the joined results")
    counting.add_argument("--out", type=Path, required=True, help="the folder of the joined results")
    counting.set_defaults(what=recount)
    for verb in (running, auditing, joining):
        verb.add_argument("--model", help="a hub id or a folder; nothing: the default")
        verb.add_argument("--limit", type=int, help="number of points of each set; all by default")
        verb.add_argument("--train-limit", type=int, help="number of training examples; all by default")
        verb.add_argument("--epochs", type=int, help="number of epochs of every network; those of the study by default")
        verb.add_argument("--device", choices=("cpu", "cuda"))
        verb.add_argument("--out", type=Path, required=True, help="where the small results go")
    for verb in (running, joining, counting):
        verb.add_argument("--arct", type=Path, required=True, help="the folder of ARCT with its adversarial files")
    for verb in (running, auditing):
        verb.add_argument("--work", type=Path, required=True, help="where tuned models are while they are used")
    chosen = options.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()

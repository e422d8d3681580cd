"""Run the study of Michel et al. (2019) with pretrained models on GLUE and a model that translates, for docs.

One run for each model, task and seed, which may be parallel; then all results are joined. The files in results
were made on a GPU with these commands, for rte, mrpc, stsb and sst2 with seeds 0, 1 and 2, of the default model,
all-MiniLM-L6-v2, and of `--model e5-small`; and for each site of models that translate, with the same seeds:

    python runs/sixteen_heads.py tune rte --place GLUE --seed 1 --work WORK
    python runs/sixteen_heads.py run rte --place GLUE --seed 1 --work WORK --out FOUND
    python runs/sixteen_heads.py translate --model FOLDER --parallel test.tsv --train train.tsv --site cross \\
        --seed 0 --work WORK --out FOUND
    python runs/sixteen_heads.py join FOUND --out results

FOLDER is one that docs/runs/translation.py trained with this seed; sites are encoder, decoder, cross and all. `tune`
leaves the model in WORK/models/MODEL-TASK-SEED, with models during training in it; `run` studies that, and tunes first
where there is none. How models are tuned is set below, and each result names it as `tuning`. Runs write small files of
plain arrays into FOUND, and need neither HDF5 nor any dataset library. on_a_gpu.py runs all of it at once.
"""

import argparse
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr

import headscope as hs
from headscope.core.estimate import ENDS, interval_names
from headscope.core.provenance import read_provenance, stamp
from headscope.experiments.runs import (
    TUNING,
    TUNING_BY_TASK,
    add_join,
    group_runs,
    merge_facts,
    split_stored,
    to_single,
    widen_intervals,
    write_run,
)
from headscope.experiments.seeds import join_seeds
from headscope.experiments.steps import print_progress
from headscope.experiments.study import stamp_tasks
from headscope.experiments.tasks import read_glue
from headscope.experiments.tuned import check_runs
from headscope.results.npz import read_npz, write_npz
from headscope_studies.sixteen_heads import SixteenHeads
from headscope_studies.sixteen_heads.claims import COMPARED
from headscope_studies.sixteen_heads.head_effects import compare_orders
from headscope_studies.sixteen_heads.paper import KINDS
from headscope_studies.sixteen_heads.translation import ALL, SITES, measure_sites

ORDER = ("RTE", "MRPC", "STS-B", "SST-2", "QNLI")
CHECKPOINTS, ORDERS = 5, 3
WITHOUT_CHECKPOINTS = ("sst2",)  # which the others are enough for
SHARED = ("version", "max_length", "device", "dtype")
"""Facts that all runs of one model must have in common."""

COMMAND = "sixteen_heads/runs/sixteen_heads.py, one run for each task and seed, joined"


def tune(chosen: argparse.Namespace) -> Path:
    """Tune one model for one task with one seed, unless that is done, and return its folder."""
    warnings.simplefilter("ignore", hs.DataWarning)  # texts over 128 tokens are cut
    folder = Path(chosen.work / "models" / f"{_label(chosen)}-{chosen.task}-{chosen.seed}")
    if not (folder / "config.json").is_file():
        (task,), _ = read_glue(str(chosen.place), (chosen.task,), KINDS)
        options = {**TUNING, **TUNING_BY_TASK.get(chosen.task, {}), "seed": chosen.seed}
        options |= {"limit": chosen.train_limit} if chosen.train_limit else {}
        checkpoints = 0 if chosen.task in WITHOUT_CHECKPOINTS else CHECKPOINTS
        base = hs.load(chosen.model, device=chosen.device, dtype="float32")
        hs.finetune(
            base,
            list(task.train),
            out=folder,
            checkpoints=checkpoints,
            resume=True,
            device=chosen.device,
            progress=False,
            **options,
        )
    return folder


def run(chosen: argparse.Namespace) -> None:
    """Study one model on one task with one seed; importance is estimated on what it learned from."""
    folder = tune(chosen)
    study = SixteenHeads(
        data=str(chosen.place),
        tasks=(chosen.task,),
        limit=chosen.limit,
        checkpoints=CHECKPOINTS,
        random_orders=ORDERS,
    )
    (task,), _ = study.read_tasks()
    base = hs.load(chosen.model, device=chosen.device, dtype="float32")
    work = chosen.work / "steps" / f"{_label(chosen)}-{chosen.task}-{chosen.seed}"
    planned = study.plan_task(task, base, work, 1, seed=chosen.seed, device=chosen.device, progress=print_progress)
    planned = replace(planned, tuned_folder=folder)
    own = {name: getattr(study, name) for name in study.own_facts}
    check_runs([planned], own)
    planned.steps.begin(planned.facts(own))
    numbers = study.measure_task(planned)["numbers"]
    tuned = json.loads((folder / "finetune.json").read_text(encoding="utf-8"))["facts"]
    write_run(
        numbers,
        chosen.out / f"{_label(chosen)}.{chosen.task}.{chosen.seed}.numbers.npz",
        study=study,
        base=base,
        label=_label(chosen),
        seed=chosen.seed,
        train=tuned["n"],
        tuning=tuned,
    )


def translate(chosen: argparse.Namespace) -> None:
    """Study the sites of one model that translates."""
    warnings.simplefilter("ignore", hs.DataWarning)
    label, name = "translation", f"translation.{chosen.seed}.{chosen.site}"
    sites = measure_sites(
        str(chosen.model),
        str(chosen.parallel),
        chosen.work / "steps" / name,
        learned=None if chosen.train is None else str(chosen.train),
        limit=chosen.limit,
        seed=0,
        orders=ORDERS,
        sites=(chosen.site,),
        device=chosen.device,
        progress=print_progress,
    )
    sites = stamp(sites.expand_dims(seed=[chosen.seed], axis=1), model=label, seed=chosen.seed)
    write_npz(sites, chosen.out / f"{name}.sites.npz")


def join(chosen: argparse.Namespace) -> None:
    """For each model its tasks and seeds in one file, in single precision; and the sites of models that translate."""
    for label in sorted({path.name.partition(".")[0] for path in chosen.folder.glob("*.numbers.npz")}):
        runs = [read_npz(path) for path in sorted(chosen.folder.glob(f"{label}.*.numbers.npz"))]
        facts = merge_facts(runs, SHARED, COMMAND)
        for group in group_runs("sixteen_heads_", label, runs, chosen.stored, facts):
            parts = [compare_again(each) for each in (*group.runs, *map(bound_stored, group.stored))]
            parts.sort(key=lambda each: (ORDER.index(str(each["task"].item())), int(each["seed"].item())))
            numbers = join_seeds([each.drop_attrs() for each in parts]).map(to_single)
            hs.save(stamp_tasks(numbers, **group.facts), chosen.out / f"sixteen_heads_{group.name}.nc", overwrite=True)
    runs = [read_npz(path) for path in sorted(chosen.folder.glob("*.sites.npz"))]
    if runs:
        facts = merge_facts(runs, SHARED, COMMAND)
        if chosen.stored:
            path, seeds = chosen.stored / "sixteen_heads_translation.nc", {int(each["seed"].item()) for each in runs}
            earlier = hs.open_result(path) if path.is_file() else None
            stored = split_stored(earlier, [str(each["task"].item()) for each in runs])
            facts["stored"] = list(dict.fromkeys(str(each["task"].item()) for each in stored))
            runs += [each for each in stored if int(each["seed"].item()) in seeds]
        runs.sort(key=lambda each: ((ALL, *SITES).index(str(each["task"].item())), int(each["seed"].item())))
        sites = join_seeds([compare_again(each.drop_attrs()) for each in runs]).map(to_single)
        hashes = dict.fromkeys(read_provenance(each)["weights_hash"].split()[0] for each in runs)
        facts |= {"seed": sites["seed"].values.tolist(), "weights_hash": " ".join(hashes)}
        for path in sorted(chosen.folder.glob("translation-*.json")):  # those of docs/runs/translation.py
            facts["train"] = json.loads(path.read_text(encoding="utf-8"))["training"]["facts"]["n"]
        hs.save(stamp(sites, **facts), chosen.out / "sixteen_heads_translation.nc", overwrite=True)


def bound_stored(numbers: xr.Dataset) -> xr.Dataset:
    """Return results of an earlier run with the intervals of changes as they are measured now."""
    numbers = widen_intervals(widen_intervals(numbers, ["change"]), ["best_change"], share=0.5)
    pruned = widen_intervals(numbers, ["pruned_change"])
    whole = numbers["pruned"] == 0  # which is compared with itself
    numbers = numbers.assign({end: numbers[end].where(whole, pruned[end]) for end in interval_names("pruned_change")})
    kept = {f"kept{end}": 1 + numbers[f"pruned_change{end}"] / abs(numbers["score"]) for end in ENDS}
    return numbers.assign(kept)


def compare_again(numbers: xr.Dataset) -> xr.Dataset:
    """Return results of one task and seed with the gain over random orders as it is measured now.

    Earlier runs have no more random orders at half of the heads than elsewhere.
    """
    if "half_change" not in numbers:
        half = numbers["random_change"].sel(pruned=COMPARED, drop=True).rename(drawn="half")
        numbers = numbers.assign(half_change=half)
    gain = compare_orders(numbers.isel(task=0, seed=0))
    ends = zip(interval_names("gain"), gain, strict=True)
    return numbers.assign({name: (("task", "seed"), [[end]]) for name, end in ends})


def _label(chosen: argparse.Namespace) -> str:
    return Path(chosen.model or "all-MiniLM-L6-v2").name


def main() -> None:
    """Tune, run, translate or join."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs: Any = options.add_subparsers(required=True)
    tuning = verbs.add_parser("tune", help="tune one model for one task with one seed")
    running = verbs.add_parser("run", help="study one model on one task with one seed")
    translating = verbs.add_parser("translate", help="study the sites of one model that translates")
    for verb, what in ((tuning, tune), (running, run), (translating, translate)):
        verb.add_argument("--seed", type=int, default=0, help="seed of training")
        verb.add_argument("--work", type=Path, required=True, help="where steps and tuned models are kept")
        verb.add_argument("--device", choices=("cpu", "cuda"))
        verb.add_argument("--limit", type=int, help="number of inputs to study")
        verb.add_argument("--model", help="a hub id or a folder; nothing: the default")
        verb.set_defaults(what=what)
    for verb in (tuning, running):
        verb.add_argument("task", choices=[task.lower().replace("-", "") for task in ORDER])
        verb.add_argument("--place", type=Path, required=True, help="the folder of GLUE")
        verb.add_argument("--train-limit", type=int, help="number of examples to tune on")
    for verb in (running, translating):
        verb.add_argument("--out", type=Path, required=True, help="where the small results go")
    translating.add_argument("--parallel", type=Path, required=True, help="columns text and pair")
    translating.add_argument("--train", type=Path, help="pairs that the model was trained on, for importance")
    translating.add_argument("--site", choices=(ALL, *SITES), required=True)
    add_join(verbs, join)
    chosen = options.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()

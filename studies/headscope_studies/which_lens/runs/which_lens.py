"""Run the study of lenses with pretrained models, one run for each model and task, and join what they found.

What is tuned is set below, and each result names it. The files in results were made with these commands, on one core
each; what a result lacks was not run:

    python runs/which_lens.py tune GAP --seed 0 --work WORK                             # and seeds 1 and 2
    python runs/which_lens.py run GAP --work WORK --out FOUND
    python runs/which_lens.py tune SST-2 --place GLUE --seed 0 --work WORK              # the same
    python runs/which_lens.py run SST-2 --place GLUE --work WORK --out FOUND
    python runs/which_lens.py tune RTE --place GLUE --work WORK
    python runs/which_lens.py run RTE --place GLUE --seeds 1 --limit 20 --work WORK --out FOUND
    python runs/which_lens.py tune verbs --place SENTENCES --seed 0 --work WORK         # the same
    python runs/which_lens.py run verbs --place SENTENCES --limit 20 --work WORK --out FOUND
    python runs/which_lens.py run SST-2 --model e5-small --place GLUE --seeds 1 --limit 20 --work WORK --out FOUND
    python runs/which_lens.py run SST-2 --model all-mpnet-base-v2 --place GLUE --seeds 1 --limit 10 --work WORK ...
    python runs/which_lens.py run SST-2 --model decoder --place GLUE --seeds 1 --limit 20 --work WORK --out FOUND
    python runs/which_lens.py join FOUND --stored results --out results

Each `run` follows the `tune` with the same model, task and seeds. GAP is bundled. SENTENCES has the train.jsonl and
test.jsonl that attention_flow/runs/agreement_data.py makes with --rest. `decoder` is a new model of the blocks of
GPT-2, with a causal mask, that learns the task and its words from nothing. A run that was stopped goes on where it was.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import transformers
import xarray as xr

import headscope as hs
from headscope.core.provenance import stamp
from headscope.experiments.runs import add_join, make_parser, merge_facts, to_single
from headscope.experiments.seeds import join_seeds, mark_collapsed
from headscope.experiments.study import stamp_tasks
from headscope.experiments.tuned import describe_tuning
from headscope_studies.which_lens import WhichLens

VERBS = "verbs"
LIMIT = 40
SETTINGS: dict[str, dict[str, Any]] = {
    "GAP": {"limit": 640, "epochs": 1, "learning_rate": 1e-4, "batch_size": 8},
    "SST-2": {"limit": 2000, "epochs": 1, "learning_rate": 1e-4, "batch_size": 16},
    "RTE": {"limit": 1000, "epochs": 1, "learning_rate": 1e-4, "batch_size": 16},
    VERBS: {"limit": 1200, "epochs": 1, "learning_rate": 1e-4, "batch_size": 16},
}
"""How models are tuned: little, so that two cores are enough."""

SETTINGS_BY_MODEL: dict[str, dict[str, Any]] = {
    "all-mpnet-base-v2": {"limit": 1000, "learning_rate": 3e-5},
    "decoder": {"limit": 8_000, "learning_rate": 7e-4, "batch_size": 64, "warmup": 0.1},
}
"""A model of BERT-base's size takes smaller steps; one that starts from nothing needs more to learn from."""

DECODER: dict[str, Any] = {"n_layer": 6, "n_head": 8, "n_embd": 128, "n_positions": 128}
"""The sizes of the decoder: those of the verb-number models of Abnar & Zuidema (2020)."""

SHARED = ("version", "max_length", "device", "dtype")
"""Facts that all runs of one model must have in common."""

COMMAND = "which_lens/runs/which_lens.py, one run for each model and task, joined"


def tune(chosen: argparse.Namespace) -> None:
    """Tune one model for one task with one seed, unless that is done."""
    name = name_model(chosen)
    base = transformers.GPT2Config(**DECODER) if name == "decoder" else hs.load(chosen.model, dtype="float32")
    options = {**SETTINGS[chosen.task], **SETTINGS_BY_MODEL.get(name, {}), "max_length": WhichLens.max_length}
    options["seed"] = chosen.seed
    own = {"tokenizer": "words"} if name == "decoder" else {}
    hs.finetune(base, read_train(chosen), out=tuned_folder(chosen, chosen.seed), resume=True, **options, **own)


def read_train(chosen: argparse.Namespace) -> list[hs.Example]:
    """Return the examples that a model is tuned on."""
    if chosen.task == VERBS:
        return list(hs.read(str(chosen.place / "train.jsonl"), words="words", label="label"))
    return list(WhichLens(**find_data(chosen)).read_tasks()[0][0].train)


def find_data(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the study that say which data it takes; without any it takes the bundled task."""
    if chosen.task == VERBS:
        return {"dev": hs.read(str(chosen.place / "test.jsonl"), words="words", label="label")}
    return {} if chosen.place is None else {"data": str(chosen.place), "tasks": (chosen.task,)}


def run(chosen: argparse.Namespace) -> None:
    """Study one model on one task."""
    first = tuned_folder(chosen, 0)
    tuned = str(first.parent if chosen.seeds > 1 else first)
    study = WhichLens(**find_data(chosen), tuned=tuned, limit=chosen.limit, rows=chosen.rows, seeds=chosen.seeds)
    label = f"{name_model(chosen)}.{chosen.task}"
    base = first if name_model(chosen) == "decoder" else chosen.model  # there is no model that it was tuned from
    numbers = hs.study(study, base, out=chosen.work / label).data.assign_coords(task=[chosen.task])
    if chosen.task == VERBS:
        numbers["kind"] = xr.full_like(numbers["kind"], "is the verb that follows singular or plural?", object)
    chosen.out.mkdir(parents=True, exist_ok=True)
    hs.save(describe_tuned(numbers, first), chosen.out / f"{label}.nc", overwrite=True)


def describe_tuned(numbers: xr.Dataset, folder: Path) -> xr.Dataset:
    """Return numbers with how many examples the model learned from, and how."""
    facts = json.loads((folder / "finetune.json").read_text(encoding="utf-8"))["facts"]
    values = {"train": facts["n"], "tuning": describe_tuning(facts)}
    columns = {
        name: (numbers[name].dims, np.full(numbers[name].shape, value, object)) for name, value in values.items()
    }
    return numbers.assign({**columns, "train": (columns["train"][0], columns["train"][1].astype(int))})


def tuned_folder(chosen: argparse.Namespace, seed: int) -> Path:
    """Return the folder of one tuned model, named as the study looks for it."""
    title = "data" if chosen.task == VERBS else chosen.task
    return Path(chosen.work / "tuned" / name_model(chosen) / f"{title}_seed_{seed}")


def name_model(chosen: argparse.Namespace) -> str:
    """Return the name of the model in results."""
    return Path(chosen.model or "all-MiniLM-L6-v2").name


def join(chosen: argparse.Namespace) -> None:
    """For each model its tasks in one file, in single precision; tasks with fewer seeds than others have their own."""
    for label in sorted({path.name.rpartition(".")[0].rpartition(".")[0] for path in chosen.folder.glob("*.nc")}):
        runs = [hs.open_result(path) for path in sorted(chosen.folder.glob(f"{label}.*.nc"))]
        runs = [*_read_stored(chosen.stored, label, runs), *runs]
        counts = [run.sizes.get("seed", 1) for run in runs]
        for count in sorted(set(counts)):
            group = [run for run, number in zip(runs, counts, strict=True) if number == count]
            facts = {**merge_facts(group, SHARED, COMMAND), "model": label}
            numbers = join_seeds([each.drop_attrs() for each in _split_seeds(group)]).map(to_single)
            numbers = stamp(stamp_tasks(mark_collapsed(numbers), **facts), kind="study", study="which-lens")
            name = label if count == max(counts) else f"{label}-{count}-seeds"
            hs.save(numbers, chosen.out / f"which_lens_{name}.nc", overwrite=True)


def _read_stored(folder: Path | None, label: str, runs: list[xr.Dataset]) -> list[xr.Dataset]:
    """Return the earlier results of a model on tasks that were not run again."""
    again = {str(run["task"].item()) for run in runs}
    paths = (
        [] if folder is None else [folder / f"which_lens_{label}.nc", *folder.glob(f"which_lens_{label}-*-seeds.nc")]
    )
    stored = [hs.open_result(path) for path in paths if path.is_file()]
    return [each.sel(task=[task]) for each in stored for task in each["task"].values if task not in again]


def _split_seeds(runs: list[xr.Dataset]) -> list[xr.Dataset]:
    """Return the runs of each task and seed by themselves."""
    parts = []
    for each in runs:
        seeds = range(each.sizes["seed"]) if "seed" in each.dims else []
        texts = {name: column.astype(object) for name, column in each.variables.items() if column.dtype.kind == "U"}
        each = each.assign_coords(task=texts.pop("task")).assign(
            {name: texts[name] for name in texts if name in each.data_vars}
        )  # texts of one width would be cut when joined
        parts += [each.isel(seed=[seed]) for seed in seeds] or [each]
    return parts


def main() -> None:
    """Run or join."""
    parser = make_parser(__doc__)
    verbs: Any = parser.add_subparsers(required=True)
    tuning = verbs.add_parser("tune", help="tune one model for one task with one seed")
    running = verbs.add_parser("run", help="study one model on one task")
    for verb, what in ((tuning, tune), (running, run)):
        verb.add_argument("task", choices=SETTINGS)
        verb.add_argument("--place", type=Path, help="the folder of GLUE, or of the sentences with verbs")
        verb.add_argument("--model", help="a hub id or a folder; nothing: the default")
        verb.add_argument("--limit", type=int, default=LIMIT, help="number of inputs to study")
        verb.add_argument("--rows", type=int, default=1, help="rows of each layer and input whose edges are removed")
        verb.add_argument("--work", type=Path, required=True, help="where steps and tuned models are kept")
        verb.set_defaults(what=what)
    tuning.add_argument("--seed", type=int, default=0, help="seed of training")
    running.add_argument("--seeds", type=int, default=3, help="number of tuned models, one for each seed")
    running.add_argument("--out", type=Path, required=True, help="where the results go")
    add_join(verbs, join)
    chosen = parser.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()

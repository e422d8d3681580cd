"""Run the study of lenses with pretrained models, one run for each model and task, and join what they found.

What is tuned is set below, and each result names it. The file in results has the first model alone, tuned by the study
itself with these settings, and was made with the commands for it; the others can be run in the same way:

    python runs/which_lens.py tune GAP --seed 0 --work WORK                  # and seeds 1 and 2
    python runs/which_lens.py run GAP --work WORK --out FOUND
    python runs/which_lens.py tune SST-2 --place GLUE --seed 0 --work WORK   # and seeds 1 and 2
    python runs/which_lens.py run SST-2 --place GLUE --work WORK --out FOUND
    python runs/which_lens.py tune GAP --model e5-small --work WORK
    python runs/which_lens.py run GAP --model e5-small --seeds 1 --work WORK --out FOUND
    python runs/which_lens.py run verbs --model DECODER --place AGREEMENT --seeds 1 --work WORK --out FOUND
    python runs/which_lens.py join FOUND --out results

GAP is bundled. DECODER is a model that attention_flow/runs/agreement_models.py trained with `--causal`, and AGREEMENT
the folder of sentences that it was trained and is tested on. A run that was stopped goes on where it was.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
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
    VERBS: {},
}
"""How models are tuned: little, so that two cores are enough; the models of verbs are trained already."""

SHARED = ("version", "max_length", "device", "dtype")
"""Facts that all runs of one model must have in common."""

COMMAND = "which_lens/runs/which_lens.py, one run for each model and task, joined"


def tune(chosen: argparse.Namespace) -> None:
    """Tune one model for one task with one seed, unless that is done."""
    task = WhichLens(**find_data(chosen)).read_tasks()[0][0]
    base = hs.load(chosen.model, dtype="float32")
    options = {**SETTINGS[chosen.task], "max_length": WhichLens.max_length, "seed": chosen.seed}
    folder = tuned_folder(chosen) / f"{chosen.task}_seed_{chosen.seed}"
    hs.finetune(base, list(task.train), out=folder, resume=True, **options)


def find_data(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the study that say which data it takes; without any it takes the bundled task."""
    return {} if chosen.place is None else {"data": str(chosen.place), "tasks": (chosen.task,)}


def run(chosen: argparse.Namespace) -> None:
    """Study one model on one task."""
    study = make_study(chosen, seeds=chosen.seeds)
    label = f"{name_model(chosen)}.{chosen.task}"
    numbers = hs.study(study, chosen.model, out=chosen.work / label).data
    if chosen.task == VERBS:
        numbers = numbers.assign_coords(task=[VERBS])
    chosen.out.mkdir(parents=True, exist_ok=True)
    hs.save(describe_tuned(numbers, chosen), chosen.out / f"{label}.nc", overwrite=True)


def make_study(chosen: argparse.Namespace, *, seeds: int) -> WhichLens:
    """Return the study of one model and task."""
    options: dict[str, Any] = {"limit": chosen.limit, "rows": chosen.rows, "seeds": seeds}
    if chosen.task == VERBS:
        test = hs.read(str(chosen.place / "test.jsonl"), words="words", label="label")
        return WhichLens(dev=test, tuned=str(chosen.model), **options)
    folder = tuned_folder(chosen)
    return WhichLens(
        **find_data(chosen), tuned=str(folder if seeds > 1 else folder / f"{chosen.task}_seed_0"), **options
    )


def describe_tuned(numbers: xr.Dataset, chosen: argparse.Namespace) -> xr.Dataset:
    """Return numbers with how many examples the model learned from, and how."""
    folder = Path(chosen.model) if chosen.task == VERBS else tuned_folder(chosen) / f"{chosen.task}_seed_0"
    facts = json.loads((folder / "finetune.json").read_text(encoding="utf-8"))["facts"]
    values = {"train": facts["n"], "tuning": describe_tuning(facts)}
    columns = {
        name: (numbers[name].dims, np.full(numbers[name].shape, value, object)) for name, value in values.items()
    }
    return numbers.assign({**columns, "train": (columns["train"][0], columns["train"][1].astype(int))})


def tuned_folder(chosen: argparse.Namespace) -> Path:
    """Return the folder of the tuned models of one model."""
    return Path(chosen.work / "tuned" / name_model(chosen))


def name_model(chosen: argparse.Namespace) -> str:
    """Return the name of the model in results."""
    return Path(chosen.model or "all-MiniLM-L6-v2").name


def join(chosen: argparse.Namespace) -> None:
    """For each model its tasks in one file, in single precision."""
    for label in sorted({path.name.rpartition(".")[0].rpartition(".")[0] for path in chosen.folder.glob("*.nc")}):
        runs = [hs.open_result(path) for path in sorted(chosen.folder.glob(f"{label}.*.nc"))]
        facts = {**merge_facts(runs, SHARED, COMMAND), "model": label}
        numbers = join_seeds([each.drop_attrs() for each in _split_seeds(runs)]).map(to_single)
        numbers = stamp(stamp_tasks(mark_collapsed(numbers), **facts), kind="study", study="which-lens")
        hs.save(numbers, chosen.out / f"which_lens_{label}.nc", overwrite=True)


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
        verb.add_argument("task", choices=[task for task in SETTINGS if verb is running or task != VERBS])
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

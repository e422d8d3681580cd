"""Fine-tune two pretrained models on four GLUE tasks and as masked language models: the source of docs/training.md.

One run for each task, model and choice of settings, then all scores in one small file:

    python docs/runs/finetune.py run mrpc --settings paper --data GLUE --model e5-small --out tuned/mrpc-paper-e5-small
    python docs/runs/finetune.py run mlm --settings mlm --data TEXT --out tuned/mlm-mlm-all-MiniLM-L6-v2
    python docs/runs/finetune.py join tuned/*/score.json --out docs/results/finetune.nc

`TEXT` holds valid.txt and test.txt of WikiText-2 and gap-development.tsv. Models are trained on the first and the last,
and their perplexity is that on the second.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import xarray as xr

import headscope as hs
from headscope.core.provenance import read_provenance, stamp
from headscope.experiments.runs import run_or_join

TASKS = ("rte", "mrpc", "stsb", "sst2", "mlm")
SETTINGS: dict[str, dict[str, Any]] = {
    "paper": {},
    "quick": {"learning_rate": 5e-5, "batch_size": 32, "warmup": 0.06},
    "sharp": {"learning_rate": 5e-5, "warmup": 0.06},
    "mlm": {"learning_rate": 2e-4, "batch_size": 32, "epochs": 15, "warmup": 0.06},
}
"""`paper` is batch 8, 128 tokens, 3 epochs, learning rate 2e-5, as in Sun & Marasović (2021)."""

METRICS = ("accuracy", "f1", "matthews", "pearson", "spearman", "perplexity")


def read_data(task: str, folder: Path) -> tuple[list[hs.Example], list[hs.Example]]:
    """Return training and dev examples."""
    if task != "mlm":
        return hs.read(f"glue:{task}:train@{folder}"), hs.read(f"glue:{task}:dev@{folder}")
    gap = hs.read(f"gap@{folder / 'gap-development.tsv'}")
    return [*_read_paragraphs(folder / "valid.txt"), *gap], _read_paragraphs(folder / "test.txt")


def _read_paragraphs(path: Path) -> list[hs.Example]:
    """Return the paragraphs of a file without headings and empty lines."""
    examples = hs.read(str(path))
    return [example for example in examples if len(example.text.split()) > 10 and not example.text.startswith("=")]


def run(options: argparse.Namespace) -> None:
    """Tune one model on one task, and score it."""
    warnings.simplefilter("ignore", hs.DataWarning)  # long texts are truncated, and a new head is random
    train, dev = read_data(options.task, options.data)
    model = hs.finetune(
        options.model,
        train,
        dev=dev,
        task="mlm" if options.task == "mlm" else "auto",
        out=options.out,
        resume=True,
        limit=options.limit,
        **SETTINGS[options.settings],
    )
    scores = hs.score(model, dev[: options.limit], progress=False)
    tuning = json.loads((options.out / "finetune.json").read_text(encoding="utf-8"))
    facts = {"score": read_provenance(scores), "tuning": tuning["facts"], "took": tuning["circumstances"]}
    for part in (facts["score"], facts["tuning"]):
        part["model"] = Path(part["model"]).name
    record = {
        "task": options.task,
        "settings": options.settings,
        "model": Path(options.model or "all-MiniLM-L6-v2").name,
        "numbers": {str(name): float(scores[name]) for name in scores if not scores[name].dims},
        "facts": facts,
    }
    (options.out / "score.json").write_text(json.dumps(record), encoding="utf-8")


def join(options: argparse.Namespace) -> None:
    """Save all runs along `run`, one value for each metric that applies."""
    records = sorted((json.loads(path.read_text(encoding="utf-8")) for path in options.paths), key=_sort_key)
    names = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")] + ["majority", "n"]
    numbers = {name: ("run", [record["numbers"].get(name, float("nan")) for record in records]) for name in names}
    coords = {name: ("run", [record[name] for record in records]) for name in ("task", "settings", "model")}
    facts = {" ".join(_sort_key(record)): record["facts"] for record in records}
    data = stamp(
        xr.Dataset(numbers, coords),
        command="docs/runs/finetune.py over GLUE's train and dev, and WikiText-2 with GAP",
        runs=facts,
        settings=SETTINGS,
        model=sorted({record["model"] for record in records}),
        weights_hash={name: fact["tuning"]["weights_hash"] for name, fact in facts.items()},
        data={name: [fact["tuning"]["training_data"], fact["tuning"]["dev_data"]] for name, fact in facts.items()},
        n=sum(fact["score"]["n"] for fact in facts.values()),
    )
    hs.save(data, options.out, overwrite=True)


def _sort_key(record: dict[str, Any]) -> tuple[str, str, str]:
    return record["task"], record["model"], record["settings"]


if __name__ == "__main__":
    run_or_join(__doc__, run, join, argument="task", choices=TASKS, settings=SETTINGS)

"""Both pretrained models fine-tuned on four GLUE tasks and as masked language models: the source of docs/training.md.

One run for each task, model and choice of settings, then all scores in one small file:

    python docs/runs/finetune.py run mrpc --settings paper --place GLUE --model e5-small --out tuned/mrpc-paper-e5-small
    python docs/runs/finetune.py run mlm --settings mlm --place TEXT --out tuned/mlm-mlm-all-MiniLM-L6-v2
    python docs/runs/finetune.py join tuned/*/score.json --out docs/results/finetune.nc

`TEXT` holds valid.txt and test.txt of WikiText-2 and gap-development.tsv: a model is trained on the first and the last,
and its perplexity is that on the second.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import xarray as xr

import headscope as hs
from headscope.results.stamp import read_provenance, stamp

SETTINGS: dict[str, dict[str, Any]] = {
    "paper": {},
    "quick": {"learning_rate": 5e-5, "batch_size": 32, "warmup": 0.06},
    "sharp": {"learning_rate": 5e-5, "warmup": 0.06},
    "mlm": {"learning_rate": 2e-4, "batch_size": 32, "epochs": 15, "warmup": 0.06},
}
"""`paper` is batch 8, 128 tokens, 3 epochs, learning rate 2e-5, as Sun & Marasović (2021) have it."""

METRICS = ("accuracy", "f1", "matthews", "pearson", "spearman", "perplexity")


def data(task: str, place: Path) -> tuple[list[hs.Example], list[hs.Example]]:
    """What is learned from, and what is scored."""
    if task != "mlm":
        return hs.read(f"glue:{task}:train@{place}"), hs.read(f"glue:{task}:dev@{place}")
    gap = hs.read(f"gap@{place / 'gap-development.tsv'}")
    return [*_paragraphs(place / "valid.txt"), *gap], _paragraphs(place / "test.txt")


def _paragraphs(path: Path) -> list[hs.Example]:
    """Without headings and empty lines."""
    return [each for each in hs.read(str(path)) if len(each.text.split()) > 10 and not each.text.startswith("=")]


def run(chosen: argparse.Namespace) -> None:
    """Tune one model on one task, and score it."""
    warnings.simplefilter("ignore", hs.DataWarning)  # long texts are cut, and a new head is random on purpose
    train, dev = data(chosen.task, chosen.place)
    kind = "mlm" if chosen.task == "mlm" else "auto"
    model = hs.finetune(
        chosen.model,
        train,
        dev=dev,
        task=kind,
        out=chosen.out,
        resume=True,
        limit=chosen.limit,
        **SETTINGS[chosen.settings],
    )
    found = hs.score(model, dev[: chosen.limit], progress=False)
    kept = [name for name in found if not found[name].dims]
    stamp = json.loads((chosen.out / "finetune.json").read_text(encoding="utf-8"))
    facts = {"score": read_provenance(found), "tuning": stamp["facts"], "took": stamp["circumstances"]}
    for each in (facts["score"], facts["tuning"]):
        each["model"] = Path(each["model"]).name
    line = {"task": chosen.task, "settings": chosen.settings, "model": Path(chosen.model or "all-MiniLM-L6-v2").name}
    numbers = {str(name): float(found[name]) for name in kept}
    (chosen.out / "score.json").write_text(json.dumps({**line, "numbers": numbers, "facts": facts}), encoding="utf-8")


def join(chosen: argparse.Namespace) -> None:
    """All runs along `run`, one value for each metric that applies."""
    lines = sorted((json.loads(path.read_text(encoding="utf-8")) for path in chosen.scores), key=_order)
    names = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")] + ["majority", "n"]
    held = {name: ("run", [each["numbers"].get(name, float("nan")) for each in lines]) for name in names}
    axes = {name: ("run", [each[name] for each in lines]) for name in ("task", "settings", "model")}
    facts = {" ".join(_order(each)): each["facts"] for each in lines}
    command = "docs/runs/finetune.py over GLUE's train and dev, and WikiText-2 with GAP"
    origin = {
        "model": sorted({each["model"] for each in lines}),
        "weights_hash": {name: each["tuning"]["weights_hash"] for name, each in facts.items()},
        "data": {name: [each["tuning"]["train"], each["tuning"]["dev"]] for name, each in facts.items()},
        "n": sum(each["score"]["n"] for each in facts.values()),
    }
    whole = stamp(xr.Dataset(held, axes), command=command, runs=facts, settings=SETTINGS, **origin)
    hs.save(whole, chosen.out)


def _order(line: dict[str, Any]) -> tuple[str, str, str]:
    return line["task"], line["model"], line["settings"]


def main() -> None:
    """Run or join."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs: Any = options.add_subparsers(required=True)
    running = verbs.add_parser("run")
    running.add_argument("task", choices=("rte", "mrpc", "stsb", "sst2", "mlm"))
    running.add_argument("--settings", choices=SETTINGS, default="paper")
    running.add_argument("--place", type=Path, required=True, help="the folder with the data")
    running.add_argument("--model", help="a hub id or a folder; nothing: the default")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--limit", type=int)
    running.set_defaults(what=run)
    joining = verbs.add_parser("join")
    joining.add_argument("scores", type=Path, nargs="+")
    joining.add_argument("--out", type=Path, required=True)
    joining.set_defaults(what=join)
    chosen = options.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()

"""Train the verb-number models of the attention-flow study: the paper's own with three seeds, and a pretrained one.

    python runs/agreement_models.py --data data --out models
    python runs/agreement_models.py --data data --out models --device cuda --pretrained e5-small --seeds 0 1 2

`data` is what agreement_data.py wrote. The paper's model (Abnar & Zuidema, 2020) has 6 layers, 8 heads and width 128,
the blocks of GPT-2 without causal mask, and a token [CLS]. Here [CLS] is the last token, because the classifier of
GPT-2 reads that one; the paper does not say where its own is, and without a mask only the position embeddings can
tell. The vocabulary is the words of the training sentences. Every model becomes a folder for hs.load, and
`scores.json` has the accuracy by the number of attractors. A run that was interrupted is resumed.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import torch
import transformers

import headscope as hs
from headscope.core.progress import print_status
from headscope.experiments.runs import make_parser
from headscope.training.labels import find_majority
from headscope.uncertainty.intervals import wilson_interval

PAPER_ACCURACY = 0.96
PAPER = {"n_layer": 6, "n_head": 8, "n_embd": 128, "n_positions": 128, "is_causal": False}
NEW = {"epochs": 12, "batch_size": 128, "learning_rate": 7e-4, "warmup": 0.1, "weight_decay": 0.01, "max_length": 128}
TUNED = {"epochs": 3, "batch_size": 32, "learning_rate": 5e-5, "warmup": 0.06, "max_length": 128}


def read_rows(path: Path) -> list[hs.Example]:
    """Return the examples of a file that agreement_data.py wrote."""
    return hs.read(str(path), words="words", label="label")


def count_right(model: Any, test: list[hs.Example]) -> dict[str, Any]:
    """Return the accuracy over all sentences and by the number of attractors, each beside the majority class."""
    scores = hs.score(model, test, progress=False)
    right = (scores["prediction"] == scores["label"]).values
    groups = {"all": range(len(test))}
    for number in sorted({example.columns["attractors"] for example in test}):
        groups[str(number)] = [row for row, example in enumerate(test) if example.columns["attractors"] == number]
    return {name: _summarise(right[list(rows)], [test[row].label for row in rows]) for name, rows in groups.items()}


def _summarise(right: Any, labels: list[Any]) -> dict[str, Any]:
    low, high = wilson_interval(int(right.sum()), len(right))
    share = find_majority(labels)[1]
    return {
        "n": len(right),
        "accuracy": float(right.mean()),
        "low": float(low),
        "high": float(high),
        "majority": share,
    }


def check_not_causal(model: Any, example: hs.Example) -> None:
    """Stop if any token of the paper's model cannot see a later one."""
    for visible in hs.capture(model, [example]).visible:
        assert visible.all(), "the model has a mask, but the paper's has none"


def train_all(options: argparse.Namespace) -> None:
    """Train every model, or read it from its folder, and score it; write all scores so far after each."""
    train, test = read_rows(options.data / "train.jsonl"), read_rows(options.data / "test.jsonl")
    shared = {"limit": options.limit, "resume": True, "device": options.device, "progress": False}
    epochs = {"epochs": options.epochs} if options.epochs else {}
    results: dict[str, Any] = {}
    own = "causal" if options.causal else "paper"
    for name in [*(f"{own}-{seed}" for seed in options.seeds), *([] if options.only_new else ["pretrained"])]:
        start, folder = time.monotonic(), options.out / name
        if name == "pretrained":
            model = hs.finetune(options.pretrained, train, out=folder, **shared, **(TUNED | epochs))
        else:
            seed, config = (
                int(name.rpartition("-")[2]),
                transformers.GPT2Config(**PAPER | {"is_causal": options.causal}),
            )
            model = hs.finetune(config, train, tokenizer="words", out=folder, seed=seed, **shared, **(NEW | epochs))
            if not options.causal:
                check_not_causal(model, test[0])
        stamp = json.loads((folder / "finetune.json").read_text(encoding="utf-8"))
        facts = {
            "base": Path(stamp["facts"]["model"]).name,
            "tuned_hash": stamp["tuned_hash"],
            **stamp["circumstances"],
        }
        results[name] = {"by_attractors": count_right(model, test), "facts": facts}
        print_result(name, results[name]["by_attractors"], time.monotonic() - start)
        record = {"models": results, "paper": PAPER_ACCURACY, "config": PAPER, "torch": torch.__version__}
        (options.out / "scores.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def print_result(name: str, groups: dict[str, Any], seconds: float) -> None:
    """Print one line for all sentences and one for each number of attractors."""
    print_status(f"{name} ({seconds:.0f} s); the paper's accuracy is {PAPER_ACCURACY}")
    for group, values in groups.items():
        label = "all" if group == "all" else f"{group} attractors"
        interval = f"[{values['low']:.3f}, {values['high']:.3f}]"
        chance = f"majority {values['majority']:.3f}  n={values['n']:,}"
        print_status(f"  {label:13} {values['accuracy']:.3f} {interval}  {chance}")


def main() -> None:
    """Parse the command line, and train."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with train.jsonl and test.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="folder of the models")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: the GPU if there is one")
    parser.add_argument("--pretrained", help="a folder or a hub id; default: a small BERT")
    parser.add_argument("--only-new", action="store_true", help="train the paper's models only")
    parser.add_argument("--causal", action="store_true", help="with a causal mask, for the receptive field of decoders")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="one model of the paper for each")
    parser.add_argument("--epochs", type=int, help="of all models; default: as measured for each")
    parser.add_argument("--limit", type=int, help="number of training sentences")
    options = parser.parse_args()
    warnings.simplefilter("ignore", hs.DataWarning)  # a few long sentences are truncated
    options.out.mkdir(parents=True, exist_ok=True)
    train_all(options)


if __name__ == "__main__":
    main()

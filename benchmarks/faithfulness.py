"""What judging lenses by removed edges costs, in units of plain forward passes of the same texts.

PYTHONPATH=src python -m benchmarks.faithfulness [--quick] [--model TUNED] [--out FILE.json]

`hs.faithfulness` removes about 1,000 edges of a model of six layers over the texts, with the lenses raw, effective and
norm, and reads hidden states and the score of a prediction. The naive way is one pass of a text under the edit for each
edge, timed on a part of them and scaled. CPU time on one thread, medians of turns; both in batches of the same texts.
Without --model the classifier is a random one, which costs the same.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

import headscope as hs
from headscope.engine.batch import make_batches
from headscope.engine.default_model import default_folder
from headscope.engine.edited import edited
from headscope.judging.removal import RemoveEdges

BAR = 40
TEXTS, ROWS, KEYS = 21, 1, 8  # 21 · 6 layers · 8 keys: 1,008 edges
LENSES = ["raw", "effective", "norm"]


def main() -> None:
    """Print and write the costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few short texts, to see that it runs")
    parser.add_argument("--model", help="the folder of a tuned model")
    parser.add_argument("--out", type=Path, help="where to write the costs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    texts = hs.read("sample")[: 3 if options.quick else TEXTS]
    row = measure(load(options.model), texts, 16 if options.quick else 64, turns=1 if options.quick else 5)
    print(f"{row['edges']:,} edges of {row['examples']} texts of up to {row['tokens']} tokens")
    print(f"plain forward: {row['plain_seconds']:.3f} s of CPU")
    met = "met" if row["passes"] <= BAR else "missed"
    print(f"hs.faithfulness: {row['passes']:.1f} plain forwards (bar {BAR} {met})")
    print(f"  counted {row['forwards']:.1f}; naive: {row['naive_passes']:.1f}")
    if options.out:
        facts = {"command": "python -m benchmarks.faithfulness", "device": "one thread of a CPU", "bar": BAR}
        facts |= {"torch": torch.__version__, "turns": row.pop("turns"), "lenses": LENSES}
        options.out.write_text(json.dumps({**facts, "rows": [row]}, indent=1) + "\n")


def load(folder: str | None) -> Any:
    """Return a tuned classifier, or one with a random head."""
    import transformers

    if folder is not None:
        return hs.load(folder, dtype="float32")
    torch.manual_seed(0)
    transformers.utils.logging.set_verbosity_error()
    path = str(default_folder())
    network = transformers.AutoModelForSequenceClassification.from_pretrained(path, dtype=torch.float32).eval()
    return hs.load(network, tokenizer=transformers.AutoTokenizer.from_pretrained(path))


def measure(model: Any, texts: Any, length: int, *, turns: int) -> dict[str, Any]:
    """Return the cost of judging, and of what it is compared with."""
    (inputs,) = make_batches(model, texts, len(texts), max_length=length)
    chosen: dict[str, Any] = {"lenses": LENSES, "target": "predicted", "rows": ROWS, "keys": KEYS, "progress": False}

    def judge() -> Any:
        return hs.faithfulness(model, texts, max_length=length, **chosen)

    result = judge()
    plain, judging = [], []
    for _ in range(turns):  # in turns, so that what else the machine does reaches both
        plain.append(clock(lambda: forward(model, inputs)))
        judging.append(clock(judge))
    one = clock(lambda: remove_one(model, inputs))  # one edge of every text, each in a whole pass
    edges, seconds = int(result["edges"]), median(plain)
    return {
        "examples": len(texts),
        "tokens": length,
        "edges": edges,
        "plain_seconds": seconds,
        "passes": median(judging) / seconds,
        "naive_passes": edges / len(texts) * one / seconds,
        "forwards": float(result["forwards"]),
        "turns": turns,
    }


def forward(model: Any, inputs: Any) -> Any:
    with torch.inference_mode():
        return model.network(**inputs.tensors)


def remove_one(model: Any, inputs: Any) -> Any:
    nothing = torch.zeros(len(inputs.examples), dtype=torch.long)
    edges = {"head": nothing, "query": nothing, "key": nothing}
    with edited(model, RemoveEdges.from_edges("self", 0, "zero", edges)):
        return forward(model, inputs)


def clock(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


if __name__ == "__main__":
    main()

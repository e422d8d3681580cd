"""What ablating every head costs, in units of plain evaluations.

PYTHONPATH=src python -m benchmarks.ablation [--quick] [--device cuda] [--data GLUE] [--model TUNED] [--out FILE.json]

A plain evaluation scores the model once on all examples. `hs.ablate` scores it without each of its heads; the naive way
is one evaluation under the edit `zero_heads` for each, timed on one head of every layer and scaled. Examples are those
of SST-2's dev set in the folder of GLUE that --data names (on a CPU a sample of them), else of GAP, which is bundled;
without --model the classifier is a random one, which costs the same. CPU time on one thread, or wall-clock time with
the GPU synchronised (TF32 is off). FLOPs are those of matrix products, with eager attention, as torch counts them.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.timing import show
from headscope.ablation.head_sets import count_heads, make_head_sets
from headscope.ablation.resumed_answers import answer_edits
from headscope.core.example import Example, sample_examples
from headscope.data.reading.read import read
from headscope.edits.zero_heads import ZeroHeads
from headscope.engine.default_model import default_folder
from headscope.engine.load import load
from headscope.experiments.timing import Variant, gpu_clock, time_interleaved
from headscope.training.scoring import ScoringJob, prepare_scoring

BAR, DREAM = 48, 32
SAMPLE = 128
"""Examples on a CPU: four batches."""


def main() -> None:
    """Print and write the costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few short examples, to see that it runs")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--data", type=Path, help="the folder of GLUE")
    parser.add_argument("--model", help="the folder of a model that is tuned for SST-2")
    parser.add_argument("--out", type=Path, help="where to write the costs")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    if options.device == "cpu":
        torch.set_num_threads(1)
    title, examples = _read(options.data, 4 if options.quick else SAMPLE if options.device == "cpu" else None)
    job = _prepare(options.model, options.device, examples, max_length=32 if options.quick else 128)
    row = {
        "data": title,
        "examples": len(examples),
        **measure(job, turns=1 if options.quick else 2 if options.device == "cpu" else 5),
    }
    _print(row)
    if options.out:
        device = "one thread of a CPU" if options.device == "cpu" else torch.cuda.get_device_name()
        command = f"python -m benchmarks.ablation{'' if options.device == 'cpu' else ' --device cuda'}"
        facts = {"command": command, "device": device, "torch": torch.__version__, "turns": row.pop("turns")}
        facts |= {"model": "tuned" if options.model else "with a random classifier", "bar": BAR, "dream": DREAM}
        options.out.write_text(json.dumps({**facts, "rows": [row]}, indent=1) + "\n")


def _read(glue: Path | None, limit: int | None) -> tuple[str, list[Example]]:
    """Return the name of the data and the examples."""
    title, data = ("GAP", "gap_pronouns:validation") if glue is None else ("SST-2 dev", f"glue:sst2:dev@{glue}")
    return title, sample_examples(read(data), limit, seed=0)


def _prepare(folder: str | None, device: str, examples: list[Example], *, max_length: int) -> ScoringJob:
    import transformers

    if folder is not None:
        model = load(folder, device=device, dtype="float32")
    else:
        torch.manual_seed(0)
        transformers.utils.logging.set_verbosity_error()
        network = transformers.AutoModelForSequenceClassification.from_pretrained(default_folder()).to(device)
        model = load(network.eval(), tokenizer=transformers.AutoTokenizer.from_pretrained(default_folder()))
    return prepare_scoring(model, examples, task="auto", batch_size=32, max_length=max_length)


def measure(job: ScoringJob, turns: int) -> dict[str, Any]:
    """Time and count the plain evaluation, all ablations and the naive way; compare what they answer."""
    counts = count_heads(job.model, lambda: job.answer(rows=slice(1)))
    site = next(iter(counts))
    sets = make_head_sets("heads", counts, site)
    edits = [ZeroHeads(selection) for selection in sets.selections]
    layers = len(counts[site])
    chosen = [layer * len(edits) // layers for layer in range(layers)]  # one head of every layer

    def run_all() -> Any:
        return answer_edits(job, edits, counts, quiet=True)

    def run_naively() -> list[Any]:
        return [job.answer([edits[index]]) for index in chosen]

    clock = gpu_clock if job.model.device.type == "cuda" else time.process_time
    variants = {"plain": Variant(job.answer), "all": Variant(run_all), "naive": Variant(run_naively)}
    job.answer()
    start = time.perf_counter()
    answers = run_all()[1]
    wall = time.perf_counter() - start
    spent = time_interleaved(variants, turns=turns, clock=clock)
    flops = _count_flops(job, run_all)
    naive = run_naively()
    pairs = [(answers[index], found) for index, found in zip(chosen, naive, strict=True)]
    scale = len(edits) / len(chosen)
    return {
        "heads": len(edits),
        "turns": turns,
        "plain_seconds": median(spent["plain"]),
        "wall_seconds": wall,
        "passes": median(run / plain for run, plain in zip(spent["all"], spent["plain"], strict=True)),
        "passes_least": min(spent["all"]) / min(spent["plain"]),
        "naive_passes": scale * median(run / plain for run, plain in zip(spent["naive"], spent["plain"], strict=True)),
        "plain_flops": flops[0],
        "flops": flops[1],
        "largest_difference": max(float(np.abs(fast["logits"] - slow["logits"]).max()) for fast, slow in pairs),
        "predictions_that_differ": sum(int((fast["prediction"] != slow["prediction"]).sum()) for fast, slow in pairs),
    }


def _count_flops(job: ScoringJob, run: Callable[[], Any]) -> tuple[int, int]:
    """Return the FLOPs of a plain evaluation and of a run, both with eager attention, whose products are counted."""
    network = job.model.network
    before = network.config._attn_implementation
    network.set_attn_implementation("eager")
    try:
        counts = []
        for function in (job.answer, run):
            with FlopCounterMode(display=False) as counter:
                function()
            counts.append(int(counter.get_total_flops()))
    finally:
        network.set_attn_implementation(before)
    return counts[0], counts[1]


def _print(row: dict[str, Any]) -> None:
    ratio = row["flops"] / row["plain_flops"]
    show(
        f"Ablating {row['heads']} heads, {row['data']}, {row['examples']} examples: plain evaluations",
        ["way", "time", "FLOPs", "bar", "dream"],
        [
            ["hs.ablate", f"{row['passes']:.1f}", f"{ratio:.1f}", str(BAR), str(DREAM)],
            ["naive (scaled)", f"{row['naive_passes']:.1f}", f"{row['heads']}.0", "", ""],
        ],
    )
    print(f"A plain evaluation takes {row['plain_seconds']:.2f} s and {row['plain_flops'] / 1e9:.1f} GFLOP;")
    print(f"hs.ablate took {row['wall_seconds']:.1f} s of wall time and {row['flops'] / 1e9:,.0f} GFLOP.")
    print(f"Largest difference of a logit from the naive way {row['largest_difference']:.1e};")
    print(f"predictions that differ: {row['predictions_that_differ']}.")


if __name__ == "__main__":
    main()

"""Benchmark measuring: against the forward pass, against a naive loop, peak memory, and two workers.

python -m benchmarks.measure [--quick]

The model has BERT-base's shape and random weights (the default model for memory and workers); the texts are real. Times
are wall-clock, variants in turns in one process, on the GPU if there is one. Pairs are minimum and median.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch

from benchmarks.timing import ratio, show
from headscope.core.example import Example
from headscope.data.reading.read import read
from headscope.data.tagging.tag import tag_examples
from headscope.engine.batch import Inputs, make_batches
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.experiments.timing import time_interleaved
from headscope.measuring.observe import Observer
from headscope.measuring.settings import make_measure_settings

BAR = 1.5
STATISTICS = ("entropy", "offsets", "special_tokens", "token_types", "effective_share")
LENGTH = 128


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tiny model and a few texts, as a test")
    parser.add_argument("--tokenizer", help="folder of a tokenizer, where the default model is not installed")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(_peak(options.memory))
        return
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() and not options.quick else "cpu"
    compare_with_forward(device, options.tokenizer, quick=options.quick)
    if device == "cpu":
        compare_with_naive_loop(4 if options.quick else 40)
        compare_memory((20, 40) if options.quick else (1000, 10000))
        compare_workers(8 if options.quick else 400)


def compare_with_forward(device: str, tokenizer: str | None, *, quick: bool) -> None:
    """Compare the effective lens and the statistics of the target with a forward pass, on tagged batches."""
    model = _bert(device, tokenizer, quick=quick)
    batch, count = (2, 1) if quick else (64, 16) if device == "cuda" else (8, 1)
    batches = [_inputs(model, batch, index) for index in range(count)]
    observers = {name: Observer(model, make_measure_settings("effective", [name])) for name in STATISTICS}
    observers["all five"] = Observer(model, make_measure_settings("effective", list(STATISTICS)))
    variants: dict[str, Callable[[], Any]] = {"forward": partial(_forward, model, batches)}
    variants |= {name: partial(_observe, observer, batches) for name, observer in observers.items()}
    runs = time_interleaved(variants, turns=2 if quick else 9, clock=time.perf_counter)
    forward = runs.pop("forward")
    rows = [[name, f"{ratio(times, forward):.2f}", f"{median(times) * 1e3:.0f} ms"] for name, times in runs.items()]
    slowdown = ratio(runs["all five"], forward).median
    rows[-1].append(f"≤{BAR} {'met' if slowdown <= BAR else 'missed'}")
    rows = [[*row, *[""] * (4 - len(row))] for row in rows]
    title = f"{count} × {batch} × {LENGTH} tokens on the {device}, over a forward of {median(forward) * 1e3:.0f} ms"
    show(title, ["effective lens and", "over forward", "time", "bar"], rows)


def compare_with_naive_loop(count: int) -> None:
    """Compare with a loop over single texts that stores all maps, then averages."""
    model, texts = load(), [example.text for example in read("sample")[:count]]
    model.network.set_attn_implementation("eager")  # the only implementation that returns attentions

    def naive() -> Any:
        maps = []
        for text in texts:
            inputs = model.tokenizer(text, return_tensors="pt")
            with torch.no_grad():
                maps.append(torch.stack(model.network(**inputs, output_attentions=True).attentions))
        return torch.stack([torch.special.entr(stack).sum(-1).mean((-1, 1)) for stack in maps]).mean(0)

    def ours() -> Any:
        from headscope.measuring.measure import measure

        return measure(model, texts, lens="raw", statistics="entropy", progress=False)

    runs = time_interleaved({"naive": naive, "ours": ours}, turns=3, clock=time.perf_counter)
    difference = float(abs(naive().double().numpy() - ours()["entropy"].values[0, 0]).max())
    rows = [[f"{count}", f"{ratio(runs['naive'], runs['ours']):.2f}", f"{difference:.0e}"]]
    show("Naive loop over ours, entropy of raw attention, default model", ["texts", "ratio", "difference"], rows)


def compare_memory(sizes: tuple[int, int]) -> None:
    """Compare the peak memory of a process for a small and a large dataset."""
    peaks = [_peak_of_process(count) for count in sizes]
    rows = [[f"{count:,}", f"{peak / 2**20:.0f} MiB"] for count, peak in zip(sizes, peaks, strict=True)]
    rows[1][1] += f", {peaks[1] / peaks[0]:.3f} of the first"
    show("Peak memory by number of sentences, default model", ["sentences", "peak"], rows)


def compare_workers(count: int) -> None:
    """Compare one process with one thread with two Ray workers with one thread each."""
    import ray

    from headscope.measuring.job import prepare_job
    from headscope.measuring.ray import distribute

    torch.set_num_threads(1)
    job = prepare_job(load(), _make_sentences(count), make_measure_settings("effective", "entropy", batch_size=16))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    times = {}
    for name, run in (("one process", job.observe), ("two Ray workers", distribute(job, 2))):
        states = run(job.plan.batches())
        next(states)  # workers have loaded the model
        start = time.perf_counter()
        for _ in states:
            pass
        times[name] = time.perf_counter() - start
    ray.shutdown()
    rows = [[name, f"{spent:.1f} s", f"{times['one process'] / spent:.2f}"] for name, spent in times.items()]
    show(f"{count} paragraphs, one thread each, after the first batch", ["", "time", "speed"], rows)


def _bert(device: str, tokenizer: str | None, *, quick: bool) -> Model:
    from transformers import AutoTokenizer, BertConfig, BertModel

    small = {"hidden_size": 48, "num_hidden_layers": 2, "intermediate_size": 96} if quick else {}
    network = BertModel(BertConfig(attn_implementation="eager", **small), add_pooling_layer=False).eval()
    words = AutoTokenizer.from_pretrained(tokenizer) if tokenizer else load(device="cpu").tokenizer
    return load(network.to(device), tokenizer=words)


def _inputs(model: Model, count: int, seed: int) -> Inputs:
    """Tagged paragraphs of exactly LENGTH tokens."""
    texts = [example.text for example in read("sample")]
    pairs = [f"{texts[(seed * count + index) % 100]} {texts[(seed + index + 50) % 100]}" for index in range(count)]
    examples = tag_examples([Example(str(index), text) for index, text in enumerate(pairs)])
    return next(make_batches(model, examples, count, max_length=LENGTH))


@torch.no_grad()
def _forward(model: Model, batches: list[Inputs]) -> None:
    for batch in batches:
        model.network(**batch.tensors, output_attentions=True)
    _wait(model)


def _observe(observer: Observer, batches: list[Inputs]) -> None:
    for _ in observer((batch, None) for batch in batches):
        pass
    _wait(observer.model)


def _wait(model: Model) -> None:
    if model.device.type == "cuda":
        torch.cuda.synchronize()


def _make_sentences(count: int) -> list[Example]:
    """Return distinct sentences."""
    texts = [example.text for example in read("sample")]
    return [Example(str(index), f"{index}. {texts[index % 100]}") for index in range(count)]


def _peak_of_process(count: int) -> int:
    command = [sys.executable, "-m", "benchmarks.measure", "--memory", str(count)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _peak(count: int) -> int:
    """Measure sentences in this process, and return its peak memory."""
    import resource

    from headscope.measuring.measure import measure

    texts = [Example(example.id, example.text[:120]) for example in _make_sentences(count)]
    measure(load(), texts, lens="effective", statistics=["entropy", "offsets"], progress=False)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()

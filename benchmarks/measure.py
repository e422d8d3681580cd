"""What measuring over a dataset costs: over the forward pass, against the obvious way, in memory, with two workers.

python -m benchmarks.measure [--quick]

The model has BERT-base's shape and random weights (the default model for memory and workers); the texts are real. Times
are wall-clock, rivals in turns in one process, on the GPU if there is one. Every pair of figures is least and median.
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
from headscope.engine.batch import Inputs
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.experiments.timing import time_interleaved
from headscope.measuring.job import make_inputs
from headscope.measuring.observe import Observer
from headscope.measuring.settings import make_measure_settings

BAR = 1.5
STATISTICS = ("entropy", "offsets", "special_tokens", "token_types", "effective_share")
LENGTH = 128


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tiny model and a few texts, to see that it runs")
    parser.add_argument("--tokenizer", help="a folder that holds one, where the default model is not installed")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.memory:
        print(_peak(chosen.memory))
        return
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() and not chosen.quick else "cpu"
    compare_with_forward(device, chosen.tokenizer, quick=chosen.quick)
    if device == "cpu":
        compare_with_obvious_way(4 if chosen.quick else 40)
        compare_memory((20, 40) if chosen.quick else (1000, 10000))
        compare_workers(8 if chosen.quick else 400)


def compare_with_forward(device: str, tokenizer: str | None, *, quick: bool) -> None:
    """The effective lens and the statistics of the bar, from tokenised and tagged batches."""
    model = _bert(device, tokenizer, quick=quick)
    batch, many = (2, 1) if quick else (64, 16) if device == "cuda" else (8, 1)
    batches = [_inputs(model, batch, place) for place in range(many)]
    observers = {name: Observer(model, make_measure_settings("effective", [name])) for name in STATISTICS}
    observers["all five"] = Observer(model, make_measure_settings("effective", list(STATISTICS)))
    rivals: dict[str, Callable[[], Any]] = {"forward": partial(_forward, model, batches)}
    rivals |= {name: partial(_observe, each, batches) for name, each in observers.items()}
    runs = time_interleaved(rivals, turns=2 if quick else 9, clock=time.perf_counter)
    forward = runs.pop("forward")
    rows = [[name, f"{ratio(each, forward):.2f}", f"{median(each) * 1e3:.0f} ms"] for name, each in runs.items()]
    found = ratio(runs["all five"], forward).median
    rows[-1].append(f"≤{BAR} {'met' if found <= BAR else 'missed'}")
    rows = [[*row, *[""] * (4 - len(row))] for row in rows]
    title = f"{many} × {batch} × {LENGTH} tokens on the {device}, over a forward of {median(forward) * 1e3:.0f} ms"
    show(title, ["effective lens and", "over forward", "time", "bar"], rows)


def compare_with_obvious_way(many: int) -> None:
    """One text at a time, all maps of all texts kept, then stacked and averaged."""
    model, texts = load(), [each.text for each in read("sample")[:many]]
    model.network.set_attn_implementation("eager")  # the only one that gives attentions

    def obvious() -> Any:
        maps = []
        for text in texts:
            given = model.tokenizer(text, return_tensors="pt")
            with torch.no_grad():
                maps.append(torch.stack(model.network(**given, output_attentions=True).attentions))
        return torch.stack([torch.special.entr(each).sum(-1).mean((-1, 1)) for each in maps]).mean(0)

    def ours() -> Any:
        from headscope.measuring.measure import measure

        return measure(model, texts, statistics="entropy", progress=False)

    runs = time_interleaved({"obvious": obvious, "ours": ours}, turns=3, clock=time.perf_counter)
    apart = float(abs(obvious().double().numpy() - ours()["entropy"].values[0, 0]).max())
    rows = [[f"{many}", f"{ratio(runs['obvious'], runs['ours']):.2f}", f"{apart:.0e}"]]
    show("The obvious way over ours, entropy of raw attention, default model", ["texts", "times", "apart"], rows)


def compare_memory(sizes: tuple[int, int]) -> None:
    """The peak of a whole process, for a small dataset and a large one."""
    peaks = [_other_process(many) for many in sizes]
    rows = [[f"{many:,}", f"{peak / 2**20:.0f} MiB"] for many, peak in zip(sizes, peaks, strict=True)]
    rows[1][1] += f", {peaks[1] / peaks[0]:.3f} of the first"
    show("Peak memory of a run over so many sentences, default model", ["sentences", "peak"], rows)


def compare_workers(many: int) -> None:
    """One process with one thread against two Ray workers with one thread each."""
    import ray

    from headscope.measuring.job import prepare_job
    from headscope.measuring.ray import distribute

    torch.set_num_threads(1)
    job = prepare_job(load(), _many(many), make_measure_settings("effective", "entropy", batch_size=16))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    times = {}
    for name, run in (("one process", job.observe), ("two Ray workers", distribute(job, 2))):
        states = run(0)
        next(states)  # workers have loaded the model
        start = time.perf_counter()
        for _ in states:
            pass
        times[name] = time.perf_counter() - start
    ray.shutdown()
    rows = [[name, f"{spent:.1f} s", f"{times['one process'] / spent:.2f}"] for name, spent in times.items()]
    show(f"{many} paragraphs, one thread each, after the first batch", ["", "time", "speed"], rows)


def _bert(device: str, tokenizer: str | None, *, quick: bool) -> Model:
    from transformers import AutoTokenizer, BertConfig, BertModel

    small = {"hidden_size": 48, "num_hidden_layers": 2, "intermediate_size": 96} if quick else {}
    network = BertModel(BertConfig(attn_implementation="eager", **small), add_pooling_layer=False).eval()
    words = AutoTokenizer.from_pretrained(tokenizer) if tokenizer else load(device="cpu").tokenizer
    return load(network.to(device), tokenizer=words)


def _inputs(model: Model, many: int, seed: int) -> Inputs:
    """Tagged paragraphs of exactly LENGTH tokens."""
    texts = [each.text for each in read("sample")]
    pairs = [f"{texts[(seed * many + place) % 100]} {texts[(seed + place + 50) % 100]}" for place in range(many)]
    examples = tag_examples([Example(str(place), text) for place, text in enumerate(pairs)])
    return make_inputs(model, tuple(examples), LENGTH)


@torch.no_grad()
def _forward(model: Model, batches: list[Inputs]) -> None:
    for each in batches:
        model.network(**each.tensors, output_attentions=True)
    _wait(model)


def _observe(observer: Observer, batches: list[Inputs]) -> None:
    for _ in observer((each, None) for each in batches):
        pass
    _wait(observer.model)


def _wait(model: Model) -> None:
    if model.device.type == "cuda":
        torch.cuda.synchronize()


def _many(many: int) -> list[Example]:
    """Different sentences, as many as asked for."""
    texts = [each.text for each in read("sample")]
    return [Example(str(place), f"{place}. {texts[place % 100]}") for place in range(many)]


def _other_process(many: int) -> int:
    command = [sys.executable, "-m", "benchmarks.measure", "--memory", str(many)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _peak(many: int) -> int:
    """Measure so many sentences in this process, and say the most memory that it took."""
    import resource

    from headscope.measuring.measure import measure

    texts = [Example(each.id, each.text[:120]) for each in _many(many)]
    measure(load(), texts, lens="effective", statistics=["entropy", "offsets"], progress=False)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()

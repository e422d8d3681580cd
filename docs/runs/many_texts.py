"""Measure the memory of many short texts, and kill and resume a run of them; write docs/results/many_texts.json.

    python docs/runs/many_texts.py [--model tiny] [--counts 10000 100000 1000000] [--killed 1000000]
Files of texts of 4 to 12 words are read by a tiny model with random weights, by the default model, or by none: then
the letters of each text are counted in its place. Each number of texts has a process of its own. The run with --killed
texts is repeated: killed after a third, resumed and killed again, and resumed to its end, of the tiny model with two
Ray workers; both results must have the same bits. One thread; memory is the peak of the process. What was found is
added to the file.
"""

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

WORDS = tuple("abcdefghijklmnopq")
STATISTIC, LENS = "entropy", "raw"
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "TOKENIZERS_PARALLELISM": "false"}
OUT = Path(__file__).parents[1] / "results" / "many_texts.json"


def main() -> None:
    """Run all steps, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("tiny", "default", "none"), default="tiny")
    parser.add_argument("--counts", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--window", type=int, default=10_000)
    parser.add_argument("--killed", type=int, default=0, help="one of the numbers of texts")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--step", type=json.loads, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        sys.stdout.write(json.dumps(measure_texts(**chosen.step)) + "\n")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(folder / "model")
        for count in chosen.counts:
            add(chosen.out, "rows", run_step(describe_step(folder, count, chosen.model, chosen.window)))
        if chosen.killed:
            step = describe_step(folder, chosen.killed, chosen.model, chosen.window)
            add(chosen.out, "killed", kill_and_resume(step, chosen.killed))


def describe_step(folder: Path, count: int, model: str, window: int) -> dict[str, Any]:
    """Return the options of a run, and write its texts."""
    texts, ending = folder / f"{count}.jsonl", "state" if model == "none" else "nc"
    if not texts.exists():
        write_texts(texts, count)
    out = str(folder / f"{model}-{count}.{ending}")
    return {"model": model, "folder": str(folder), "texts": str(texts), "window": window, "out": out}


def write_texts(path: Path, count: int) -> None:
    """Write texts of 4 to 12 words, the first of which is a number of its own."""
    with path.open("w") as file:
        for number in range(count):
            words = [WORDS[(number * 5 + step * (1 + number % 7)) % len(WORDS)] for step in range(3 + number * 7 % 9)]
            file.write(json.dumps({"text": f"{number} {' '.join(words)}"}) + "\n")


def save_model(folder: Path) -> None:
    """Write a tiny BERT with random weights, and a tokenizer of its words."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    vocabulary = {word: number for number, word in enumerate((*names.values(), *WORDS))}
    words = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    marks = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    words.post_processor = TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", marks)
    tokens = {f"{role}_token": name for role, name in names.items()}
    PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=64, **tokens).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=64, **sizes)).save_pretrained(folder)


def run_step(step: dict[str, Any]) -> dict[str, Any]:
    """Measure in a process of its own, and return what it took."""
    done = subprocess.run(command(step), capture_output=True, text=True, check=False, env=os.environ | ENVIRONMENT)
    if done.returncode:
        sys.exit(done.stderr)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    sys.stderr.write(f"{row}\n")
    return row


def command(step: dict[str, Any]) -> list[str]:
    """Return the command of a process that runs a step."""
    return [sys.executable, __file__, "--step", json.dumps(step)]


def measure_texts(
    model: str, folder: str, texts: str, window: int, out: str, *, resume: bool = False, workers: int | None = None
) -> dict[str, Any]:
    """Measure the texts in this process, and return time and memory."""
    import headscope as hs

    if workers:
        start_ray(workers)
    loaded = None if model == "none" else hs.load(str(Path(folder) / "model") if model == "tiny" else None)
    start, spent = time.perf_counter(), time.process_time()
    if loaded is None:
        stamp = count_letters(texts, window, Path(out), resume=resume)
    else:
        options: dict[str, Any] = {"engine": "ray", "workers": workers} if workers else {}
        options |= {"lens": LENS, "statistics": STATISTIC, "progress": False}
        data = hs.measure(loaded, texts, window=window, out=out, resume=resume, **options)
        stamp = json.loads(data.attrs["headscope"])
    facts = {name: stamp.get(name) for name in ("n", "data", "weights_hash", "window")}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # KiB on Linux
    seconds = {"cpu_s": time.process_time() - spent, "wall_s": time.perf_counter() - start}
    return {"model": model, **facts, **seconds, "peak_mb": peak / 1e6}


def count_letters(texts: str, window: int, out: Path, *, resume: bool) -> dict[str, Any]:
    """Go through the texts as a measurement does, with the letters of each text in place of what a model says."""
    import numpy as np

    import headscope as hs
    from headscope.core.state import Moments, State
    from headscope.measuring.checkpoint import write_checkpoint
    from headscope.measuring.measure import run_batches
    from headscope.measuring.plan import BatchPlan, plan_batches
    from headscope.results.hashes import fingerprint_data

    def split(examples: Any, first: int) -> Any:
        return plan_batches(examples, [len(example.text) for example in examples], first=first)

    def count(batches: Any) -> Any:
        for batch in batches:
            moments = Moments.from_values(np.array([[float(len(example.text))] for example in batch.examples]))
            yield {("none", "letters"): State("letters", {"letters": moments})}

    stream = hs.scan(texts)
    plan = BatchPlan(stream, split, window)
    facts = {"n": len(stream), **fingerprint_data(stream), "window": window, "plan": plan.fingerprint}
    write_checkpoint(run_batches(plan, facts, count, out, quiet=True, resume=resume), out)
    return facts


def start_ray(workers: int, tries: int = 20) -> None:
    """Start Ray, which gives up after half a minute on a busy machine."""
    import ray

    for attempt in range(1, tries + 1):
        try:
            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
        except Exception:
            ray.shutdown()
            if attempt == tries:
                raise
        else:
            return


def kill_and_resume(step: dict[str, Any], count: int) -> dict[str, Any]:
    """Kill a run after a third and after two thirds, resume it to its end, and compare it with the whole run."""
    whole, out = Path(step["out"]), Path(step["out"]).with_stem(f"killed-{count}")
    killed, workers = [], 2 if step["model"] == "tiny" else None
    state = out if out.suffix == ".state" else out.with_name(f"{out.name}.state")
    for part, resume in ((1 / 3, False), (2 / 3, True)):
        process = subprocess.Popen(command({**step, "out": str(out), "resume": resume}), env=os.environ | ENVIRONMENT)
        while read_done(state) < part * count:
            if process.poll() is not None:
                sys.exit("It ended before it was killed: give more texts.")
            time.sleep(0.5)
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed.append(read_done(state))
        if killed[-1] == count:
            sys.exit("It ended before it was killed: give more texts.")
    last = run_step({**step, "out": str(out), "resume": True, "workers": workers})
    same = have_same_bits(whole, out)
    about = {"model": step["model"], "n": count, "at": killed, "workers": workers}
    return {**about, "same_bits": same, "peak_mb": last["peak_mb"]}


def have_same_bits(first: Path, second: Path) -> bool:
    """Return whether two results are the same, to the last bit."""
    import headscope as hs
    from headscope.measuring.checkpoint import read_checkpoint

    if first.suffix == ".state":
        return read_checkpoint(first).to_bytes() == read_checkpoint(second).to_bytes()
    return hs.open_result(first).identical(hs.open_result(second))


def read_done(path: Path) -> int:
    """Return how many examples a checkpoint holds."""
    from headscope.measuring.checkpoint import read_checkpoint

    return read_checkpoint(path).done if path.exists() else 0


def describe_device() -> str:
    """Return the machine in words."""
    return f"one core of an {platform.machine()} CPU"


def add(path: Path, table: str, row: dict[str, Any]) -> None:
    """Add what was found to the file, in place of older numbers for the same model and number of texts."""
    facts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"rows": [], "killed": []}
    facts |= {"command": "python docs/runs/many_texts.py", "device": describe_device(), "torch": version("torch")}
    facts |= {"statistic": STATISTIC, "lens": LENS}
    others = [other for other in facts[table] if any(other[name] != row[name] for name in ("model", "n"))]
    facts[table] = sorted([*others, row], key=lambda each: (each["model"], each["n"]))
    path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Peak memory and size of an atlas, which must not grow with the corpus.

python -m benchmarks.atlas [--quick] [--out FILE.json]

A small BERT with random weights and the default model's tokenizer reads texts of 128 tokens, made of the bundled
paragraphs, no two alike. Each corpus has a process of its own, with one thread. Memory is that of the process: before
the atlas, when the model and the list of texts are there, and at its peak. Their difference is what the atlas needs.
glibc is told to give freed memory back (MALLOC_MMAP_THRESHOLD_): what it keeps for later differs from run to run.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import torch

from benchmarks.timing import show
from headscope.core.example import Example
from headscope.data.reading.read import read
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.head_atlas.atlas import atlas

TOKENS = 128
COUNTS, QUICK_COUNTS = (1_000, 10_000), (2, 4)
LAYERS, HEADS = 4, 12
EXACT = {"MALLOC_MMAP_THRESHOLD_": "100000"}
BARS = {"own_mb": 1.1, "folder_mb": 1.05}
"""How much the largest corpus may need, over the smallest."""


@dataclass(frozen=True)
class Row:
    """What an atlas of one corpus costs."""

    examples: int
    before_mb: float
    peak_mb: float
    folder_mb: float
    head_kb: float  # the largest file of a head
    seconds: float

    @property
    def own_mb(self) -> float:
        """What the atlas needs beyond the model and the list of texts."""
        return self.peak_mb - self.before_mb


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few texts, to see that it runs")
    parser.add_argument("--out", type=Path, help="where to write the figures")
    parser.add_argument("--child", nargs=2, metavar=("COUNT", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(asdict(measure(int(options.child[0]), Path(options.child[1])))))
        return
    rows = measure_here(QUICK_COUNTS) if options.quick else list(map(start_child, COUNTS))
    print_table(rows)
    if options.out:
        content = {**describe_run(), "rows": [{**asdict(row), "own_mb": row.own_mb} for row in rows], **judge(rows)}
        options.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def measure_here(counts: Sequence[int]) -> list[Row]:
    """Measure in this process, whose memory says nothing."""
    with TemporaryDirectory() as folder:
        return [measure(examples, Path(folder) / str(examples) / "atlas") for examples in counts]


def start_child(examples: int) -> Row:
    """Measure one corpus in a process of its own."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.atlas", "--child", str(examples), str(Path(folder) / "atlas")]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | EXACT)
    return Row(**json.loads(done.stdout.splitlines()[-1]))


def measure(examples: int, out: Path) -> Row:
    """Write an atlas after a small one, which loads what is loaded on demand."""
    torch.set_num_threads(1)
    model, texts = make_model(), make_texts(examples)
    atlas(model, texts[:2], out=out.with_name("small"), progress=False)
    before, start = psutil.Process().memory_info().rss / 1e6, time.perf_counter()
    atlas(model, texts, out=out, max_length=TOKENS, progress=False)
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    largest = max(path.stat().st_size for path in (out / "heads").iterdir())
    return Row(examples, before, peak, sum(sizes) / 1e6, largest / 1e3, seconds)


def make_model() -> Model:
    """Return a small BERT with random weights, which are large enough for attention to differ between heads."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    tokenizer = load().tokenizer
    sizes = {"hidden_size": 16 * HEADS, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    network = BertModel(BertConfig(vocab_size=len(tokenizer), intermediate_size=64, **sizes)).eval()
    with torch.no_grad():
        for layer in network.encoder.layer:
            layer.attention.self.query.weight *= 20
    return load(network, tokenizer=tokenizer)


def make_texts(examples: int) -> list[Example]:
    """Return texts of at least 128 tokens: two paragraphs in turn, with a number that tells them apart."""
    paragraphs = [example.text for example in read("sample")]
    pairs = ((i, paragraphs[i % 100], paragraphs[(i // 100 + 7 * i + 1) % 100]) for i in count())
    return [Example(str(i), f"{i} {first} {second} {first}") for i, first, second in islice(pairs, examples)]


def describe_run() -> dict[str, Any]:
    """Return what made the figures."""
    device = f"{os.cpu_count()} cores of an {platform.machine()} CPU, one thread"
    shape = {"layers": LAYERS, "heads": HEADS, "tokens": TOKENS}
    return {"command": "python -m benchmarks.atlas", "device": device, "torch": torch.__version__, **shape}


def judge(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the growth from the smallest to the largest corpus, and whether the bars are met."""
    first, last = rows[0], rows[-1]
    growth = {name: getattr(last, name) / getattr(first, name) for name in BARS}
    return {"growth": growth, "met": all(growth[name] <= bar for name, bar in BARS.items())}


def print_table(rows: Sequence[Row]) -> None:
    """Print a line for each corpus, then the growth."""
    names = ["examples", "before", "peak", "own", "folder", "head", "time"]
    lines = [
        [
            f"{row.examples:,}",
            *(f"{value:,.0f} MB" for value in (row.before_mb, row.peak_mb, row.own_mb)),
            f"{row.folder_mb:.1f} MB",
            f"{row.head_kb:,.0f} kB",
            f"{row.seconds:,.0f} s",
        ]
        for row in rows
    ]
    show(f"atlas of {LAYERS} × {HEADS} heads, {TOKENS} tokens, raw and effective", names, lines)
    growth = judge(rows)["growth"]
    show(
        "growth with the corpus",
        ["of", "times", "bar"],
        [
            [name, f"{growth[name]:.2f}", f"≤{bar} {'met' if growth[name] <= bar else 'missed'}"]
            for name, bar in BARS.items()
        ],
    )


if __name__ == "__main__":
    main()

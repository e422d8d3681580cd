"""Time and peak memory of long texts: blocks of queries, whole maps, a loop over heads, and the plain forward pass.

python -m benchmarks.long [--quick] [--tokens 2048 8192 …] [--ways blocks forward …] [--out FILE.json]

BERT and Llama shapes of 2 layers × 12 heads (4 key-value heads in Llama) with 64 dimensions and random weights read one
text. Entropy and effective share of raw and effective attention are measured of every head. Each cell has a process of
its own. Times are CPU time on one thread; memory is the peak of the process. The loop is plain torch, head by head,
with one map at a time; effective attention under a causal mask, where each row has a basis of its own, is computed
there for a few rows and scaled. With --out, cells are added to those that the file has.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor

from benchmarks.timing import show
from headscope.core.errors import DataWarning
from headscope.engine.batch import inputs_from_tensors
from headscope.engine.load import load
from headscope.measuring.observe import Observer
from headscope.measuring.settings import make_measure_settings

LAYERS, HEADS, VALUE = 2, 12, 64
SIZES = (2048, 8192, 16384)
WAYS = {"forward": 2**16, "blocks": 2**16, "whole": 8192, "loop": 8192}
"""What is timed, and up to which number of tokens."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that wait for one another would count as time."""

SAMPLED_ROWS = 16
"""Rows of a causal map that the loop projects."""


def main() -> None:
    """Measure the cells, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tiny text, to see that it runs")
    parser.add_argument("--tokens", type=int, nargs="+", default=SIZES)
    parser.add_argument("--shapes", nargs="+", default=("bert", "llama"))
    parser.add_argument("--ways", nargs="+", default=tuple(WAYS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.cell:
        shape, tokens, way = chosen.cell
        print(json.dumps(measure_cell(shape, int(tokens), way)))
        return
    rows = [] if chosen.out is None else read_rows(chosen.out)
    for tokens in (64,) if chosen.quick else chosen.tokens:
        for shape in chosen.shapes:
            for way in chosen.ways:
                if tokens <= WAYS[way]:
                    rows.append(run_cell(shape, tokens, way))
                    if chosen.out is not None:
                        write_rows(chosen.out, rows[-1])
    print_table(rows)


def run_cell(shape: str, tokens: int, way: str) -> dict[str, Any]:
    """Measure one cell in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.long", "--cell", shape, str(tokens), way]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD)
    if done.returncode:
        sys.exit(done.stderr)
    cell: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return cell


def measure_cell(shape: str, tokens: int, way: str) -> dict[str, Any]:
    """Return what one cell costs."""
    torch.manual_seed(0)
    network = build_network(shape, tokens)
    ids = torch.randint(5, 1000, (1, tokens))
    run = {"forward": forward, "loop": loop_over_heads}.get(way) or measuring(blocks=way == "blocks")
    before, load_before = psutil.Process().memory_info().rss, os.getloadavg()[0]
    seconds = run(network, ids)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # KiB on Linux
    cell = {"shape": shape, "tokens": tokens, "way": way, "seconds": seconds, "before_gb": before / 1e9}
    return {**cell, "peak_gb": peak / 1e9, "threads": torch.get_num_threads(), "load": load_before}


def build_network(shape: str, tokens: int) -> Any:
    """Return a network with random weights."""
    import transformers

    sizes = {
        "hidden_size": HEADS * VALUE,
        "intermediate_size": 3072 if shape == "bert" else 2048,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "vocab_size": 1000,
        "max_position_embeddings": tokens,
    }
    if shape == "bert":
        return transformers.BertModel(transformers.BertConfig(**sizes)).eval()
    return transformers.LlamaModel(transformers.LlamaConfig(**sizes, num_key_value_heads=HEADS // 3)).eval()


def forward(network: Any, ids: Tensor) -> float:
    """Return the time of the network as it runs by default: scaled-dot-product attention."""
    start = time.process_time()
    with torch.no_grad():
        network(input_ids=ids)
    return time.process_time() - start


def measuring(*, blocks: bool) -> Callable[[Any, Tensor], float]:
    """Return what measures a text in blocks of queries, or from whole maps, layer by layer."""

    def run(network: Any, ids: Tensor) -> float:
        model = load(network)
        inputs = inputs_from_tensors(model, {"input_ids": ids})
        settings = make_measure_settings(["raw", "effective"], ["entropy", "effective_share"])
        observer = Observer(model, settings, max_cells=0 if blocks else None)
        start = time.process_time()
        list(observer([(inputs, None)]))
        return time.process_time() - start

    return run


def loop_over_heads(network: Any, ids: Tensor) -> float:
    """Return the time of plain torch, with one map at a time; rows that are not computed are added in proportion."""
    from transformers import AttentionInterface

    scaled = 0.0

    def attend(module: Any, query: Tensor, key: Tensor, value: Tensor, _: Any = None, **__: Any) -> Any:
        nonlocal scaled
        contexts, group = [], query.shape[1] // key.shape[1]
        for head in range(query.shape[1]):
            values = value[0, head // group]
            scores = query[0, head] @ key[0, head // group].T / VALUE**0.5
            if module.is_causal:
                scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu_(1), -torch.inf)
            weights = scores.softmax(-1)
            contexts.append(weights @ values)
            entropy(weights)
            if module.is_causal:
                scaled += project_some_rows(weights, values)
            else:
                basis = torch.linalg.svd(values, full_matrices=False).U
                effective = (weights @ basis) @ basis.T
                entropy(effective.abs())
                float(effective.norm() / weights.norm())
        return torch.stack(contexts, 1)[None], None

    AttentionInterface.register("loop_over_heads", attend)
    network.set_attn_implementation("loop_over_heads")
    return forward(network, ids) + scaled


def project_some_rows(weights: Tensor, values: Tensor) -> float:
    """Return the time that all rows would take beyond that of a few: the cost of a row grows with its keys."""
    rows = torch.linspace(0, len(weights) - 1, SAMPLED_ROWS).long().tolist()
    start = time.process_time()
    for row in rows:
        basis = torch.linalg.svd(values[: row + 1], full_matrices=False).U
        effective = (weights[row, : row + 1] @ basis) @ basis.T
        entropy(effective.abs()[None])
    return (time.process_time() - start) * (len(weights) / len(rows) - 1)


def entropy(sizes: Tensor) -> float:
    """Return the mean entropy of the rows of a map."""
    shares = sizes / sizes.sum(-1, keepdim=True)
    return float(-torch.special.xlogy(shares, shares).sum(-1).mean())


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a result file."""
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    return rows


def write_rows(path: Path, cell: dict[str, Any]) -> None:
    """Add a cell to a result file, in place of an older one."""
    names = ("tokens", "shape", "way")
    others = [row for row in read_rows(path) if any(row[name] != cell[name] for name in names)]
    rows = sorted([*others, cell], key=lambda row: (row["tokens"], row["shape"], list(WAYS).index(row["way"])))
    about = {
        "command": "python -m benchmarks.long",
        "device": f"{psutil.cpu_count()} cores of an {platform.machine()} CPU, one thread",
        "memory_gb": psutil.virtual_memory().total / 1e9,
        "torch": torch.__version__,
        "layers": LAYERS,
        "heads": HEADS,
        "value": VALUE,
    }
    path.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print time over the forward pass, and peak memory."""
    plain = {(row["shape"], row["tokens"]): row["seconds"] for row in rows if row["way"] == "forward"}
    table = []
    for row in rows:
        base = plain.get((row["shape"], row["tokens"]))
        ratio = "" if base is None else f"{row['seconds'] / base:.1f}×"
        cells = [row["shape"], f"{row['tokens']:,}", row["way"], f"{row['seconds']:.1f} s", ratio]
        table.append([*cells, f"{row['peak_gb']:.2f} GB"])
    show("one text, 2 layers × 12 heads", ["shape", "tokens", "", "CPU time", "over forward", "peak"], table)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", DataWarning)
    main()

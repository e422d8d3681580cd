"""How much memory a long input takes, layer by layer, against what all its maps would take at once.

python -m benchmarks.long [--quick]

A Llama-shaped model with random weights (grouped queries), one causal input, effective attention of every layer.
"""

import argparse
import resource
import time

import torch

from benchmarks.timing import show
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.capture import by_layer
from headscope.engine.load import load


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tiny model, to see that it runs")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=8)
    chosen = parser.parse_args()
    tokens, layers, heads = (48, 2, 4) if chosen.quick else (chosen.tokens, chosen.layers, 16)
    measure(tokens, layers, heads)


def measure(tokens: int, layers: int, heads: int) -> None:
    """One pass: the mean effective share of each layer, the time, and the peak of memory."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        hidden_size=64 * heads,
        intermediate_size=128 * heads,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=max(1, heads // 4),
        vocab_size=1000,
        max_position_embeddings=tokens,
    )
    model = load(LlamaModel(config).eval())
    ids = torch.randint(0, 1000, (1, tokens))
    before, start = _peak(), time.perf_counter()
    shares = by_layer(model, {"input_ids": ids}, see=_share, keep=("values",))
    spent = time.perf_counter() - start
    maps = 2 * layers * heads * tokens**2 * 4 / 2**30  # standard and effective, float32
    rows = [
        ["peak, layer by layer", f"{_peak() - before:.2f} GiB over {before:.2f} GiB"],
        ["all maps at once", f"{maps:.2f} GiB"],
        ["time", f"{spent:.0f} s, {spent / layers:.1f} s a layer"],
        ["effective share", " ".join(f"{each:.2f}" for each in shares)],
    ]
    show(f"Llama shape, {layers} layers × {heads} heads, {tokens} tokens", ["", ""], rows)


def _share(trace: Trace) -> float:
    return float(view(trace, "effective").diagnostics["share"].mean())


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # KiB on Linux


if __name__ == "__main__":
    main()

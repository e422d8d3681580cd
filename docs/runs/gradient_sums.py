"""Measure the sum of a gradient over dimensions beside its norm, at words and at the output of the embeddings.

The result is the source of numbers in docs/importances.md. Takes seconds:

    python docs/runs/gradient_sums.py --out docs/results/gradient_sums.nc
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
import xarray as xr

import headscope as hs
from headscope.core.provenance import stamp
from headscope.experiments.runs import make_parser
from headscope.results.hashes import fingerprint_examples

PLACES = ("words", "embeddings")
TEXTS = 40


def load_models(seed: int) -> dict[str, tuple[hs.Model, Any]]:
    """Return the default model, and a random one with RMSNorm, each with the score that is differentiated."""
    model = hs.load()
    torch.manual_seed(seed)
    readout = torch.randn(model.network.config.hidden_size)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4}
    config = transformers.LlamaConfig(vocab_size=len(model.tokenizer), **shape)
    small = hs.load(transformers.LlamaForCausalLM(config).eval(), tokenizer=model.tokenizer)
    return {
        "LayerNorm": (model, lambda output: output.last_hidden_state[:, 0] @ readout),
        "RMSNorm": (small, "next:score=logit"),
    }


def measure(model: hs.Model, texts: list[str], target: Any, at: str) -> float:
    """Return the largest sum of a text over its largest norm, mean over texts."""
    sums, norms = (
        hs.importances(model, texts, f"input_gradient:kind={kind},at={at}", target=target).scores
        for kind in ("sum", "norm")
    )
    return float(np.mean([np.nanmax(sizes) / np.nanmax(lengths) for sizes, lengths in zip(sums, norms, strict=True)]))


def main() -> None:
    """Measure both models at both places."""
    parser = make_parser(__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    examples = hs.read("sample")[:TEXTS]
    models = load_models(options.seed)
    texts = [example.text for example in examples]
    shares = [[measure(model, texts, target, at) for at in PLACES] for model, target in models.values()]
    data = xr.Dataset({"share": (("norm", "at"), shares)}, {"norm": list(models), "at": list(PLACES)})
    default = models["LayerNorm"][0]
    facts = {"model": default.spec, "weights_hash": default.weights_hash, "n": len(examples)}
    facts["data"] = fingerprint_examples(examples)
    command = "docs/runs/gradient_sums.py --out docs/results/gradient_sums.nc"
    hs.save(stamp(data, command=command, seed=options.seed, **facts), options.out, overwrite=True)


if __name__ == "__main__":
    main()

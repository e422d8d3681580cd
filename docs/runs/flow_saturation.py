"""Measure by depth how far maximum flow saturates, on a sample of the dev sets of two GLUE tasks.

The result is the source of a figure and of numbers in docs/rollout_and_flow.md:

    python docs/runs/flow_saturation.py run --data GLUE --out minilm.nc
    python docs/runs/flow_saturation.py run --data GLUE --model e5-small --out e5.nc
    python docs/runs/flow_saturation.py join minilm.nc e5.nc --out docs/results/flow_saturation.nc
"""

import argparse
from pathlib import Path

import numpy as np
import xarray as xr
from commands import join_models, run_or_join  # beside this file

import headscope as hs
from headscope.results.stamp import fingerprint, stamp

SAMPLES = {"RTE": 20, "SST-2": 60}  # texts; the flow maps of a long text of RTE take half a minute
LONGEST = 128


def run(options: argparse.Namespace) -> None:
    """Run one model over both tasks; layers are counted from 1, and models may differ in their number."""
    examples = {
        task: _sample(f"glue:{task}:dev@{options.data}", options.limit or count) for task, count in SAMPLES.items()
    }
    model = hs.load(options.model)
    label, parts = Path(model.spec).name, []
    for task, texts in examples.items():
        data = hs.measure(model, texts, lens="flow", statistics=["saturation"], max_length=LONGEST)
        names = [f"{name}{end}" for name in ("saturation", "saturation_same") for end in ("", "_low", "_high")]
        part = data[names].isel(lens=0, site=0, head=0).reset_coords(drop=True)
        tokens = [len(tokens) for tokens in _count_tokens(model, texts)]
        part = part.assign(n=len(texts), tokens=float(np.mean(tokens)))
        parts.append(part.assign_coords(layer=part["layer"] + 1).drop_attrs().expand_dims(model=[label], task=[task]))
    texts = [text for task in examples.values() for each in task for text in (each.text, each.pair or "")]
    data = stamp(
        xr.combine_by_coords(parts),
        command="docs/runs/flow_saturation.py on a random sample of the dev sets of RTE and SST-2",
        model=[label],
        weights_hash={label: model.weights_hash},
        data=fingerprint(texts),
        n=sum(map(len, examples.values())),
        lens=["flow"],
    )
    hs.save(data, options.out, overwrite=True)


def _sample(source: str, count: int) -> list[hs.Example]:
    """Return a random sample, the same in every run."""
    examples = hs.read(source)
    chosen = np.random.default_rng(0).choice(len(examples), count, replace=False)
    return [examples[index] for index in sorted(chosen)]


def _count_tokens(model: hs.Model, examples: list[hs.Example]) -> list[list[int]]:
    pairs = [example.pair for example in examples]
    texts = [example.text for example in examples]
    return model.tokenizer(texts, pairs if all(pairs) else None, truncation=True, max_length=LONGEST)["input_ids"]


if __name__ == "__main__":
    run_or_join(__doc__, run, join_models)

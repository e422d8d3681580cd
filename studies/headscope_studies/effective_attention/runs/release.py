"""Measure how far the maps of the published code are from `paper`, which looks at one layer of the untouched pass.

The published code puts its effective attention, whose columns of padding are dropped, in place of attention while the
model runs, so that from the second layer on it looks at the maps of another pass. That path is the lens
`effective:keys=paper` under the edit `effective_attention:keys=paper`:

    python runs/release.py --data GLUE --models all-MiniLM-L6-v2 e5-small --limit 24 --out results/release.nc
"""

import argparse
import warnings
from pathlib import Path

import torch
import xarray as xr

import headscope as hs
from headscope.core.example import Example, sample_examples
from headscope.core.provenance import stamp
from headscope.experiments.summary import summarise
from headscope.results.hashes import fingerprint_examples
from headscope_studies.effective_attention.measure import EDITS, LENSES
from headscope_studies.effective_attention.runs.effective_attention import ORDER

WIDTH = 128  # to which the published code pads and truncates
DEFAULT = "all-MiniLM-L6-v2"  # the model that is loaded by default
BATCH_SIZE = 8  # the paper's; the published code has one rank for each batch


def compare_paths(model: hs.Model, examples: list[Example], width: int = WIDTH) -> xr.DataArray:
    """Return ‖release − paper‖ / ‖paper‖ of every input and layer, mean over heads, on real tokens."""
    tables = []
    for start in range(0, len(examples), BATCH_SIZE):
        batch = examples[start : start + BATCH_SIZE]
        paper = _view(model, batch, width)
        with hs.edited(model, EDITS["paper"]):
            release = _view(model, batch, width)
        tables.append(torch.stack([_distance(*pair) for pair in zip(release, paper, strict=True)], 1))
    coords = {"example": [example.id for example in examples]}
    return xr.DataArray(torch.cat(tables).numpy(), coords, ("example", "layer"))


def _view(model: hs.Model, batch: list[Example], width: int) -> list[torch.Tensor]:
    trace = hs.capture(model, batch, keep=("values", "pads"), max_length=width, pad_to=width)
    maps = hs.view(trace, LENSES["paper"])
    return [maps.layer(label) * trace.queries.real[:, None, :, None] for label in maps.layers]


def _distance(weights: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    return ((weights - others).norm(dim=(-2, -1)) / others.norm(dim=(-2, -1))).mean(-1)


def measure_model(name: str, data: str, limit: int) -> tuple[xr.Dataset, str, list[Example]]:
    """Return the distances of one model by task and layer, the hash of its weights, and the inputs."""
    model = hs.load(None if name == DEFAULT else name, device="cpu", dtype="float32")
    parts, every = [], []
    for task in ORDER:
        examples = sample_examples(hs.read(f"glue:{task}:dev@{data}"), limit, 0)
        table = compare_paths(model, examples).expand_dims(lens=["release"])
        parts.append(summarise("apart", table).expand_dims(task=[task]))
        every += examples
    whole = xr.concat(parts, "task").assign_coords(layer=range(parts[0].sizes["layer"]))
    return whole.isel(lens=0, drop=True).expand_dims(model=[Path(name).name]), model.weights_hash, every


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="the folder of GLUE")
    parser.add_argument("--models", nargs="+", required=True, help="hub ids or folders")
    parser.add_argument("--limit", type=int, help="number of inputs of each task, a random sample")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore", hs.DataWarning)  # texts over 128 tokens are truncated, as published
    parts, hashes, examples = zip(
        *(measure_model(name, options.data, options.limit) for name in options.models), strict=True
    )
    data = stamp(
        xr.concat(parts, "model", join="outer"),
        command=f"effective_attention/runs/release.py --limit {options.limit} over dev of five GLUE tasks",
        model=[Path(name).name for name in options.models],
        weights_hash=dict(zip([Path(name).name for name in options.models], hashes, strict=True)),
        data=fingerprint_examples(examples[0]),
        n=len(examples[0]),
        lens=[LENSES["paper"]],
        edit=EDITS["paper"],
        max_length=WIDTH,
    )
    hs.save(data, options.out, overwrite=True)


if __name__ == "__main__":
    main()

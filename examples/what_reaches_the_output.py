"""Measure how much of a model's attention reaches the output, on a hundred paragraphs.

Run it as a script, or cell by cell in an editor that supports `# %%`.
"""

# %% Load the model, and the bundled paragraphs of about 90 tokens
import argparse
from pathlib import Path

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

import headscope as hs
from headscope.core.provenance import stamp
from headscope.results.hashes import fingerprint

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder for figures and numbers")
parser.add_argument("--model", default=None, help="a hub id or a folder (default: all-MiniLM-L6-v2)")
parser.add_argument("--limit", type=int, default=None, help="number of paragraphs (default: all)")
options = parser.parse_args()

model = hs.load(options.model)
texts = hs.read("sample")[: options.limit]
tokens = [token for token in (model.tokenizer.cls_token, model.tokenizer.sep_token) if token]


# %% Weight on one special token from all other tokens, per example, layer and head
def weight_on(maps: hs.Maps, token: str) -> np.ndarray:
    rows = []
    for text, weights in zip(maps.keys.text, maps.weights.numpy(), strict=True):
        special = np.array([piece == token for piece in text])
        rows.append(weights[:, :, : len(text), : len(text)][:, :, ~special][..., special].sum(-1).mean(-1))
    return np.stack(rows)


# %% Raw and effective attention in one pass over the paragraphs
batches: dict[str, list[np.ndarray]] = {"share": [], "raw": [], "effective": []}
console = Console(stderr=True)
for trace in track(
    hs.stream(model, texts, batch_size=4), "Computing effective attention", total=-(-len(texts) // 4), console=console
):
    raw, effective = hs.view(trace, "raw"), hs.view(trace, "effective")
    batches["share"].append(effective.diagnostics["share"].numpy())
    batches["raw"].append(np.stack([weight_on(raw, token) for token in tokens]))
    batches["effective"].append(np.stack([weight_on(effective, token) for token in tokens]))

axes = ("example", "layer", "head")
result = xr.Dataset(
    {
        "share": (axes, np.concatenate(batches["share"])),
        "raw": (("token", *axes), np.concatenate(batches["raw"], axis=1)),
        "effective": (("token", *axes), np.concatenate(batches["effective"], axis=1)),
    },
    coords={
        "token": tokens,
        "example": [text.id for text in texts],
        "layer": list(trace.layers),
        "head": list(trace.heads),
    },
)
result = stamp(
    result,
    command="examples/what_reaches_the_output.py",
    model=model.spec,
    weights_hash=model.weights_hash,
    data=f"GAP development, every 20th row: {fingerprint(text.text for text in texts)}",
    n=len(texts),
    lens="effective",
)

# %% Print the means by layer
table = Table(box=None, padding=(0, 2, 0, 0))
for name in ("layer", "lost", *(f"{token} {lens}" for token in tokens for lens in ("raw", "effective"))):
    table.add_column(escape(name), justify="right")
for label in result.layer.values:
    layer = result.sel(layer=label)
    numbers = [layer[lens].sel(token=token).mean().item() for token in tokens for lens in ("raw", "effective")]
    lost = 100 * (1 - layer.share**2).mean().item()
    table.add_row(f"L{label}", f"{lost:.0f} %", *(f"{number:.3f}" for number in numbers))
output = Console(highlight=False)
output.print(f"\n{model.spec}, {len(texts)} paragraphs\n", table)
output.print("\nLost: share of squared weights that never reaches the output (null space of V).")
output.print("Other columns: mean raw and effective weight on a token from all other tokens.\n")

# %% Draw and save
longest = max(texts, key=lambda example: len(example.text))
trace = hs.capture(model, longest)
maps = [hs.view(trace, "raw"), hs.view(trace, "effective")]
for name, picture in {
    "compare": hs.draw(maps, "compare"),
    "shares": hs.draw(maps[1], "head_grid", colour="share"),
    "heads": hs.draw(maps[1], "head_grid"),
}.items():
    for ending in (".pdf", ".png", ".html"):
        hs.save(picture, options.out / f"{name}{ending}", overwrite=True)
hs.save(result, options.out / "result.nc", overwrite=True)
output.print(f"Figures and numbers are in {options.out}/", soft_wrap=True)

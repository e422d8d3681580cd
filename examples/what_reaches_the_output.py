"""How much of a model's attention reaches the output, over a hundred real paragraphs.

Run it as a whole, or cell by cell in an editor that knows `# %%`.
"""

# %% The model, and paragraphs of about 90 tokens that come with the package
import argparse
from pathlib import Path

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

import headscope as hs
from headscope.results.stamp import fingerprint, stamp

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--out", type=Path, default=Path("out/demo"), help="where the figures go")
options.add_argument("--model", default=None, help="a hub id or a folder; by default all-MiniLM-L6-v2")
options.add_argument("--limit", type=int, default=None, help="read only so many paragraphs")
chosen = options.parse_args()

model = hs.load(chosen.model)
texts = hs.read("sample")[: chosen.limit]
tokens = [token for token in (model.tokenizer.cls_token, model.tokenizer.sep_token) if token]


# %% What lies on one kind of token, from all other tokens, per example, layer and head
def weight_on(maps: hs.Maps, token: str) -> np.ndarray:
    rows = []
    for text, weights in zip(maps.keys.text, maps.weights.numpy(), strict=True):
        there = np.array([piece == token for piece in text])
        rows.append(weights[:, :, : len(text), : len(text)][:, :, ~there][..., there].sum(-1).mean(-1))
    return np.stack(rows)


# %% One pass over the paragraphs, standard and effective attention side by side
found: dict[str, list[np.ndarray]] = {"share": [], "standard": [], "effective": []}
console = Console(stderr=True)
for trace in track(
    hs.stream(model, texts, batch_size=4), "Looking into every head", total=-(-len(texts) // 4), console=console
):
    raw, effective = hs.view(trace, "raw"), hs.view(trace, "effective")
    found["share"].append(effective.diagnostics["share"].numpy())
    found["standard"].append(np.stack([weight_on(raw, token) for token in tokens]))
    found["effective"].append(np.stack([weight_on(effective, token) for token in tokens]))

axes = ("example", "layer", "head")
result = xr.Dataset(
    {
        "share": (axes, np.concatenate(found["share"])),
        "standard": (("token", *axes), np.concatenate(found["standard"], axis=1)),
        "effective": (("token", *axes), np.concatenate(found["effective"], axis=1)),
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

# %% The answer, in the terminal
table = Table(box=None, padding=(0, 2, 0, 0))
for name in (
    "layer",
    "lost",
    *(f"{kind} on {token}" for token in tokens for kind in ("all", "real")),
):
    table.add_column(escape(name), justify="right")
for label in result.layer.values:
    one = result.sel(layer=label)
    numbers = [one[kind].sel(token=token).mean().item() for token in tokens for kind in ("standard", "effective")]
    lost = 100 * (1 - one.share**2).mean().item()
    table.add_row(f"L{label}", f"{lost:.0f} %", *(f"{number:.3f}" for number in numbers))
answers = Console(highlight=False)
answers.print(f"\n{model.spec}, {len(texts)} paragraphs\n", table)
answers.print(
    "\nLost: the part of the squared weights that V multiplies to zero, so that it\nnever reaches the output."
)
answers.print("All, real: mean standard and effective weight on a token, from all other tokens.\n")

# %% The pictures
longest = max(texts, key=lambda each: len(each.text))
trace = hs.capture(model, longest)
maps = [hs.view(trace, "raw"), hs.view(trace, "effective")]
for name, picture in {
    "compare": hs.draw(maps, "compare"),
    "shares": hs.draw(maps[1], "head_grid", colour="share"),
    "heads": hs.draw(maps[1], "head_grid"),
}.items():
    for ending in (".pdf", ".png", ".html"):
        hs.save(picture, chosen.out / f"{name}{ending}")
hs.save(result, chosen.out / "result.nc")
answers.print(f"Figures and numbers are in {chosen.out}/", soft_wrap=True)

"""How much of a model's attention reaches the output, over a hundred real paragraphs.

Run it with `make demo`, or cell by cell in an editor that knows `# %%`.
"""

# %% The model, and paragraphs of about 90 tokens that come with the package
import argparse
from pathlib import Path

import numpy as np
import xarray as xr
from rich.console import Console
from rich.progress import track
from rich.table import Table

import headscope as hs
from headscope.data.sample import paragraphs
from headscope.results.stamp import fingerprint, stamped

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--out", type=Path, default=Path("out/demo"), help="where the figures go")
options.add_argument("--model", default=None, help="a hub id or a folder; by default all-MiniLM-L6-v2")
options.add_argument("--limit", type=int, default=None, help="read only so many paragraphs")
chosen = options.parse_args()

model = hs.load(chosen.model)
texts = paragraphs()[: chosen.limit]
separator = model.tokenizer.sep_token or model.tokenizer.eos_token


# %% What lies on one kind of token, from all other tokens, per example, layer and head
def weight_on(maps: hs.Maps, token: str) -> np.ndarray:
    rows = []
    for text, weights in zip(maps.keys.text, maps.weights.numpy(), strict=True):
        there = np.array([piece == token for piece in text])
        rows.append(weights[:, :, : len(text), : len(text)][:, :, ~there][..., there].sum(-1).mean(-1))
    return np.stack(rows)


# %% One pass over the paragraphs, standard and effective attention side by side
found: dict[str, list[np.ndarray]] = {"share": [], "standard": [], "effective": [], "same": []}
console = Console(stderr=True)
for trace in track(
    hs.stream(model, texts, batch_size=4), "Looking into every head", total=-(-len(texts) // 4), console=console
):
    raw, effective = hs.view(trace, "raw"), hs.view(trace, "effective")
    found["share"].append(effective.diagnostics["share"].numpy())
    found["same"].append((effective.diagnostics["null"] == 0).numpy())
    found["standard"].append(weight_on(raw, separator))
    found["effective"].append(weight_on(effective, separator))

axes = ("example", "layer", "head")
result = xr.Dataset(
    {name: (axes, np.concatenate(each)) for name, each in found.items()},
    coords={"example": [text.id for text in texts], "layer": list(trace.layers), "head": list(trace.heads)},
)
result = stamped(
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
for name in ("layer", "never reaches the output", f"standard on {separator}", f"effective on {separator}"):
    table.add_column(name.replace("[", r"\["), justify="right")
for label in result.layer.values:
    one = result.sel(layer=label)
    table.add_row(
        f"L{label}",
        f"{100 * (1 - one.share**2).mean().item():.0f} %",
        f"{one.standard.mean().item():.3f}",
        f"{one.effective.mean().item():+.3f}",
    )
answers = Console()
answers.print(f"\n{model.spec}, {len(texts)} paragraphs\n", highlight=False)
answers.print(table)
answers.print(
    "\nNever reaches the output: the part of the squared attention weights that the head's\nvalues multiply to zero. "
    f"On {separator}: mean weight from all other tokens, all heads.\n".replace("[", r"\["),
    highlight=False,
)

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
answers.print(f"Figures and numbers are in {chosen.out}: compare, shares and heads (.pdf .png .html), result.nc")

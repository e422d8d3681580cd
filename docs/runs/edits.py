"""How much a model's output changes with effective attention in place, over the bundled paragraphs.

python docs/runs/edits.py --out docs/results/edits.nc
"""

import argparse
from pathlib import Path

import numpy as np
import torch
import xarray as xr

import headscope as hs
from headscope.results.stamp import fingerprint, stamp

WIDTH = 128


def outputs(model: hs.Model, texts: list[str], **padding: object) -> list[torch.Tensor]:
    """The last hidden states of every text's real tokens."""
    found = []
    for start in range(0, len(texts), 8):
        batch = model.tokenizer(texts[start : start + 8], return_tensors="pt", **padding)
        with torch.no_grad():
            states = model.network(**batch).last_hidden_state
        found += [row[real.bool()] for row, real in zip(states, batch["attention_mask"], strict=True)]
    return found


def main() -> None:
    """Run the model plainly and with each variant."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, required=True)
    out = options.parse_args().out
    model, texts = hs.load(), [each.text for each in hs.read("sample")]
    roads = {"visible": {"padding": True, "truncation": True},
             "paper": {"padding": "max_length", "truncation": True, "max_length": WIDTH}}  # fmt: skip
    rows = {"relative": [], "largest": []}
    for keys, padding in roads.items():
        plain = outputs(model, texts, **padding)
        with hs.edited(model, f"effective_attention:keys={keys}") as changed:
            other = outputs(changed, texts, **padding)
        pairs = list(zip(plain, other, strict=True))
        rows["relative"].append([float((a - b).norm() / a.norm()) for a, b in pairs])
        rows["largest"].append([float((a - b).abs().max()) for a, b in pairs])
    data = xr.Dataset(
        {name: (("keys", "example"), np.array(each)) for name, each in rows.items()},
        coords={"keys": list(roads), "example": [each.id for each in hs.read("sample")]},
    )
    facts = {"command": "docs/runs/edits.py", "model": model.spec, "weights_hash": model.weights_hash}
    hs.save(stamp(data, **facts, data=fingerprint(texts), n=len(texts)), out)


if __name__ == "__main__":
    main()

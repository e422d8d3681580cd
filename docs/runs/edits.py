"""Measure how much effective attention changes a model's output, over the bundled paragraphs.

python docs/runs/edits.py --out docs/results/edits.nc
"""

from pathlib import Path

import numpy as np
import torch
import xarray as xr

import headscope as hs
from headscope.core.provenance import stamp
from headscope.experiments.runs import make_parser
from headscope.results.hashes import fingerprint

PADDING = {
    "visible": {"padding": True, "truncation": True},
    "paper": {"padding": "max_length", "truncation": True, "max_length": 128},
}


def compute_outputs(model: hs.Model, texts: list[str], **padding: object) -> list[torch.Tensor]:
    """Return the last hidden states of every text, without padding."""
    outputs = []
    for start in range(0, len(texts), 8):
        batch = model.tokenizer(texts[start : start + 8], return_tensors="pt", **padding)
        with torch.no_grad():
            states = model.network(**batch).last_hidden_state
        outputs += [row[mask.bool()] for row, mask in zip(states, batch["attention_mask"], strict=True)]
    return outputs


def main() -> None:
    """Run the model without an edit and with each variant of effective attention."""
    parser = make_parser(__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    model, examples = hs.load(), hs.read("sample")
    texts = [example.text for example in examples]
    rows = {"relative": [], "largest": []}
    for keys, padding in PADDING.items():
        raw = compute_outputs(model, texts, **padding)
        with hs.edited(model, f"effective_attention:keys={keys}") as edited:
            pairs = list(zip(raw, compute_outputs(edited, texts, **padding), strict=True))
        rows["relative"].append([float((a - b).norm() / a.norm()) for a, b in pairs])
        rows["largest"].append([float((a - b).abs().max()) for a, b in pairs])
    data = xr.Dataset(
        {name: (("keys", "example"), np.array(values)) for name, values in rows.items()},
        coords={"keys": list(PADDING), "example": [example.id for example in examples]},
    )
    facts = {"command": "docs/runs/edits.py", "model": model.spec, "weights_hash": model.weights_hash}
    hs.save(stamp(data, **facts, data=fingerprint(texts), n=len(texts)), out, overwrite=True)


if __name__ == "__main__":
    main()

"""Judge raw, effective and norm-based attention by removed edges: the source of docs/faithfulness.md.

    python docs/runs/faithfulness.py --out docs/results/faithfulness.nc

The bundled paragraphs, truncated to 64 tokens, with the small BERT that comes with the package.
"""

import argparse
import warnings
from pathlib import Path

import torch

import headscope as hs

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", hs.DataWarning)  # paragraphs are truncated on purpose
    hs.faithfulness(
        hs.load(dtype="float32"),
        hs.read("sample"),
        lenses=["raw", "effective", "norm"],
        judge=["edges", "pictures"],
        limit=40,
        max_length=64,
        rows=1,
        out=parser.parse_args().out,
        overwrite=True,
    )

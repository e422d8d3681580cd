"""Make the results that docs/gallery.md draws: runs the lines of that page.

    python docs/runs/gallery.py --out docs/results/gallery

Takes some minutes on two cores, most of them for tuning the classifier. What the lines name is made first: the
classifier, a treebank of the sentences that come with headscope, and a picture with a network of random weights.
"""

import argparse
import os
import sys
import tempfile
import warnings
from contextlib import chdir
from pathlib import Path
from textwrap import dedent

import numpy as np
import torch
import transformers
from PIL import Image

import headscope as hs
from headscope.data.bundled.files import bundled_file

DOCS = Path(__file__).parents[1]
sys.path.insert(0, str(DOCS))

from pages.gallery_page import SOURCES, STORED  # noqa: E402


def tune() -> None:
    """Tune the classifier that the lines name."""
    texts = hs.read("agreement_templates:train")[:800]
    hs.finetune(hs.load(), texts, out="path/to/classifier", epochs=1, learning_rate=1e-4, batch_size=8)


def prepare() -> None:
    """Make in the current folder what else the lines name."""
    Path("trees.conllu").write_bytes(bundled_file("ewt_sample.conllu").read_bytes())
    down, right = np.mgrid[0:64, 0:64]
    disc = (down - 30) ** 2 + (right - 36) ** 2 < 400
    Image.fromarray(np.where(disc[..., None], [235, 140, 40], [70, 110, 160]).astype(np.uint8)).save("cat.jpg")
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.ViTConfig(**size, image_size=64, patch_size=8, initializer_range=0.4)
    folder = Path("google/vit-base-patch16-224")
    transformers.ViTModel(config).save_pretrained(folder)
    transformers.ViTImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)


def main() -> None:
    """Make all results, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="RESULT", default=sorted(set(SOURCES) - set(STORED)))
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    warnings.simplefilter("ignore", hs.DataWarning)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        prepare()
        for name in arguments.names:
            if "path/to/classifier" in SOURCES[name] and not Path("path").exists():
                tune()
            variables = {"hs": hs}
            exec(dedent(SOURCES[name]), variables)
            hs.save(variables[name], out / f"{name}.nc", overwrite=True)


if __name__ == "__main__":
    main()

"""Write the errors of a new evaluation into the bundled networks, which stay as they are: for maps labelled later.

In studies/headscope_patterns:

    headscope patterns evaluate -o evaluation.nc
    python runs/errors.py evaluation.nc --out results/patterns.nc

Shares are then corrected by the errors on all labelled maps that were sampled at random.
"""

import argparse
import hashlib
from dataclasses import replace
from pathlib import Path

import torch

import headscope as hs
from headscope.core.provenance import read_provenance, stamp
from headscope.patterns.classify.cnn import BUNDLED, read_cnn, write_cnn
from headscope_patterns.labels.labelled_maps import read_labelled_maps
from headscope_patterns.train.train import list_errors
from headscope_patterns.train.training_set import select_training_set


def main() -> None:
    """Replace the errors in the metadata of the networks, and save the evaluation with their new hash."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="where the evaluation is kept")
    options = parser.parse_args()
    data, training = hs.open_result(options.evaluation), select_training_set(read_labelled_maps())
    facts, known = read_provenance(data), training.metadata()
    if facts["labels_hash"] != known["labels_hash"]:
        raise SystemExit("This evaluation is of other labels than the bundled ones.")
    cnn = read_cnn(BUNDLED, torch.device("cpu"))
    changed = {name: known[name] for name in ("labels_hash", "labelled_maps")}
    metadata = {**cnn.metadata, **changed, "errors": list_errors(training.sources, data)}
    write_cnn(replace(cnn, metadata=metadata), BUNDLED)
    digest = hashlib.sha256(BUNDLED.read_bytes()).hexdigest()
    hs.save(stamp(data, model=BUNDLED.name, weights_hash=digest), options.out, overwrite=True)


if __name__ == "__main__":
    main()

"""Training and evaluation of pattern classifiers on labelled maps."""

import numpy as np
import xarray as xr

from headscope.patterns.classify.cnn import CnnEnsemble
from headscope.patterns.train.cross_validate import cross_validate, single_thread
from headscope.patterns.train.evaluation import build_evaluation
from headscope.patterns.train.fit import fit_networks
from headscope.patterns.train.training_set import Progress, TrainingSet
from headscope.results.stamp import stamp


def train(training: TrainingSet, progress: Progress | None = None) -> tuple[CnnEnsemble, xr.Dataset]:
    """Train networks on all maps, and return them with the evaluation of such networks by cross-validation.

    Their temperature, and the confusion matrices by which shares are corrected, come from that cross-validation.
    """
    data = evaluate(training, progress)
    with single_thread():
        nets = fit_networks(training.training_maps, training.settings, seed=training.seed, progress=progress)
    temperature = float(data["temperature"])
    confusion = data["confusion"].sel(subset="random" if "random" in data["subset"].values else "all")
    errors = {name: confusion.sel(classifier=name).values.tolist() for name in ("cnn", "rules", "both")}
    metadata = {**training.metadata(), "temperature": temperature, "errors": errors}
    return CnnEnsemble(nets, training.settings.side, temperature, metadata), data


def evaluate(training: TrainingSet, progress: Progress | None = None) -> xr.Dataset:
    """Cross-validate networks and baselines on heads and texts that they were not trained on."""
    data = build_evaluation(training, cross_validate(training, progress))
    metadata, sizes = training.metadata(), [len(fold.train) for fold in training.folds]
    dropped = [len(training.maps) - len(fold.test) - len(fold.train) for fold in training.folds]
    return stamp(
        data,
        command="headscope patterns evaluate",
        data=metadata["labels_hash"],
        n=metadata["labelled_maps"],
        trainings=len(sizes),
        training_maps_least=min(sizes),
        dropped_maps_mean=float(np.mean(dropped)),
        **metadata,
    )

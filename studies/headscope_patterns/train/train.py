"""Training and evaluation of pattern classifiers on labelled maps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.provenance import stamp
from headscope.engine.device import single_thread
from headscope.patterns.classify.classify import CLASSIFIERS
from headscope.patterns.classify.cnn import CnnEnsemble
from headscope_patterns.labels.labelled_maps import Source
from headscope_patterns.train.cross_validate import cross_validate
from headscope_patterns.train.evaluation import PREDICTED, build_evaluation
from headscope_patterns.train.fit import fit_networks
from headscope_patterns.train.training_set import Progress, TrainingSet


def train(training: TrainingSet, progress: Progress | None = None) -> tuple[CnnEnsemble, xr.Dataset]:
    """Train networks on all maps, and return them with the evaluation of such networks by cross-validation.

    Their temperature, and the errors by which shares are corrected, come from that cross-validation.
    """
    data = evaluate(training, progress)
    with single_thread():
        maps = [training.training_maps[index] for index in training.trained]
        nets = fit_networks(maps, training.settings, seed=training.seed, progress=progress)
    temperature = float(data["temperature"])
    metadata = {**training.metadata(), "temperature": temperature, "errors": list_errors(training.sources, data)}
    return CnnEnsemble(nets, training.settings.side, temperature, metadata), data


def list_errors(sources: Sequence[Source], data: xr.Dataset) -> dict[str, list[Any]]:
    """Return lens, head, text, class and predictions of the maps that were sampled at random; of all if none was.

    Heads and texts are numbers, classes and predictions the indices of PREDICTED.
    """
    by_id = {source.id: source for source in sources}
    sampled = [index for index, name in enumerate(data["map"].values) if by_id[str(name)].part != "topped_up"]
    chosen = data.isel(map=sampled or slice(None))
    known = [by_id[str(name)] for name in chosen["map"].values]
    heads, texts = ([getattr(source, group) for source in known] for group in ("head_group", "text_group"))
    code = {name: index for index, name in enumerate(PREDICTED)}
    predictions = {
        name: [code[str(label)] for label in chosen["said"].sel(classifier=name).values] for name in CLASSIFIERS
    }
    return {
        "lens": [source.lens for source in known],
        "head": np.unique(heads, return_inverse=True)[1].tolist(),
        "text": np.unique(texts, return_inverse=True)[1].tolist(),
        "label": [code[str(label)] for label in chosen["label"].values],
        **predictions,
    }


def evaluate(training: TrainingSet, progress: Progress | None = None) -> xr.Dataset:
    """Cross-validate networks and baselines on heads and texts that they were not trained on."""
    data = build_evaluation(training, cross_validate(training, progress))
    metadata, sizes = training.metadata(), [len(fold.train) for fold in training.folds]
    dropped = [len(np.setdiff1d(training.trained, fold.test)) - len(fold.train) for fold in training.folds]
    return stamp(
        data,
        kind="evaluation",
        command="headscope patterns evaluate",
        data=metadata["labels_hash"],
        n=metadata["labelled_maps"],
        trainings=len(sizes),
        training_maps_least=min(sizes),
        dropped_maps_mean=float(np.mean(dropped)),
        **metadata,
    )

"""Class probabilities of attention maps, by the classifier of a given name."""

from collections.abc import Callable
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from headscope.core.errors import InputError
from headscope.patterns import CLASSES
from headscope.patterns.classify.cnn import BUNDLED, read_cnn
from headscope.patterns.classify.normalize import NormalizedMaps, Real, Segments, normalize_maps
from headscope.patterns.classify.rules import classify_by_rules

UNSURE = "unsure"
CLASSIFIERS = ("cnn", "rules", "both")
BLOCK_CELLS = 2**20
"""Cells classified at a time on a CPU: enough work for several cores, and little more than its cache holds."""


def classify(
    weights: Float[Tensor, "map token token"],
    real: Real,
    segments: Segments | None = None,
    classifier: str = "cnn",
) -> Float[Tensor, "map pattern"]:
    """Return class probabilities of maps; NaN for maps of fewer than four tokens or without any weight.

    Weights may have any sign and any padding; `segments` is 0 or 1 for the texts of a pair. The classifier is "cnn",
    "rules", the path of networks written by `headscope patterns train`, or "both": the mean of the first two where they
    agree, and a last class `unsure` where they do not.
    """
    predict = load_classifier(classifier, weights.device)
    if not len(weights):
        return weights.new_zeros(0, len(class_names(classifier)))
    segments = segments if segments is not None else torch.zeros_like(real, dtype=torch.long)
    size = max(1, BLOCK_CELLS * (64 if weights.is_cuda else 1) // max(1, weights.shape[1] * weights.shape[2]))
    with torch.no_grad():
        blocks = zip(*(torch.split(tensor, size) for tensor in (weights, real, segments)), strict=True)
        return torch.cat([predict(normalize_maps(*parts)) for parts in blocks])


def class_names(classifier: str) -> tuple[str, ...]:
    """Return the classes that a classifier predicts."""
    return (*CLASSES, UNSURE) if classifier == "both" else CLASSES


def check_classifier(classifier: str) -> None:
    """Raise InputError unless this is the name or the path of a classifier."""
    if classifier not in CLASSIFIERS and not classifier.endswith(".safetensors"):
        raise InputError(
            f"No classifier of patterns is called '{classifier}'. Name 'cnn', 'rules' or 'both', or give the path of a "
            ".safetensors file written by headscope patterns train."
        )


def require_classifier(classifier: str) -> None:
    """Raise InputError unless a classifier can be read; a study asks before it trains what will be classified."""
    load_classifier(classifier, torch.device("cpu"))


def classifier_files(classifier: str) -> dict[str, Path]:
    """Return the file of a classifier's networks by name; empty for rules, which have none."""
    if classifier == "rules":
        return {}
    return {"pattern_classifier": BUNDLED if classifier in CLASSIFIERS else Path(classifier)}


def load_classifier(classifier: str, device: torch.device) -> Callable[[NormalizedMaps], Tensor]:
    """Return the classifier of a name or path."""
    check_classifier(classifier)
    if classifier == "rules":
        return classify_by_rules
    cnn = read_cnn(classifier_files(classifier)["pattern_classifier"], device)
    return (lambda maps: combine(cnn(maps), classify_by_rules(maps))) if classifier == "both" else cnn


def combine(first: Float[Tensor, "map pattern"], second: Float[Tensor, "map pattern"]) -> Float[Tensor, "map more"]:
    """Average two classifiers where they predict the same class; elsewhere all probability goes to `unsure`."""
    same = (first.argmax(-1) == second.argmax(-1))[:, None]
    mean = (first + second) / 2
    return pad(mean * same, (0, 1)) + pad((~same).to(mean) + 0 * mean[:, :1], (mean.shape[1], 0))

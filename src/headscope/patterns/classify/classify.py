"""From maps to the probabilities of their patterns, by the classifier of any name."""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import InputError
from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.cnn import BUNDLED, read_cnn
from headscope.patterns.classify.row_weights import Real, Segments, Sizes, sizes_of
from headscope.patterns.classify.rules import rules

UNSURE = "unsure"
NAMED = ("cnn", "rules", "both")
PIECE = 2**20
"""How many cells a processor takes at a time: enough for several cores, and not much more than its cache holds."""

Classifier = Callable[[Sizes], Tensor]


def classify(
    weights: Float[Tensor, "map token token"],
    real: Real,
    segments: Segments | None = None,
    classifier: str = "cnn",
) -> Float[Tensor, "map pattern"]:
    """How likely each class is for each map; NaN for maps of fewer than four tokens or without any weight.

    Weights may have any sign and any padding; `segments` says 0 or 1 for the texts of a pair. The classifier is "cnn",
    "rules", the path of networks that `headscope patterns train` wrote, or "both": what the first two agree on, and a
    last class `unsure` where they do not.
    """
    decide = found(classifier, weights.device)
    given = segments if segments is not None else torch.zeros_like(real, dtype=torch.long)
    with torch.no_grad():
        pieces = [decide(sizes_of(weights[part], real[part], given[part])) for part in _pieces(weights)]
    return torch.cat(pieces) if pieces else weights.new_zeros(0, len(patterns(classifier)))


def patterns(classifier: str) -> tuple[str, ...]:
    """The classes that a classifier gives."""
    return (*CLASSES, UNSURE) if classifier == "both" else CLASSES


def check(classifier: str) -> None:
    """Refuse what names no classifier."""
    if classifier not in NAMED and not classifier.endswith(".safetensors"):
        raise InputError(
            f"No classifier of patterns is called '{classifier}'. Name 'cnn', 'rules' or 'both', or give the path of a "
            ".safetensors file that headscope patterns train wrote."
        )


def found(classifier: str, device: torch.device) -> Classifier:
    """The classifier of a name."""
    check(classifier)
    if classifier == "rules":
        return rules
    cnn = read_cnn(BUNDLED if classifier in NAMED else Path(classifier), device)
    return (lambda sizes: agreed(cnn(sizes), rules(sizes))) if classifier == "both" else cnn


def agreed(one: Float[Tensor, "map pattern"], other: Float[Tensor, "map pattern"]) -> Float[Tensor, "map more"]:
    """The mean where both hold the same class the likeliest; all on a further class, `unsure`, elsewhere."""
    same = (one.argmax(-1) == other.argmax(-1))[:, None]
    mean = (one + other) / 2
    further = torch.nn.functional.pad(mean * same, (0, 1))
    return further + torch.nn.functional.pad((~same).to(mean) + 0 * mean[:, :1], (mean.shape[1], 0))


def _pieces(weights: Float[Tensor, "map token token"]) -> Iterator[slice]:
    """Some maps at a time; a GPU takes many."""
    most = 64 * PIECE if weights.is_cuda else PIECE
    step = max(1, most // max(1, weights.shape[1] * weights.shape[2]))
    return (slice(start, start + step) for start in range(0, len(weights), step))

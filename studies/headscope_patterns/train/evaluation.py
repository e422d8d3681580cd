"""The evaluation of pattern classifiers, as one Dataset and as text."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.estimate import estimate, with_interval
from headscope.core.prose import count_noun
from headscope.core.provenance import read_provenance
from headscope.patterns import CLASSES, NAMES
from headscope.patterns.classify.classify import UNSURE
from headscope_patterns.labels.labelled_maps import Array, Source
from headscope_patterns.train import metrics
from headscope_patterns.train.cross_validate import Predictions
from headscope_patterns.train.training_set import TrainingSet

PREDICTED = (*CLASSES, UNSURE)
SHAPE = (len(CLASSES), len(PREDICTED))
LENGTHS = {
    "under 20 tokens": (1, 19),
    "20–40 tokens": (20, 40),
    "41–80 tokens": (41, 80),
    "over 80 tokens": (81, np.inf),
}
CALIBRATED = ("cnn", "rules")
RIVALS = ("rules", "both", "nearest", "majority")
Variables = dict[str, Any]


def build_evaluation(training: TrainingSet, predictions: Predictions) -> xr.Dataset:
    """Return all results that follow from cross-validated predictions.

    F1, precision and recall by classifier, subset and class, with 95 % bootstrap intervals over heads or over texts,
    whichever is wider; confusion matrices; calibration; the gain of the cnn over its rivals; inter-annotator agreement.
    """
    sources, subsets = training.sources, list_subsets(training.sources)
    groups = [source.head_group for source in sources], [source.text_group for source in sources]
    resampled = [metrics.resample_clusters(names) for names in groups]
    classes = predictions.classes
    variables = {
        "temperature": predictions.temperature,
        "label": ("map", np.array(CLASSES, dtype=object)[predictions.targets]),
        "said": (("classifier", "map"), np.array(PREDICTED, dtype=object)[np.stack(list(classes.values()))]),
        "probability": (("map", "pattern"), predictions.probabilities["cnn"]),
        **_by_subset(subsets, predictions, resampled),
        **_calibration(predictions),
        **_gains(predictions, resampled),
    }
    labels: dict[str, Sequence[str]] = {
        "map": [source.id for source in sources],
        "classifier": list(classes),
        "subset": list(subsets),
        "pattern": CLASSES,
        "predicted": PREDICTED,
        "rival": RIVALS,
        "said_by": CALIBRATED,
    }
    coords = {axis: np.array(names, dtype=object) for axis, names in labels.items()}
    bins = {"bin": (np.arange(metrics.BINS) + 0.5) / metrics.BINS}
    return xr.Dataset(variables, coords | bins).merge(_agreement(training, classes["cnn"], resampled))


def list_subsets(sources: Sequence[Source]) -> dict[str, Array]:
    """Return masks of all maps and of the subsets that are reported; empty subsets are left out."""
    parts, lenses = np.array([source.part for source in sources]), np.array([source.lens for source in sources])
    lengths = np.array([len(source.tokens) for source in sources])
    masks = {"all": np.ones(len(sources), dtype=bool)}
    masks |= {part: parts == part for part in ("random", "topped_up", "test")}
    masks |= {lens: lenses == lens for lens in dict.fromkeys(lenses.tolist())}
    models = np.array([source.model for source in sources])
    masks |= {model: models == model for model in dict.fromkeys(models.tolist())}
    masks |= {name: (low <= lengths) & (lengths <= high) for name, (low, high) in LENGTHS.items()}
    return {name: mask for name, mask in masks.items() if mask.any()}


def _by_subset(subsets: Mapping[str, Array], predictions: Predictions, resampled: Sequence[Array]) -> Variables:
    """Return confusion matrices and the metrics from them, by classifier and subset."""
    targets, classes = predictions.targets, predictions.classes
    confusion = np.zeros((len(classes), len(subsets), *SHAPE))
    interval = np.zeros((2, len(classes), len(subsets)))
    for (row, predicted), (column, mask) in product(enumerate(classes.values()), enumerate(subsets.values())):
        pair = targets[mask], predicted[mask], SHAPE
        confusion[row, column] = metrics.confusion_matrix(*pair)
        draws = (metrics.macro_f1(metrics.confusion_matrix(*pair, counts[:, mask])) for counts in resampled)
        interval[:, row, column] = metrics.widest_interval(draws)
    by_classifier, by_class = ("classifier", "subset"), ("classifier", "subset", "pattern")
    scores = dict(zip(("precision", "recall", "f1"), metrics.precision_recall_f1(confusion), strict=True))
    return {
        **with_interval("macro_f1", by_classifier, (metrics.macro_f1(confusion), *interval)),
        **{name: (by_class, values) for name, values in scores.items()},
        "maps": (("subset", "pattern"), confusion[0].sum(-1).astype(int)),
        "confusion": ((*by_class, "predicted"), confusion.astype(int)),
    }


def _calibration(predictions: Predictions) -> Variables:
    """Return the accuracy of the cnn and of the rules at each level of confidence."""
    confidence = [predictions.probabilities[name].max(-1) for name in CALIBRATED]
    right = [predictions.classes[name] == predictions.targets for name in CALIBRATED]
    curves = zip(*map(metrics.calibration_curve, confidence, right), strict=True)
    variables = {
        name: (("said_by", "bin"), np.stack(curve))
        for name, curve in zip(("confidence", "right", "in_bin"), curves, strict=True)
    }
    return variables | {"calibration_error": ("said_by", [*map(metrics.calibration_error, confidence, right)])}


def _gains(predictions: Predictions, resampled: Sequence[Array]) -> Variables:
    """Return the macro-F1 of the cnn minus that of each rival, on the same bootstrap draws."""

    def subtract(rival: str, counts: Array) -> Array:
        classes = predictions.classes["cnn"], predictions.classes[rival]
        pairs = (metrics.confusion_matrix(predictions.targets, predicted, SHAPE, counts) for predicted in classes)
        return np.asarray(np.subtract(*map(metrics.macro_f1, pairs)))

    gains = [float(subtract(rival, np.ones(len(predictions.targets)))) for rival in RIVALS]
    intervals = [metrics.widest_interval(subtract(rival, counts) for counts in resampled) for rival in RIVALS]
    return with_interval("gain", ("rival",), (gains, *map(list, zip(*intervals, strict=True))))


def _agreement(training: TrainingSet, predicted: Array, resampled: Sequence[Array]) -> xr.Dataset:
    """Return F1 and kappa between this pass and the next, and the F1 of predictions against each.

    All are over the maps labelled in both passes; `cnn_ratio` is the F1 of the predictions over that between the
    passes. `resampled` holds the counts of each map in bootstrap draws. Empty where there is only one pass.
    """
    passes = training.labelled.passes
    second = next((name for name in passes if name != training.name), None)
    shared = [index for index, source in enumerate(training.sources) if second and source.id in passes[second]]
    if second is None or not shared:
        return xr.Dataset()
    ids, names = [training.sources[index].id for index in shared], (training.name, second)
    ratings = [*([CLASSES.index(passes[name][map_id]) for map_id in ids] for name in names), predicted[shared]]
    estimates = _score_agreement(np.array(ratings), np.ones((1, len(shared))))
    draws = [_score_agreement(np.array(ratings), counts[:, shared]) for counts in resampled]
    variables: dict[str, Any] = {"passes_maps": len(shared)}
    for name, agreement in estimates.items():
        rows = zip(*(np.atleast_2d(draw[name]) for draw in draws), strict=True)
        low, high = np.array([metrics.widest_interval(row) for row in rows]).T
        dims = ("labels",) if agreement.ndim > 1 else ()
        ends = (agreement[..., 0], low, high)
        variables |= with_interval(name, dims, ends if dims else map(np.squeeze, ends))
    return xr.Dataset(variables, coords={"labels": np.array(names, dtype=object)})


def _score_agreement(ratings: Array, counts: Array) -> dict[str, Array]:
    """Return the agreement of two passes, and of the predictions with each, for each row of counts.

    `ratings` holds the classes in the first pass, in the second pass and of the predictions.
    """
    between, *against = (
        metrics.confusion_matrix(first, second, (len(CLASSES), len(CLASSES)), counts)
        for first, second in combinations(ratings, 2)
    )
    f1, cnn_f1 = metrics.macro_f1(between), np.stack([metrics.macro_f1(confusion) for confusion in against])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = cnn_f1 / f1
    return {"passes_f1": f1, "passes_kappa": metrics.cohen_kappa(between), "cnn_f1": cnn_f1, "cnn_ratio": ratio}


def format_evaluation(data: xr.Dataset) -> str:
    """Return an evaluation as text: scores, the classes of the cnn, its gains, calibration and agreement."""
    facts = read_provenance(data)
    lines = [
        f"{count_noun(data.sizes['map'], 'map')}, {facts['trainings']} trainings on at least "
        f"{facts['training_maps_least']} of them, each without {facts['dropped_maps_mean']:.0f} that share a head or a "
        "text with the test maps",
        "",
    ]
    lines += [
        f"macro-F1 {name:>9} {_interval(data, 'macro_f1', classifier=name, subset='all')}"
        for name in data["classifier"].values
    ]
    lines += [f"cnn − {name:>12} {_interval(data, 'gain', rival=name)}" for name in data["rival"].values]
    lines.append("")
    for label in CLASSES:
        row = data.sel(classifier="cnn", subset="all", pattern=label)
        scores = ", ".join(f"{name} {float(row[name]):.2f}" for name in ("precision", "recall", "f1"))
        lines.append(f"{NAMES[label]:>19} {scores}, {count_noun(int(row['maps']), 'map')}")
    lines += ["", f"calibration error of the cnn {float(data['calibration_error'].sel(said_by='cnn')):.3f}"]
    if "passes_f1" in data:
        lines.append(f"between passes: F1 {_interval(data, 'passes_f1')}, kappa {_interval(data, 'passes_kappa')}")
        lines += [
            f"cnn against '{name}': F1 {_interval(data, 'cnn_f1', labels=name)}, "
            f"ratio {_interval(data, 'cnn_ratio', labels=name)}"
            for name in data["labels"].values
        ]
    return "\n".join(lines)


def _interval(data: xr.Dataset, name: str, **at: str) -> str:
    value, low, high = map(float, estimate(data, name).sel(**at).ends)
    return f"{value:.3f} ({low:.3f} to {high:.3f})"

"""What an evaluation says, in a few lines of text."""

import xarray as xr

from headscope.patterns.classes import CLASSES, NAMES
from headscope.results.stamp import read_provenance


def summary(data: xr.Dataset) -> str:
    """Macro-F1 of every classifier, classes of the cnn, what it gains on its rivals, and what two passes reach."""
    facts = read_provenance(data)
    lines = [
        f"{data.sizes['map']} maps, {facts['trainings']} trainings on at least {facts['training_maps_least']} of them, "
        f"each without {facts['dropped_maps_mean']:.0f} that share a head or a text with the tested ones",
        "",
    ]
    lines += [
        f"macro-F1 {name:>9} {_interval(data, 'macro_f1', classifier=name, subset='all')}" for name in _known(data)
    ]
    lines += [f"cnn − {name:>12} {_interval(data, 'gain', rival=name)}" for name in data["rival"].values]
    lines += ["", *(_of_class(data, each) for each in CLASSES)]
    error = float(data["calibration_error"].sel(said_by="cnn"))
    lines += ["", f"calibration error of the cnn {error:.3f}"]
    if "passes_f1" in data:
        lines.append(f"between passes: F1 {_interval(data, 'passes_f1')}, kappa {_interval(data, 'passes_kappa')}")
        lines += [
            f"cnn against '{each}': F1 {_interval(data, 'cnn_f1', labels=each)}, "
            f"ratio {_interval(data, 'cnn_ratio', labels=each)}"
            for each in data["labels"].values
        ]
    return "\n".join(lines)


def _known(data: xr.Dataset) -> list[str]:
    return [str(each) for each in data["classifier"].values]


def _interval(data: xr.Dataset, name: str, **at: str) -> str:
    value, low, high = (float(data[f"{name}{ending}"].sel(at)) for ending in ("", "_low", "_high"))
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def _of_class(data: xr.Dataset, label: str) -> str:
    one = data.sel(classifier="cnn", subset="all", pattern=label)
    scores = ", ".join(f"{name} {float(one[name]):.2f}" for name in ("precision", "recall", "f1"))
    return f"{NAMES[label]:>19} {scores}, {int(one['maps'])} maps"

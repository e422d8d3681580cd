"""Figures and tables of the pages on patterns, from the labelled maps and from committed results."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import join_words
from headscope.patterns import CLASSES, LETTERS, NAMES
from headscope.patterns.labels.labelled_maps import read_labelled_maps
from headscope.patterns.labels.render import draw_map
from headscope.patterns.labels.typical import select_typical
from headscope.plotting import theme
from headscope.plotting.draw import draw
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result

RESULTS = Path(__file__).parent / "results"
TASKS = {"rte": "RTE", "sst2": "SST-2"}


@cache
def _evaluation() -> xr.Dataset:
    return open_result(RESULTS / "patterns.nc")


@cache
def _shares() -> xr.Dataset:
    return open_result(RESULTS / "pattern_shares.nc")


@theme.apply()
def guide_picture() -> Figure:
    """Draw the examples of the guide: two maps of each class, none of them part of the labelled set."""
    maps, labels = read_labelled_maps(RESULTS / "labelling").select("guide")
    page = Figure(figsize=(11, 4.9), layout="constrained")
    axes = page.subplots(2, len(NAMES))
    for column, name in enumerate(NAMES):
        examples = [item for item, label in zip(maps, labels, strict=True) if label == name]
        for item, ax in zip(examples, axes[:, column], strict=True):
            draw_map(item, ax)
            ax.set_box_aspect(1)
        axes[0, column].set_title(NAMES[name])
    return page


def page() -> bytes:
    """Return the page on patterns with its tables."""
    text = (Path(__file__).parent / "patterns.md").read_text(encoding="utf-8")
    for name, table in (("labels", labels_table()), ("evaluation", evaluation_table()), ("shares", shares_table())):
        before, rest = text.split(f"<!-- {name} -->\n")
        text = f"{before}<!-- {name} -->\n{table}<!-- /{name} -->{rest.split(f'<!-- /{name} -->')[1]}"
    return text.encode()


def pictures() -> dict[str, Figure]:
    """Return every figure by the name of its file."""
    layers = _shares().sel(run="rte tuned e5-small")
    title = "e5-small fine-tuned on RTE, dev set"
    return {
        "labelling.svg": guide_picture(),
        "patterns-typical.svg": draw(select_typical(read_labelled_maps(), _evaluation(), count=2), "typical_maps"),
        "patterns-confusion.svg": draw(_evaluation(), "confusion"),
        "patterns-layers.svg": draw(layers, "stacked_bars", variable="patterns_layer_share", title=title),
    }


def labels_table() -> str:
    """Return the number of maps of each class, and the agreement between the passes."""
    labelled, data = read_labelled_maps(), _evaluation()
    sources = [item.source for item in labelled.maps]
    sampled = {source.id for source in sources if source.part == "random"}
    rows = []
    for name, labels in labelled.passes.items():
        rows.append(_counts(f"{name} pass, random part", [labels[map_id] for map_id in labels if map_id in sampled]))
        rows.append(_counts(f"{name} pass, all", list(labels.values())))
    lengths = [len(source.tokens) for source in sources]
    lenses = Counter(source.lens for source in sources)
    text = (
        f"{len(sources):,} maps of {len({source.head_group for source in sources})} heads of "
        f"{len({source.model for source in sources})} models, pretrained and fine-tuned on MRPC, RTE and SST-2, over "
        f"{len({source.text_group for source in sources})} texts and pairs of GAP,\nARCT, Winogender and EWT, "
        f"{min(lengths)} to {max(lengths)} tokens long; {lenses['raw']} raw and {lenses['effective']} effective; "
        f"{len(sampled):,} sampled at random. Both passes\nlabelled all of them. Between the passes: Cohen's kappa "
        f"{_interval(data, 'passes_kappa')}, macro-F1 {_interval(data, 'passes_f1')}.\n"
    )
    return f"{_table(['', *NAMES.values(), 'all'], rows)}\n{text}"


def evaluation_table() -> str:
    """Return the scores of every classifier, of every class and of the subsets."""
    data, facts = _evaluation(), read_provenance(_evaluation())
    subsets = [str(name) for name in data["subset"].values if name != "topped_up"]
    by_subset = [
        [f"`{name}`", *(_interval(data.sel(classifier=name, subset=subset), "macro_f1") for subset in subsets)]
        for name in ("cnn", "rules", "both", "nearest", "majority")
    ]
    by_class = []
    for name in CLASSES:
        row = data.sel(classifier="cnn", subset="all", pattern=name)
        scores = [f"{float(row[score]):.2f}" for score in ("precision", "recall", "f1")]
        by_class.append([NAMES[name], *scores, str(int(row["maps"]))])
    gains = [f"`{name}` by {_interval(data.sel(rival=name), 'gain')}" for name in ("rules", "nearest")]
    ratios = [f"{_interval(data.sel(labels=name), 'cnn_ratio')} for the {name}" for name in data["labels"].values]
    calibration_error = float(data["calibration_error"].sel(said_by="cnn"))
    text = (
        f"`cnn` is ahead of {join_words(gains)}. Its F1, relative to the F1\nbetween the passes, is "
        f"{join_words(ratios)} pass.\nIts expected calibration error is {calibration_error:.3f}.\n"
        f"{facts['labelled_maps']:,} maps, {facts['trainings']} trainings on at least {facts['training_maps_least']} "
        f"maps each; labels {facts['labels_hash']}, seed {facts['seed']}.\n"
    )
    tables = _table(["macro-F1", *subsets], by_subset), _table(["`cnn`", "precision", "recall", "F1", "maps"], by_class)
    return "\n".join([*tables, text])


def shares_table() -> str:
    """Return the shares of every class on two dev sets, before and after fine-tuning."""
    data = _shares()
    data = data.isel(site=0) if "site" in data.dims else data
    rows = []
    for task, title in TASKS.items():
        runs = data.isel(run=(data["task"] == task).values)
        rows += [
            _share_row(title, runs.sel(run=run, lens=lens))
            for run in runs["run"].values
            for lens in data["lens"].values
        ]
    table = _table(["task", "model", "", "lens", *LETTERS.values(), "n"], rows)
    command = read_provenance(data)["command"]
    return f"{table}\nPer cent of all maps, with 95 % intervals; n examples. Made by {command}.\n"


def _share_row(title: str, data: xr.Dataset) -> list[str]:
    state = {"base": "pretrained", "tuned": "fine-tuned"}[str(data["tuned"].values)]
    shares = [_interval(100 * data.sel(pattern=name), "patterns_share", digits=0) for name in CLASSES]
    return [
        title,
        str(data["model"].values),
        state,
        str(data["lens"].values),
        *shares,
        str(int(data["patterns_n"].max())),
    ]


def _counts(title: str, labels: Sequence[str]) -> list[str]:
    count = Counter(labels)
    return [title, *(str(count[name]) for name in CLASSES), f"{len(labels):,}"]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]]) + "\n"


def _interval(data: xr.Dataset, name: str, digits: int = 2) -> str:
    value, low, high = (float(data[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"

"""Figures and tables of the pages on patterns, from the labelled maps and from committed results."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import fisher_exact

from headscope.core.prose import join_words
from headscope.patterns import CLASSES, LETTERS, NAMES
from headscope.patterns.labels.labelled_maps import LabelledMaps, read_labelled_maps
from headscope.patterns.labels.render import draw_map
from headscope.patterns.labels.typical import select_typical
from headscope.patterns.shares import read_errors
from headscope.patterns.train.metrics import cohen_kappa, confusion_matrix
from headscope.plotting import theme
from headscope.plotting.draw import draw
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result
from headscope.studies.effective_attention import paper

RESULTS = Path(__file__).parent / "results"
TASKS = {"mrpc": "MRPC", "rte": "RTE", "sst2": "SST-2", "qnli": "QNLI", "stsb": "STS-B"}
PARTS = {"random": "random", "topped_up": "selected for rare classes", "test": "second sample"}
KOVALEVA_F1 = 0.86  # of the network of Kovaleva et al. (2019), §4.1


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
    for name, table in TABLES.items():
        before, rest = text.split(f"<!-- {name} -->\n")
        text = f"{before}<!-- {name} -->\n{table()}<!-- /{name} -->{rest.split(f'<!-- /{name} -->')[1]}"
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
    """Return the number of maps of each class in every part, and the agreement between the passes."""
    labelled, data = read_labelled_maps(), _evaluation()
    sources = [item.source for item in labelled.maps]
    rows = []
    for (name, labels), (part, title) in product(labelled.passes.items(), PARTS.items()):
        if chosen := [labels[source.id] for source in sources if source.part == part]:
            rows.append(_counts(f"{name} pass, {title}", chosen))
    rows += [_counts(f"{name} pass, all", list(labels.values())) for name, labels in labelled.passes.items()]
    lengths = [len(source.tokens) for source in sources]
    tuned = [TASKS[task] for task in dict.fromkeys(source.tuned for source in sources) if task]
    lenses = Counter(source.lens for source in sources)
    text = (
        f"{len(sources):,} maps of {len({source.head_group for source in sources})} heads of "
        f"{join_words(dict.fromkeys(source.model for source in sources))}, pretrained and fine-tuned on\n"
        f"{join_words(tuned)}, over {len({source.text_group for source in sources})} texts and pairs of GAP, ARCT, "
        f"Winogender and EWT, {min(lengths)} to {max(lengths)} tokens long;\n"
        f"{join_words(f'{count} `{lens}`' for lens, count in lenses.items())}. Both passes labelled all of them.\n"
        f"The passes agree with Cohen's kappa {_interval(data, 'passes_kappa')} and macro-F1 "
        f"{_interval(data, 'passes_f1')}{_agreement_by_part(labelled)}.\n"
    )
    return f"{_table(['', *NAMES.values(), 'all'], rows)}\n{text}"


def _agreement_by_part(labelled: LabelledMaps) -> str:
    """Return kappa within each part, where there are several."""
    kappas = []
    for part, title in PARTS.items():
        ids = [item.source.id for item in labelled.maps if item.source.part == part]
        first, second = (np.array([CLASSES.index(labels[i]) for i in ids]) for labels in labelled.passes.values())
        if ids:
            kappa = cohen_kappa(confusion_matrix(first, second, (len(CLASSES),) * 2))
            kappas.append(f"{float(kappa):.2f} in the part {title}")
    return f"; kappa is {join_words(kappas)}" if len(kappas) > 1 else ""


def evaluation_table() -> str:
    """Return the scores of every classifier, of every class and of the subsets."""
    data, facts = _evaluation(), read_provenance(_evaluation())
    names = ("cnn", "rules", "both", "nearest", "majority")
    by_subset = []
    for subset in map(str, data["subset"].values):
        row = data.sel(subset=subset)
        scores = (_interval(row.sel(classifier=name), "macro_f1") for name in names)
        by_subset.append([PARTS.get(subset, subset), *scores, f"{int(row['maps'].sum()):,}"])
    by_class = []
    for name in CLASSES:
        row = data.sel(classifier="cnn", subset="all", pattern=name)
        scores = [f"{float(row[score]):.2f}" for score in ("precision", "recall", "f1")]
        by_class.append([NAMES[name], *scores, str(int(row["maps"]))])
    gains = [f"`{name}` by {_interval(data.sel(rival=name), 'gain')}" for name in ("rules", "nearest")]
    against = [f"{_interval(data.sel(labels=name), 'cnn_f1')} against the {name}" for name in data["labels"].values]
    calibration_error = float(data["calibration_error"].sel(said_by="cnn"))
    text = (
        f"`cnn` is ahead of {join_words(gains)}. Its macro-F1 is\n{join_words(against)} pass. Kovaleva et al. (2019) "
        f"report an F1 of {KOVALEVA_F1:.2f} for their network, on about 400 maps\nof their own, which are not "
        f"public: the two numbers are of different maps. The expected calibration error is {calibration_error:.3f}.\n"
        f"{facts['labelled_maps']:,} maps, {facts['trainings']} trainings on at least {facts['training_maps_least']} "
        f"maps each; labels {facts['labels_hash']}, seed {facts['seed']}.\n"
    )
    header = ["macro-F1", *(f"`{name}`" for name in names), "maps"]
    tables = _table(header, by_subset), _table(["`cnn`", "precision", "recall", "F1", "maps"], by_class)
    return "\n".join([*tables, text])


def errors_table() -> str:
    """Return the errors of the cnn by lens, and whether raw and effective maps have the same."""
    errors = read_errors("cnn")
    rows = []
    for lens in dict.fromkeys(errors.lens.tolist()):
        table = errors.count(lens).astype(int)
        cells = (f"{row[at] / row.sum():.2f} of {row.sum()}" if row.sum() else "none" for at, row in enumerate(table))
        rows.append([f"`{lens}`", *cells, f"{table.sum():,}"])
    at = CLASSES.index("heterogeneous")
    pair = [errors.count(lens)[at] for lens in ("raw", "effective")]
    recall = [row[at] / row.sum() for row in pair]
    test = fisher_exact([[row[at], row.sum() - row[at]] for row in pair])
    text = (
        f"The share of each class that the network finds, of the maps of that class. One table for all lenses would be "
        f"wrong: it finds\n{recall[0]:.2f} of heterogeneous raw maps and {recall[1]:.2f} of effective ones (Fisher's "
        f"exact test, p = {test.pvalue:.1g}).\n"
    )
    return f"{_table(['`cnn`', *NAMES.values(), 'maps'], rows)}\n{text}"


def shares_table() -> str:
    """Return the shares of every class on two dev sets, before and after fine-tuning."""
    data = _shares()
    data = data.isel(site=0) if "site" in data.dims else data
    rows = []
    for task, title in ((task, title) for task, title in TASKS.items() if (data["task"] == task).any()):
        runs = data.isel(run=(data["task"] == task).values)
        rows += [
            _share_row(title, runs.sel(run=run, lens=lens))
            for run in runs["run"].values
            for lens in data["lens"].values
        ]
    table = _table(["task", "model", "", "lens", *LETTERS.values(), "n"], rows)
    command = read_provenance(data)["command"]
    text = (
        "Per cent of all maps: corrected, its 95 % interval, and in parentheses the uncorrected share; n examples. "
        f"Made by\n{command}.\n"
    )
    return f"{_describe_gap(data)}\n{table}\n{text}"


def _describe_gap(data: xr.Dataset) -> str:
    """Return how far the raw shares of tuned models are from those that Sun & Marasović print for BERT-base."""
    ours, theirs, gaps = [], [], []
    for task, title in ((task, title) for task, title in TASKS.items() if (data["task"] == task).any()):
        tuned = data.isel(run=((data["task"] == task) & (data["tuned"] == "tuned")).values).sel(lens="raw")
        printed = dict(zip(paper.LETTERS, paper.SHARES[title][0], strict=True))
        shares = 100 * tuned["patterns_share"].transpose("run", "pattern").values
        gaps += abs(shares - np.array([printed[name] for name in CLASSES])).max(1).tolist()
        ours += shares[:, CLASSES.index("heterogeneous")].tolist()
        theirs.append(printed["heterogeneous"])
    return (
        "**Before any projection, raw attention differs from the published shares.** In these models, fine-tuned, the "
        "class that differs\nmost is "
        f"{min(gaps):.0f} to {max(gaps):.0f} points away from what Sun & Marasović (2021) print for raw attention of "
        f"BERT-base; {min(ours):.0f} to {max(ours):.0f} % of maps\nare heterogeneous, in theirs {min(theirs):.0f} to "
        f"{max(theirs):.0f} %. Other models, other labels and another classifier: only changes between attentions can "
        "be compared.\n"
    )


def _share_row(title: str, data: xr.Dataset) -> list[str]:
    state = {"base": "pretrained", "tuned": "fine-tuned"}[str(data["tuned"].values)]
    counted = 100 * data["patterns"].mean(("layer", "head"))
    corrected = (_interval(100 * data.sel(pattern=name), "patterns_share", digits=0) for name in CLASSES)
    shares = [f"{text} ({float(counted.sel(pattern=name)):.0f})" for name, text in zip(CLASSES, corrected, strict=True)]
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


TABLES = {"labels": labels_table, "evaluation": evaluation_table, "errors": errors_table, "shares": shares_table}

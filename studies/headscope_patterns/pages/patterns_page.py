"""Figures and tables of the pages on patterns, from the labelled maps and from committed results."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import fisher_exact

from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.patterns import CLASSES, LETTERS, NAMES
from headscope.patterns.classify.cnn import BUNDLED, read_cnn
from headscope.patterns.shares import Errors, draw_rates, estimate_shares, read_errors
from headscope.plotting import theme
from headscope.plotting.draw import draw
from headscope.results.store import open_result
from headscope_patterns.labels.labelled_maps import LabelledMaps, read_labelled_maps
from headscope_patterns.labels.render import draw_map
from headscope_patterns.labels.typical import select_typical
from headscope_patterns.train.evaluation import list_subsets
from headscope_patterns.train.metrics import cohen_kappa, confusion_matrix, macro_f1
from headscope_patterns.train.training_set import normalized_batches, select_training_set
from headscope_studies.effective_attention import paper

RESULTS = Path(__file__).parents[1] / "results"
DOCS = Path(__file__).parents[3] / "docs"
TASKS = {"mrpc": "MRPC", "rte": "RTE", "sst2": "SST-2", "qnli": "QNLI", "stsb": "STS-B"}
PARTS = {"random": "random", "topped_up": "selected for rare classes", "test": "second sample"}
LENSES = ("raw", "effective", "effective:keys=padded", "effective:keys=paper")
NEW = ("under 20 tokens", "all-mpnet-base-v2")  # subsets of the second sample alone
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
    text = DOCS.joinpath("patterns.md").read_text(encoding="utf-8")
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
        f"{_interval(data, 'passes_f1')}.\n"
    )
    return f"{_table(['', *NAMES.values(), 'all'], rows)}\n{text}\n{_agreement_table(labelled)}"


def _agreement_table(labelled: LabelledMaps) -> str:
    """Return how far the two passes agree, by part, lens, model and length."""
    names = [item.source.id for item in labelled.maps]
    first, second = (np.array([CLASSES.index(labels[name]) for name in names]) for labels in labelled.passes.values())
    rows = []
    for subset, mask in list_subsets([item.source for item in labelled.maps]).items():
        kappa = cohen_kappa(confusion_matrix(first[mask], second[mask], (len(CLASSES),) * 2))
        same = (first == second)[mask].mean()
        rows.append([_name_subset(subset), f"{mask.sum():,}", f"{100 * same:.0f} %", f"{float(kappa):.2f}"])
    return _table(["", "maps", "same label in both passes", "Cohen's kappa"], rows)


def _name_subset(name: str) -> str:
    return PARTS.get(name, f"`{name}`" if name in LENSES else name)


def evaluation_table() -> str:
    """Return the scores of every classifier, of every class and of the subsets."""
    data, facts = _evaluation(), read_provenance(_evaluation())
    names = ("cnn", "rules", "both", "nearest", "majority")
    by_subset = []
    for subset in map(str, data["subset"].values):
        row = data.sel(subset=subset)
        scores = (_interval(row.sel(classifier=name), "macro_f1") for name in names)
        by_subset.append([_name_subset(subset), *scores, f"{int(row['maps'].sum()):,}"])
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
        f"maps each; labels {facts['labels_hash']}, seed {facts['seed']}.\n\n{_test_bundled()}"
    )
    header = ["macro-F1", *(f"`{name}`" for name in names), "maps"]
    tables = _table(header, by_subset), _table(["`cnn`", "precision", "recall", "F1", "maps"], by_class)
    return "\n".join([*tables, text])


def _test_bundled() -> str:
    """Return how the bundled networks do on the second sample, of which they know most heads but no map."""
    training = select_training_set(read_labelled_maps())
    chosen = np.flatnonzero([source.part == "test" for source in training.sources])
    maps, cnn = [training.training_maps[index] for index in chosen], read_cnn(BUNDLED, torch.device("cpu"))
    predicted = torch.cat([cnn.logits(batch) for batch in normalized_batches(maps)]).argmax(-1).numpy()
    table = confusion_matrix(np.array([item.target for item in maps]), predicted, (len(CLASSES),) * 2)
    tested = _evaluation().sel(classifier="cnn", subset="test")
    return (
        "The bundled networks were trained on no map of the second sample, but on other maps of most of its heads. "
        f"Their macro-F1 on it is\n{float(macro_f1(table)):.2f}; that of the networks above, without these heads, is "
        f"{float(tested['macro_f1']):.2f}. Shares are corrected by the errors of the latter, for every\nlens alike.\n"
    )


def errors_table() -> str:
    """Return the errors of the cnn by lens, for short texts and a third model, and whether lenses have the same."""
    errors, data = read_errors("cnn"), _evaluation().sel(classifier="cnn")
    tables = {f"`{lens}`": errors.count(lens) for lens in dict.fromkeys(errors.lens.tolist())}
    tables |= {name: data["confusion"].sel(subset=name).values[:, : len(CLASSES)] for name in NEW}
    rows = []
    for name, table in tables.items():
        cells = (_find_class(table.astype(int), at) for at in range(len(CLASSES)))
        rows.append([name, *cells, f"{int(table.sum()):,}"])
    return f"{_table(['`cnn`', *NAMES.values(), 'maps'], rows)}\n{_compare_lenses(errors)}"


def _find_class(table: np.ndarray, at: int) -> str:
    """Return recall, precision and the number of maps of one class."""
    right, labelled, predicted = table[at, at], table[at].sum(), table[:, at].sum()
    recall, precision = (f"{right / total:.2f}" if total else "–" for total in (labelled, predicted))
    return f"{recall} / {precision} ({labelled})"


def _compare_lenses(errors: Errors) -> str:
    """Return in words whether the lenses have the same recall of heterogeneous maps."""
    at = CLASSES.index("heterogeneous")
    found = {lens: errors.count(lens)[at] for lens in LENSES}
    recall = {lens: row[at] / row.sum() for lens, row in found.items()}

    def test(first: str, second: str) -> float:
        return float(fisher_exact([[row[at], row.sum() - row[at]] for row in (found[first], found[second])]).pvalue)

    others = [f"{recall[lens]:.2f} of `{lens}` (p = {test('effective', lens):.1g})" for lens in LENSES[2:]]
    return (
        "Recall / precision, and in parentheses the maps of the class, without those selected for rare classes. One "
        f"table for all lenses\nwould be wrong: the network finds {recall['raw']:.2f} of heterogeneous raw maps and "
        f"{recall['effective']:.2f} of effective ones (Fisher's exact test,\np = {test('raw', 'effective'):.1g}). "
        f"Against the latter, it finds {join_words(others)}.\n{_swap_errors(errors)}"
    )


def _swap_errors(errors: Errors) -> str:
    """Return in words what the errors of effective maps would make of the labelled maps over padding."""
    rates, at = draw_rates(errors, ("effective",), np.random.default_rng(0))[0], CLASSES.index("block")
    shares = []
    for lens in LENSES[2:]:
        table = errors.count(lens) / errors.count(lens).sum()
        swapped = estimate_shares(table.sum(0)[None, :, None], rates[..., None])[0, at, 0]
        shares.append(f"{100 * swapped:.0f} % of those of `{lens}` ({100 * table[at].sum():.0f} % are)")
    return f"By the errors of `effective`, of the labelled maps\n{join_words(shares)} would be block.\n"


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
    text = (
        "Per cent of all maps: corrected, its 95 % interval, and in parentheses the uncorrected share; n examples. "
        "Made by\nstudies/headscope_patterns/runs/shares.py over the dev sets of GLUE.\n"
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

"""What the pages on patterns show: pictures and tables from the labelled maps and from committed results."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from headscope.patterns.classes import CLASSES, LETTERS, NAMES
from headscope.patterns.labels.labelled import open_labelled
from headscope.patterns.labels.sheet import draw_map
from headscope.patterns.labels.typical import typical
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
    """The examples of the guide: two maps of each class, none of them part of the labelled set."""
    maps, labels = open_labelled(RESULTS / "labelling").chosen("guide")
    page = Figure(figsize=(11, 4.9), layout="constrained")
    axes = page.subplots(2, len(NAMES))
    for place, name in enumerate(NAMES):
        chosen = [each for each, label in zip(maps, labels, strict=True) if label == name]
        for each, ax in zip(chosen, axes[:, place], strict=True):
            draw_map(each, ax)
            ax.set_box_aspect(1)
        axes[0, place].set_title(NAMES[name])
    return page


def page() -> bytes:
    """The page on patterns, with its tables."""
    text = (Path(__file__).parent / "patterns.md").read_text(encoding="utf-8")
    for name, table in (("labels", labels_table()), ("evaluation", evaluation_table()), ("shares", shares_table())):
        before, rest = text.split(f"<!-- {name} -->\n")
        text = f"{before}<!-- {name} -->\n{table}<!-- /{name} -->{rest.split(f'<!-- /{name} -->')[1]}"
    return text.encode()


def pictures() -> dict[str, Figure]:
    """Every picture by the name of its file."""
    layers = _shares().sel(run="rte tuned e5-small")
    title = "e5-small fine-tuned on RTE, dev set"
    return {
        "labelling.svg": guide_picture(),
        "patterns-typical.svg": draw(typical(open_labelled(), _evaluation(), many=2), "typical_maps"),
        "patterns-confusion.svg": draw(_evaluation(), "confusion"),
        "patterns-layers.svg": draw(layers, "stacked_bars", variable="patterns_layer_share", title=title),
    }


def labels_table() -> str:
    """How many maps of what, and how far the passes agree."""
    held, data = open_labelled(), _evaluation()
    sources = [each.source for each in held.maps]
    chosen = {each.id for each in sources if each.part == "random"}
    lines = [f"| | {' | '.join(NAMES[each] for each in CLASSES)} | all |", "|---" * (len(CLASSES) + 2) + "|"]
    for name, given in held.passes.items():
        lines.append(_counts(f"{name} pass, random part", [label for each, label in given.items() if each in chosen]))
        lines.append(_counts(f"{name} pass, all", list(given.values())))
    texts = {f"{each.data} {each.text}" for each in sources}
    lengths = [len(each.tokens) for each in sources]
    lenses = Counter(each.lens for each in sources)
    said = (
        f"{len(sources):,} maps of {len({each.group for each in sources})} heads of "
        f"{len({each.model for each in sources})} models, pretrained and fine-tuned on MRPC, RTE and SST-2, over "
        f"{len(texts)} texts and pairs of GAP,\nARCT, Winogender and EWT, {min(lengths)} to {max(lengths)} tokens "
        f"long; {lenses['raw']} raw and {lenses['effective']} effective; {len(chosen):,} drawn at random. Both passes\n"
        f"labelled all of them. Between the passes: Cohen's kappa {_with_ends(data, 'passes_kappa')}, macro-F1 "
        f"{_with_ends(data, 'passes_f1')}.\n"
    )
    return "\n".join(lines) + f"\n\n{said}"


def evaluation_table() -> str:
    """Every classifier, every class, and the parts of the set."""
    data, facts = _evaluation(), read_provenance(_evaluation())
    subsets = [str(each) for each in data["subset"].values if each != "topped_up"]
    lines = [f"| macro-F1 | {' | '.join(subsets)} |", "|---" * (len(subsets) + 1) + "|"]
    for name in ("cnn", "rules", "both", "nearest", "majority"):
        one = data.sel(classifier=name)
        lines.append(f"| `{name}` | {' | '.join(_with_ends(one.sel(subset=each), 'macro_f1') for each in subsets)} |")
    lines += ["", "| `cnn` | precision | recall | F1 | maps |", "|---|---|---|---|---|"]
    own = data.sel(classifier="cnn")
    own = own.sel(subset="all") if "subset" in own["f1"].dims else own
    for name in CLASSES:
        row = own.sel(pattern=name)
        numbers = " | ".join(f"{float(row[each]):.2f}" for each in ("precision", "recall", "f1"))
        lines.append(f"| {NAMES[name]} | {numbers} | {int(row['maps'])} |")
    gains = ", ".join(f"`{name}` {_with_ends(data.sel(rival=name), 'gain')}" for name in ("rules", "nearest"))
    ratios = " and ".join(
        f"{_with_ends(data.sel(labels=name), 'cnn_ratio')} for the {name}" for name in map(str, data["labels"].values)
    )
    said = (
        f"`cnn` is ahead of {gains}. Its F1 is {ratios} pass,\nas a part of the F1 between the passes, which is the "
        f"ceiling. Its confidence is off by {float(data['calibration_error'].sel(said_by='cnn')):.3f} in the mean "
        f"(expected calibration error).\n{facts['labelled_maps']:,} maps, {facts['trainings']} trainings on at least "
        f"{facts['training_maps_least']} maps each; labels {facts['labels_hash']}, seed {facts['seed']}.\n"
    )
    return "\n".join(lines) + f"\n\n{said}"


def shares_table() -> str:
    """The shares of every class on two dev sets, before and after fine-tuning."""
    data = _shares()
    data = data.isel(site=0) if "site" in data.dims else data
    lines = [
        f"| task | model | | lens | {' | '.join(LETTERS[each] for each in CLASSES)} | n |",
        "|---" * (len(CLASSES) + 5) + "|",
    ]
    for task, title in TASKS.items():
        for run in data["run"].values:
            one = data.sel(run=run)
            if str(one["task"].values) == task:
                lines += _share_lines(title, one)
    facts = read_provenance(data)
    return (
        "\n".join(lines) + f"\n\nPer cent of all maps, with 95 % intervals; n examples. Made by {facts['command']}.\n"
    )


def _share_lines(title: str, one: xr.Dataset) -> list[str]:
    state = {"base": "pretrained", "tuned": "fine-tuned"}[str(one["tuned"].values)]
    lines = []
    for lens in one["lens"].values:
        seen = one.sel(lens=lens)
        n = int(seen["patterns_n"].max())
        cells = []
        for name in CLASSES:
            value, low, high = (
                100 * float(seen[f"patterns_share{end}"].sel(pattern=name)) for end in ("", "_low", "_high")
            )
            cells.append(f"{value:.0f} [{low:.0f}, {high:.0f}]")
        lines.append(f"| {title} | {one['model'].values} | {state} | {lens} | {' | '.join(cells)} | {n} |")
    return lines


def _counts(title: str, labels: Sequence[str]) -> str:
    count = Counter(labels)
    return f"| {title} | {' | '.join(str(count[each]) for each in CLASSES)} | {len(labels):,} |"


def _with_ends(data: xr.Dataset, name: str) -> str:
    value, low, high = (float(data[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"

"""Fill in docs/coreference.md from results/coreference_*.nc."""

from functools import cache
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import format_signed, join_words
from headscope.core.provenance import read_provenance
from headscope.experiments.pages.generate import Generated, fill_page, write_pictures
from headscope.plotting.draw import draw
from headscope.results.store import open_result
from headscope_studies.what_heads_look_at.pages.facts import RESULTS
from headscope_studies.what_heads_look_at.paper import table_of_coreference

MODELS = ("all-MiniLM-L6-v2", "e5-small")
KINDS = {
    "all": "all",
    "pronoun": "pronoun",
    "proper": "proper noun",
    "nominal": "nominal",
    "different_word": "different word",
}
BASELINES = {"rules": "rules", "head_match": "same head word", "nearest": "nearest mention", "chance": "chance"}
SHOWN = {"one_head": "one head", "head": "best head of each kind", "random_weights": "best head, random weights"}
PAPER = {"head": "one head of BERT-base", **{name: BASELINES[name] for name in ("rules", "head_match", "nearest")}}
"""Titles of the rows of Table 2 of Clark et al. (2019), on CoNLL-2012."""


@cache
def open_results() -> dict[str, xr.Dataset]:
    """Return the results of the models that were probed, by model."""
    paths = {name: RESULTS / f"coreference_{name}.nc" for name in MODELS}
    return {name: open_result(path) for name, path in paths.items() if path.is_file()}


def read_results() -> dict[str, xr.Dataset]:
    """Return the results by model, without the axis of tasks, of which there is one."""
    return {name: data.isel(task=0) for name, data in open_results().items()}


def pictures() -> dict[str, Figure]:
    """Return the accuracies on GUM of each model."""
    return {
        f"coreference_{name}.svg": draw(data.sel(data="GUM", lens="raw"), "accuracies", title=f"{name} on GUM")
        for name, data in open_results().items()
    }


def write_page(docs: Path) -> Generated:
    """Yield the page on coreference, filled in, with its pictures."""
    yield from write_pictures(pictures())
    yield from fill_page(docs / "coreference.md", parts())


def parts() -> dict[str, str]:
    """Return the text between each of the marks of the page."""
    return {part.__name__: part() for part in (provenance, summary, figures, accuracies, gains, lenses)}


def summary() -> str:
    """Return what one head finds on each data set, beside the baselines."""
    return "\n".join(_summarise(name, data.sel(lens="raw")) for name, data in read_results().items()) + "\n"


def _summarise(name: str, data: xr.Dataset) -> str:
    gum = data.sel(data="GUM")
    sentences = [
        f"**{name}**: on GUM, {_head(gum, 'all')} is right for {_percent(gum, 'head', 'all')} of the mentions: "
        f"{_compare(gum, 'all')}",
        f"Where no antecedent has the same head word, it is right for {_percent(gum, 'one_head', 'different_word')}, "
        f"and the best head for these, {_head(gum, 'different_word')}, for {_percent(gum, 'head', 'different_word')} "
        f"(chance {_percent(gum, 'chance', 'different_word')}): {_compare(gum, 'different_word')}",
    ]
    for source in ("GAP", "Winogender"):
        part = data.sel(data=source)
        sentences.append(
            f"On {source}, {_head(part, 'all')} is right for {_percent(part, 'head', 'all')} of the pronouns: "
            f"{_compare(part, 'all', ('nearest',))}"
        )
    return f"- {'. '.join(sentences)}."


def figures() -> str:
    """Return the pictures of the models that were probed."""
    lines = [f"![Accuracies of heads of {name} on GUM](pictures/coreference_{name}.svg)" for name in open_results()]
    return "\n\n".join(lines) + "\n"


def accuracies() -> str:
    """Return a table of accuracies by kind for each form of GUM, and one of the data with pronouns alone."""
    results = read_results()
    names = list(results[MODELS[0]]["data"].values)
    pronouns = [name for name in names if not _count(results[MODELS[0]].sel(data=name), "nominal")]
    tables = [_kinds_table(name, results) for name in names if name not in pronouns]
    return "\n".join([*tables, _pronouns_table(pronouns, results)])


def gains() -> str:
    """Return the gain of the chosen head over each baseline, and the number of better heads."""
    lines = ["| model | data | " + " | ".join(f"over {BASELINES[name]}" for name in ("nearest", "head_match", "rules"))]
    lines[0] += " | heads above: nearest, same head word, rules |"
    lines.append("|---|---|---|---|---|---|")
    for name, data in read_results().items():
        for source in data["data"].values:
            part = data.sel(data=source, lens="raw")
            cells = [_gain(part, baseline) for baseline in ("nearest", "head_match", "rules")]
            above = [int(part["heads_above"].sel(baseline=baseline)) for baseline in ("nearest", "head_match", "rules")]
            total = part.sizes["layer"] * part.sizes["head"]
            counts = ", ".join(map(str, above))
            lines.append(f"| {name} | {source} | {' | '.join(cells)} | {counts} of {total} |")
    return "\n".join(lines) + "\n"


def lenses() -> str:
    """Return the accuracy of the head chosen with each kind of attention, if there are several."""
    names = list(read_results()[MODELS[0]]["lens"].values)
    if len(names) < 2:
        return f"Only {names[0]} attention was probed here; `lens` chooses another.\n"
    lines = ["| model | data | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    for name, data in read_results().items():
        for source in data["data"].values:
            parts = [data.sel(data=source, lens=lens) for lens in names]
            cells = [f"{_with_interval(part, 'head', 'all')}, {_head(part, 'all')}" for part in parts]
            lines.append(f"| {name} | {source} | {' | '.join(cells)} |")
    title = "The accuracy of the head that is the best with each kind of attention, all mentions."
    return f"{title}\n\n" + "\n".join(lines) + "\n"


def provenance() -> str:
    """Return how the results were made, and on how many texts."""
    first = read_provenance(open_results()[MODELS[0]])
    parts = [
        f"{source}: {fact['n_train']:,} texts of {fact['documents_train']} documents to choose, {fact['n']:,} of "
        f"{fact['documents']} to report"
        for source, fact in first["data"].items()
    ]
    sampled = f" A reduced run: at most {first['limit']} texts of each data set, sampled." if first["limit"] else ""
    command = f"Made by `{first['command']}` on {first['device']} in {first['dtype']}."
    return f"{command}{sampled} {'; '.join(parts)}.\n"


def _kinds_table(source: str, results: dict[str, xr.Dataset]) -> str:
    """Return the accuracies of one data set, by kind."""
    first = results[MODELS[0]].sel(data=source, lens="raw")
    rows = [["mentions", *(str(_count(first, kind)) for kind in KINDS)]]
    for name, data in results.items():
        part = data.sel(data=source, lens="raw")
        for predictor, title in _present(part).items():
            cells = [_with_interval(part, predictor, kind) for kind in KINDS]
            if predictor == "head":
                cells = [f"{cell}, {_head(part, kind)}" for cell, kind in zip(cells, KINDS, strict=True)]
            head = f", {_head(part, 'all')}" if predictor == "one_head" else ""
            rows.append([f"{name}: {title}{head}", *cells])
    rows += [[title, *(_with_interval(first, name, kind) for kind in KINDS)] for name, title in BASELINES.items()]
    if source == "GUM":
        rows += [
            [f"*paper, CoNLL-2012: {title}*", *map(str, table_of_coreference().loc[name]), ""]
            for name, title in PAPER.items()
        ]
    return f"**{source}**\n\n{_table(['', *KINDS.values()], rows)}"


def _pronouns_table(sources: list[str], results: dict[str, xr.Dataset]) -> str:
    """Return the accuracies of data sets in which only pronouns are asked."""
    firsts = [results[MODELS[0]].sel(data=source, lens="raw") for source in sources]
    rows = [["pronouns", *(str(_count(first, "all")) for first in firsts)]]
    for name, data in results.items():
        parts = [data.sel(data=source, lens="raw") for source in sources]
        heads = [f"{_with_interval(part, 'head', 'all')}, {_head(part, 'all')}" for part in parts]
        rows.append([f"{name}: best head", *heads])
        if "random_weights" in _present(parts[0]):
            random = [_with_interval(part, "random_weights", "all") for part in parts]
            rows.append([f"{name}: {SHOWN['random_weights']}", *random])
    rows += [[title, *(_with_interval(first, name, "all") for first in firsts)] for name, title in BASELINES.items()]
    return f"**{' and '.join(sources)}**\n\n{_table(['', *sources], rows)}"


def _present(part: xr.Dataset) -> dict[str, str]:
    """Return the predictors of a model that the result has, with their titles."""
    return {name: title for name, title in SHOWN.items() if name in part["predictor"].values}


def _table(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join([_line(header), "|" + "---|" * len(header), *map(_line, rows)]) + "\n"


def _count(part: xr.Dataset, kind: str) -> int:
    """Return the number of mentions that are reported."""
    counts = part["accuracy_n"].fillna(0).sel(predictor="head", kind=kind)
    return int(counts.max())


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(part: xr.Dataset, kind: str) -> str:
    return f"L{int(part['best_layer'].sel(kind=kind))}H{int(part['best_head'].sel(kind=kind))}"


def _percent(part: xr.Dataset, predictor: str, kind: str) -> str:
    return f"{100 * float(part['accuracy'].sel(predictor=predictor, kind=kind)):.0f} %"


def _with_interval(part: xr.Dataset, predictor: str, kind: str) -> str:
    low, high = (100 * float(part[f"accuracy_{end}"].sel(predictor=predictor, kind=kind)) for end in ("low", "high"))
    value = 100 * float(part["accuracy"].sel(predictor=predictor, kind=kind))
    return f"{value:.0f} ({low:.0f}–{high:.0f})"


def _gain(part: xr.Dataset, baseline: str) -> str:
    value, low, high = (100 * float(_of(part, baseline, "all", end)) for end in ("", "_low", "_high"))
    value, low, high = (format_signed(number, "+.0f") for number in (value, low, high))
    return f"{value} ({low} to {high}), p = {float(_of(part, baseline, 'all', '_p')):.2g}"


def _compare(part: xr.Dataset, kind: str, baselines: tuple[str, ...] = ("rules", "head_match", "nearest")) -> str:
    """Return in words which baselines the head is better than, by p < 0.05."""
    verdicts: dict[str, list[str]] = {}
    for name in baselines:
        p, gain = (float(_of(part, name, kind, end)) for end in ("_p", ""))
        verdict = "not significantly different from" if p >= 0.05 else "better than" if gain > 0 else "worse than"
        verdicts.setdefault(verdict, []).append(f"the {BASELINES[name]} ({_percent(part, name, kind)})")
    return ", ".join(f"{verdict} {join_words(names)}" for verdict, names in verdicts.items())


def _of(part: xr.Dataset, baseline: str, kind: str, end: str) -> Any:
    return part[f"gain_over{end}"].sel(baseline=baseline, kind=kind)

"""Fill in docs/coreference.md from results/coreference_*.nc."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from headscope.core.prose import format_signed
from headscope.core.provenance import read_provenance
from headscope.experiments.pages.generate import Generated, fill_page, write_pictures
from headscope.experiments.template import fill_template
from headscope.plotting.draw import draw
from headscope.reporting.frames import ENDS
from headscope.results.store import open_result
from headscope_studies.what_heads_look_at.pages.facts import RESULTS
from headscope_studies.what_heads_look_at.paper import table_of_coreference

FOLDER = Path(__file__).parent
WRITTEN = ("provenance", "summary", "figures", "lenses")
"""Marks of the page whose text is a template; tables are between the others."""

MODELS = ("all-MiniLM-L6-v2", "e5-small")
KINDS = {
    "all": "all",
    "pronoun": "pronoun",
    "proper": "proper noun",
    "nominal": "nominal",
    "different_word": "different word",
}
BASELINES = {"rules": "rules", "head_match": "same head word", "nearest": "nearest mention", "chance": "chance"}
RANDOM = "best head, random weights"
PAPER = {"head": "one head of BERT-base", **{name: BASELINES[name] for name in ("rules", "head_match", "nearest")}}
"""Titles of the rows of Table 2 of Clark et al. (2019), on CoNLL-2012."""


@cache
def open_results() -> dict[str, xr.Dataset]:
    """Return the results of the models that were probed, by model."""
    return {name: open_result(RESULTS / f"coreference_{name}.nc") for name in MODELS}


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
    yield from fill_page(docs / "coreference.md", fill_parts())


def fill_parts() -> dict[str, str]:
    """Return the text between each of the marks of the page."""
    results = read_results()
    values = {
        "run": read_provenance(open_results()[MODELS[0]]),
        "results": results,
        "raw": {name: data.sel(lens="raw") for name, data in results.items()},
        "baselines": BASELINES,
        "name_head": _head,
        "percent": _percent,
        "compare": compare_baselines,
        "table": lenses_table(results),
    }
    written = {mark: fill_template(FOLDER / f"coreference_{mark}.md", **values) for mark in WRITTEN}
    return {**written, "accuracies": accuracies(), "gains": gains()}


def accuracies() -> str:
    """Return a table of accuracies by kind for each form of GUM, and one of the data with pronouns alone."""
    results = read_results()
    names = list(results[MODELS[0]]["data"].values)
    pronouns = [name for name in names if not _count(results[MODELS[0]].sel(data=name), "nominal")]
    tables = [_kinds_table(name, results) for name in names if name not in pronouns]
    return "\n".join([*tables, _pronouns_table(pronouns, results)])


def gains() -> str:
    """Return the gain of the chosen head over each baseline, and the number of better heads."""
    names = ("nearest", "head_match", "rules")
    rows = []
    for name, data in read_results().items():
        for source in data["data"].values:
            result = data.sel(data=source, lens="raw")
            above = ", ".join(str(int(result["heads_above"].sel(baseline=baseline))) for baseline in names)
            heads = result.sizes["layer"] * result.sizes["head"]
            rows.append([name, str(source), *(_gain(result, baseline) for baseline in names), f"{above} of {heads}"])
    titles = [f"over {BASELINES[name]}" for name in names]
    return _table(["model", "data", *titles, "heads above: nearest, same head word, rules"], rows)


def lenses_table(results: dict[str, xr.Dataset]) -> str:
    """Return the accuracy of the head chosen with each kind of attention."""
    names = list(map(str, results[MODELS[0]]["lens"].values))
    rows = []
    for name, data in results.items():
        for source in data["data"].values:
            by_lens = [data.sel(data=source, lens=lens) for lens in names]
            rows.append([name, str(source), *(_with_head(result, "all") for result in by_lens)])
    return _table(["model", "data", *names], rows)


def _kinds_table(source: str, results: dict[str, xr.Dataset]) -> str:
    """Return the accuracies of one data set, by kind."""
    first = results[MODELS[0]].sel(data=source, lens="raw")
    rows = [["mentions", *(str(_count(first, kind)) for kind in KINDS)]]
    for name, data in results.items():
        result = data.sel(data=source, lens="raw")
        rows += [
            [
                f"{name}: one head, {_head(result, 'all')}",
                *(_with_interval(result, "one_head", kind) for kind in KINDS),
            ],
            [f"{name}: best head of each kind", *(_with_head(result, kind) for kind in KINDS)],
            [f"{name}: {RANDOM}", *(_with_interval(result, "random_weights", kind) for kind in KINDS)],
        ]
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
        by_source = [data.sel(data=source, lens="raw") for source in sources]
        rows.append([f"{name}: best head", *(_with_head(result, "all") for result in by_source)])
        rows.append([f"{name}: {RANDOM}", *(_with_interval(result, "random_weights", "all") for result in by_source)])
    rows += [[title, *(_with_interval(first, name, "all") for first in firsts)] for name, title in BASELINES.items()]
    return f"**{' and '.join(sources)}**\n\n{_table(['', *sources], rows)}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join([_line(header), "|" + "---|" * len(header), *map(_line, rows)]) + "\n"


def _count(result: xr.Dataset, kind: str) -> int:
    """Return the number of mentions that are reported."""
    return int(result["accuracy_n"].fillna(0).sel(predictor="head", kind=kind).max())


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(result: xr.Dataset, kind: str) -> str:
    return f"L{int(result['best_layer'].sel(kind=kind))}H{int(result['best_head'].sel(kind=kind))}"


def _percent(result: xr.Dataset, predictor: str, kind: str) -> str:
    return f"{100 * float(result['accuracy'].sel(predictor=predictor, kind=kind)):.0f} %"


def _with_head(result: xr.Dataset, kind: str) -> str:
    return f"{_with_interval(result, 'head', kind)}, {_head(result, kind)}"


def _with_interval(result: xr.Dataset, predictor: str, kind: str) -> str:
    low, high = (100 * float(result[f"accuracy_{end}"].sel(predictor=predictor, kind=kind)) for end in ("low", "high"))
    value = 100 * float(result["accuracy"].sel(predictor=predictor, kind=kind))
    return f"{value:.0f} ({low:.0f}–{high:.0f})"


def _gain(result: xr.Dataset, baseline: str) -> str:
    gain = result.sel(baseline=baseline, kind="all")
    ends = [format_signed(100 * float(gain[f"gain_over{end}"]), "+.0f") for end in ENDS]
    return f"{ends[0]} ({ends[1]} to {ends[2]}), p = {float(gain['gain_over_p']):.2g}"


def compare_baselines(result: xr.Dataset, kind: str, baselines: Sequence[str]) -> dict[str, list[str]]:
    """Return the baselines that the head is better or worse than, or not significantly different from, by p < 0.05."""
    verdicts: dict[str, list[str]] = {}
    for name in baselines:
        gain = result.sel(baseline=name, kind=kind)
        better, significant = float(gain["gain_over"]) > 0, float(gain["gain_over_p"]) < 0.05
        verdict = ("better than" if better else "worse than") if significant else "not significantly different from"
        verdicts.setdefault(verdict, []).append(name)
    return verdicts

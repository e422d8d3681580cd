"""`hs.report`: a page with tables, figures, provenance and references from any results."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.document import Document, Paragraph, Section
from headscope.core.errors import InputError
from headscope.core.prose import count_noun, join_words
from headscope.plotting.combine import combine_results
from headscope.plotting.draw import DrawableBatch
from headscope.reporting.entry_summary import collect_citations
from headscope.reporting.sections.ablations import ablation_sections
from headscope.reporting.sections.clusters import cluster_sections
from headscope.reporting.sections.comparisons import comparison_sections
from headscope.reporting.sections.cues import cue_sections
from headscope.reporting.sections.importances import importance_sections
from headscope.reporting.sections.maps import map_sections, typical_sections
from headscope.reporting.sections.measurements import measurement_sections
from headscope.reporting.sections.parts import SectionContext, make_names_unique, slug, spaced
from headscope.reporting.sections.probes import probe_sections
from headscope.reporting.sections.pruning import pruning_sections
from headscope.reporting.sections.scores import score_sections
from headscope.reporting.write import check_folder, write_document
from headscope.results.select import AXES, head_variables, main_variables
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result

MAX_GROUPS = 12
"""Labels along axes that all variables share; up to this many, each label has sections of its own."""


def report(what: Any, out: str | Path = "report", *, title: str | None = None, overwrite: bool = False) -> Path:
    """Write a report as a folder, and return the path of its self-contained HTML page.

    `what` is a Dataset, the path of a saved one, Maps, Importances, a list or a mapping of these, or a Document, such
    as a study returns. The folder `out` has report.html, figures/ (PDF, SVG) and tables/ (CSV, LaTeX); a report that
    exists is replaced only with `overwrite=True`. The same input gives the same bytes.

    >>> data = hs.measure(model, ["The cat sat down.", "It rained."], statistics=["entropy"], progress=False)
    >>> hs.report(data, "report").as_posix()
    'report/report.html'
    """
    check_folder(Path(out), overwrite=overwrite)
    if isinstance(what, Document):
        document = what if title is None else replace(what, title=title)
    else:
        document = build_document(_name_results(what), title=title)
    return write_document(document, out, overwrite=overwrite)


def build_document(results: Mapping[str, xr.Dataset], *, title: str | None = None) -> Document:
    """Return a Document with the usual tables and figures of each result."""
    sections, runs = [], []
    for name, data in results.items():
        if not data.data_vars:
            raise InputError(f"There is nothing to report: '{name}' has no variables. Measure first: hs.measure(…).")
        context = SectionContext(name, f"{slug(name)}_") if len(results) > 1 else SectionContext()
        sections += _result_sections(data, context)
        runs.append({**({"name": name} if len(results) > 1 else {}), **read_provenance(data)})
    return Document(
        title if title is not None else _title(results),
        _lead(results),
        make_names_unique(sections),
        references=[*collect_citations(spec for data in results.values() for spec in _entry_specs(data)), "headscope"],
        runs=[run for run in runs if set(run) - {"name"}],
    )


def _name_results(what: Any) -> dict[str, xr.Dataset]:
    """Return the results under unique names; Maps of the same texts are one result."""
    if isinstance(what, xr.Dataset | DrawableBatch | str | Path):
        what = [what]
    if isinstance(what, list | tuple) and what and all(isinstance(maps, DrawableBatch) for maps in what):
        what = [combine_results([maps.to_dataset() for maps in what])]
    if not isinstance(what, Mapping | list | tuple):
        raise InputError(
            "A report is made of a Dataset, a path of one, Maps, a list or mapping of these, or a Document, but got a "
            f"{type(what).__name__}. Measure first, or save the numbers with hs.save."
        )
    if not what:
        raise InputError("There is nothing to report: no result was given. Give at least one Dataset or path.")
    if isinstance(what, Mapping):
        return {str(name): _open(source) for name, source in what.items()}
    results: dict[str, xr.Dataset] = {}
    for number, source in enumerate(what, 1):
        data = _open(source)
        model = read_provenance(data).get("model")
        name = Path(source).stem if isinstance(source, str | Path) else _model_name(model) or "result"
        results[f"{name} ({number})" if name in results or not name else name] = data
    return results


def _open(source: Any) -> xr.Dataset:
    if isinstance(source, str | Path):
        return open_result(source)
    if isinstance(source, DrawableBatch):
        return source.to_dataset()
    if not isinstance(source, xr.Dataset):
        raise InputError(
            f"A report is made of Datasets, paths of saved ones and Maps, but one of them is a {type(source).__name__}."
            " Take it out."
        )
    return source


def _model_name(model: Any) -> str | None:
    """Return the last part of a model's path or hub id."""
    return Path(model).name if isinstance(model, str) else None


def _result_sections(data: xr.Dataset, context: SectionContext) -> list[Section]:
    """Return the sections of one Dataset, for each label along further axes that all variables share."""
    shared = _shared_axes(data)
    groups = list(product(*(range(data.sizes[axis]) for axis in shared)))
    if not 1 < len(groups) <= MAX_GROUPS:
        return _sections_by_kind(data, context)
    sections = []
    for group in groups:
        index = dict(zip(shared, group, strict=True))
        labels = [str(data[axis].values[k]) if axis in data.coords else f"{axis} {k}" for axis, k in index.items()]
        sections += _sections_by_kind(data.isel(index, drop=True), context.narrow(" ".join(labels)))
    return sections


def _sections_by_kind(data: xr.Dataset, context: SectionContext) -> list[Section]:
    if _is_typical(data):
        sections, shown = typical_sections(data, context)
    elif "importance" in data:
        sections, shown = importance_sections(data, context)
    elif {"query", "key"} <= set(data.dims) and "weights" in data:
        sections, shown = map_sections(data, context)
    elif _is_cues(data):
        sections, shown = cue_sections(data, context)
    elif "pruned" in data.dims:
        sections, shown = pruning_sections(data, context)
    elif _is_clustering(data):
        sections, shown = cluster_sections(data, context)
    elif _is_probe(data):
        sections, shown = probe_sections(data, context)
    elif _is_ablation(data):
        sections, shown = ablation_sections(data, context)
    elif _is_comparison(data):
        sections, shown = comparison_sections(data, context)
    else:
        sections, shown = measurement_sections(data, context)
    more, hidden = score_sections(data, context, shown)
    if hidden:
        text = f"Not shown here: {join_words(f'`{name}`' for name in hidden)}. The result file holds all of it."
        more.append(Section(context.title("other variables"), [Paragraph(text)]))
    return [*sections, *more]


def _is_typical(data: xr.Dataset) -> bool:
    return "weights" in data and {"map", "query", "key"} <= set(data["weights"].dims)


def _is_cues(data: xr.Dataset) -> bool:
    return {"productivity", "coverage"} <= set(data.data_vars)


def _is_ablation(data: xr.Dataset) -> bool:
    return {"change", "ablated"} <= set(data.data_vars)


def _is_clustering(data: xr.Dataset) -> bool:
    return {"position", "merge"} <= set(data.data_vars)


def _is_probe(data: xr.Dataset) -> bool:
    return "accuracy" in data and {"task", "predictor"} <= set(data["accuracy"].dims)


def _is_comparison(data: xr.Dataset) -> bool:
    return any(f"{name}_p_adjusted" in data for name in data.data_vars)


def _shared_axes(data: xr.Dataset) -> list[str]:
    """Return the axes beyond lens, site, layer and head that all of several measured variables have."""
    names = head_variables(data)
    if len(names) < 2 or "weights" in data:
        return []
    common = set.intersection(*({str(dim) for dim in data[name].dims} for name in names)) - {*AXES, "site"}
    return [str(dim) for dim in data[names[0]].dims if dim in common]


def _entry_specs(data: xr.Dataset) -> list[tuple[str, str]]:
    """Return the lenses, statistics and edits behind a result, also those of both sides of a comparison."""
    facts = read_provenance(data)
    sides = [facts, *(facts[side] for side in ("a", "b") if isinstance(facts.get(side), Mapping))]
    specs = [("lenses", lens) for lens in _lenses(data, facts)]
    specs += [("statistics", "patterns")] if _is_typical(data) else []
    specs += [("edits", "zero_heads")] if "pruned" in data.dims else []
    specs += [("figures", "cues")] if _is_cues(data) else []
    specs += [("importance_methods", str(method)) for method in facts.get("methods") or []]
    specs += [("probes", str(facts["probe"]))] if "probe" in facts else []
    specs += [("edits", str(facts["edit"]))] if _is_ablation(data) and "edit" in facts else []
    for folder in ("lenses", "statistics", "edits"):
        specs += [(folder, str(spec)) for side in sides for spec in side.get(folder) or []]
    return specs


def _title(results: Mapping[str, xr.Dataset]) -> str:
    models = {_model_name(read_provenance(data).get("model")) for data in results.values()} - {None}
    if results and all(map(_is_typical, results.values())):
        return "Typical attention maps"
    if results and all("importance" in data for data in results.values()):
        return f"What matters to {models.pop()}" if len(models) == 1 else "Importances of tokens"
    if results and all(map(_is_cues, results.values())):
        return "Cues to the label"
    if results and all(map(_is_ablation, results.values())):
        return f"Ablation of {models.pop()}" if len(models) == 1 else "Ablations"
    if results and all(map(_is_probe, results.values())):
        return f"What the attention of {models.pop()} knows" if len(models) == 1 else "Probes of attention"
    return f"Attention of {models.pop()}" if len(models) == 1 else "What was measured"


def _lead(results: Mapping[str, xr.Dataset]) -> str:
    """Return a summary of the report in one or two sentences."""
    if len(results) > 1:
        return f"{len(results)} results: {join_words(f'**{name}**' for name in results)}."
    (data,) = results.values()
    facts, names = read_provenance(data), list(map(spaced, head_variables(data)))
    lenses = join_words((f"`{lens}`" for lens in _lenses(data, facts)), empty="")
    if _is_typical(data):
        return f"{count_noun(data.sizes['map'], 'labelled map')}, typical of their classes."
    if "importance" in data:
        methods = join_words(f"`{method}`" for method in np.atleast_1d(data["method"].values))
        texts = count_noun(data.sizes.get("example", 1), "text")
        return f"How much each token of {texts} matters for the prediction, by {methods}."
    if "weights" in data:
        count = data.sizes.get("example", 1)
        texts = "one text" if count == 1 else count_noun(count, "text")
        return f"Attention maps of {texts}{f', seen through {lenses}' if lenses else ''}."
    if _is_cues(data):
        return f"How well single words and n-grams tell the label of {count_noun(int(data['n']), 'example')}."
    if _is_ablation(data):
        texts = count_noun(int(data["n"]), "example")
        return f"The score of the model without sets of its heads, by the edit `{facts.get('edit')}`, over {texts}."
    if _is_probe(data):
        kind = f"the probe `{facts['probe']}`" if "probe" in facts else "a probe"
        return f"What {kind} reads from the attention between words{f', seen through {lenses}' if lenses else ''}."
    if _is_comparison(data):
        return f"How two results differ, head by head, in {join_words(names)}."
    if _is_clustering(data):
        return f"How alike the heads are{f', seen through {lenses}' if lenses else ''}, by the distances between them."
    if not names:
        return f"What one result holds: {join_words(map(spaced, main_variables(data)))}."
    n = facts.get("n")
    seen = f"seen through {lenses}" if lenses else ""
    over = f"over {count_noun(n, 'example')}" if isinstance(n, int) else ""
    what = f"What was measured for every head: {join_words(names)}"
    return ", ".join(filter(None, [what, f"{seen} {over}".strip()])) + "."


def _lenses(data: xr.Dataset, facts: Mapping[str, Any]) -> list[str]:
    """Return the lenses in the provenance of a result, or those along its axis."""
    along = data["lens"].values.ravel().tolist() if "lens" in data.coords else []
    lenses = facts.get("lenses") or facts.get("lens") or along
    return [str(lens) for lens in ([lenses] if isinstance(lenses, str) else lenses) if lens]

"""`hs.report`: a page with tables, figures, provenance and references from any results."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.catalog.entry_summary import collect_citations
from headscope.core.document import Document, Paragraph, Section, SectionContext, make_names_unique, slug
from headscope.core.errors import InputError
from headscope.core.kind import Kind, find_kind
from headscope.core.options import takes_options
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.plotting.combine import combine_results
from headscope.plotting.draw import DrawableBatch
from headscope.reporting.options import ReportOptions
from headscope.reporting.write import check_folder, write_document
from headscope.results.document_parts import list_lenses
from headscope.results.other_numbers import number_sections
from headscope.results.select import AXES, head_variables, main_variables
from headscope.results.store import open_result

MAX_GROUPS = 12
"""Labels along axes that all variables share; up to this many, each label has sections of its own."""


@takes_options(ReportOptions)
def report(options: ReportOptions) -> Path:
    """Write a report as a folder, and return the path of its self-contained HTML page.

    The folder has report.html, figures/ (PDF, SVG) and tables/ (CSV, LaTeX); a report that exists is replaced only with
    `overwrite=True`. The same input gives the same bytes.

    >>> data = hs.measure(model, ["The cat sat down.", "It rained."], statistics=["entropy"], progress=False)
    >>> hs.report(data, "report").as_posix()
    'report/report.html'
    """
    what, out, title, overwrite = options.what, options.out, options.title, options.overwrite
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
        title if title is not None else name_results(list(results.values())),
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
    """Return what the kind of a result shows, then its other numbers, then the names of what is not shown."""
    sections, shown = find_kind(data).sections(data, context)
    more, also_shown = number_sections(data, context, shown)
    hidden = [name for name in main_variables(data) if name not in shown | also_shown]
    if hidden:
        text = f"Not shown here: {join_words(f'`{name}`' for name in hidden)}. The result file holds all of it."
        more.append(Section(context.title("other variables"), [Paragraph(text)]))
    return [*sections, *more]


def _shared_axes(data: xr.Dataset) -> list[str]:
    """Return the axes beyond lens, site, layer and head that all of several measured variables have."""
    names = head_variables(data)
    if len(names) < 2 or "weights" in data or not find_kind(data).grouped:
        return []
    common = set.intersection(*({str(dim) for dim in data[name].dims} for name in names)) - {*AXES, "site"}
    return [str(dim) for dim in data[names[0]].dims if dim in common]


def _entry_specs(data: xr.Dataset) -> list[tuple[str, str]]:
    """Return the lenses, statistics and edits behind a result, also those of both sides of a comparison."""
    facts = read_provenance(data)
    sides = [facts, *(facts[side] for side in ("a", "b") if isinstance(facts.get(side), Mapping))]
    specs = [("lenses", lens) for lens in list_lenses(data)]
    specs += find_kind(data).entries(data)
    for folder in ("lenses", "statistics", "edits"):
        specs += [(folder, str(spec)) for side in sides for spec in side.get(folder) or []]
    return specs


def name_results(results: Sequence[xr.Dataset]) -> str:
    """Return a title that names the model, where there is one, and the kind of result, where all are of one."""
    models = {_model_name(read_provenance(data).get("model")) for data in results} - {None}
    result_kinds = {type(find_kind(data)) for data in results}
    kind = result_kinds.pop() if len(result_kinds) == 1 else Kind
    return kind.model_subject.format(models.pop()) if len(models) == 1 else kind.subject


def _lead(results: Mapping[str, xr.Dataset]) -> str:
    """Return a summary of the report in one or two sentences."""
    if len(results) > 1:
        return f"{len(results)} results: {join_words(f'**{name}**' for name in results)}."
    (data,) = results.values()
    return find_kind(data).lead(data)

"""One page from any result: tables, figures, what was run and what to cite."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.document import Document
from headscope.core.errors import InputError
from headscope.reporting.automatic import document_of
from headscope.reporting.write import write
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result


def report(what: Any, out: str | Path = "report", *, title: str | None = None) -> Path:
    """Write a page that needs nothing else, with every table and figure as files beside it, and give its path.

    `what` is a Dataset, a path of a saved one, several of these in a list or under names in a mapping, or a Document
    such as a study makes. `out` becomes a folder with report.html, figures/ (PDF, SVG) and tables/ (CSV, LaTeX); an
    older report there is replaced. The same input gives the same bytes.
    """
    if isinstance(what, Document):
        made = what if title is None else replace(what, title=title)
    else:
        made = document_of(_named(what), title=title)
    return write(made, out)


def _named(what: Any) -> dict[str, xr.Dataset]:
    """The results under names that tell them apart."""
    if isinstance(what, xr.Dataset | str | Path):
        what = [what]
    if not isinstance(what, Mapping | list | tuple):
        raise InputError(
            "A report is made of a Dataset, a path of one, a list or mapping of these, or a Document, but got a "
            f"{type(what).__name__}. Measure first, or save the numbers with hs.save."
        )
    if not what:
        raise InputError("There is nothing to report: no result was given. Give at least one Dataset or path.")
    if isinstance(what, Mapping):
        return {str(name): _opened(each) for name, each in what.items()}
    found: dict[str, xr.Dataset] = {}
    for place, each in enumerate(what, 1):
        data = _opened(each)
        name = Path(each).stem if isinstance(each, str | Path) else _name(data)
        found[f"{name} ({place})" if name in found or not name else name] = data
    return found


def _opened(each: Any) -> xr.Dataset:
    if isinstance(each, str | Path):
        return open_result(each)
    if not isinstance(each, xr.Dataset):
        raise InputError(
            f"A report is made of Datasets and paths of saved ones, but one of them is a {type(each).__name__}. Take "
            "it out, or give maps as maps.dataset()."
        )
    return each


def _name(data: xr.Dataset) -> str:
    """The model's name, without the folders it lies in."""
    model = read_provenance(data).get("model")
    return Path(model).name if isinstance(model, str) else "result"

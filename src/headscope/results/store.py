"""Save and open results: Datasets as NetCDF, Zarr, tables, pages; figures as PDF, SVG, PNG, HTML; models as folders."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import xarray as xr
from matplotlib.figure import Figure

from headscope.core.checksum import guard_reading
from headscope.core.errors import InputError, OutputError
from headscope.core.example import Example
from headscope.core.options import takes_options
from headscope.core.provenance import read_provenance, stamp
from headscope.plotting.combine import combine_results
from headscope.plotting.draw import DrawableBatch
from headscope.plotting.export import FIXED_METADATA, write_figure, write_page
from headscope.results.atomic import REPLACE, atomic_path, check_name
from headscope.results.hashes import fingerprint_examples
from headscope.results.netcdf import read_netcdf, write_netcdf
from headscope.results.options import SaveOptions
from headscope.results.tables import write_csv, write_parquet
from headscope.results.zarr_folder import is_zarr, read_zarr, write_zarr

PROVENANCE = "its attribute 'headscope' is not what headscope wrote. Copy the file again, or make it again."
TABLES = {".csv": "pandas.read_csv", ".parquet": "pandas.read_parquet"}
FIGURES = frozenset({*(f".{ending}" for ending in FIXED_METADATA), ".html"})
"""Endings of figures, which are drawn again and again while one looks for the right one."""

FIELDS = ("id", "text", "pair", "words", "label")


@runtime_checkable
class WritesFolder(Protocol):
    """A model."""

    def write_folder(self, folder: Path) -> None:
        """Write it to a folder."""


@runtime_checkable
class WritesPage(Protocol):
    """What `hs.show` returns."""

    def write_page(self, path: Path) -> None:
        """Write it to an HTML file."""


@takes_options(SaveOptions)
def save(options: SaveOptions) -> Path:
    """Write a Dataset, Maps, a figure or a model to a file, or to a folder, and return its path.

    A Dataset is written as .nc, .zarr, .csv, .parquet or .html, Maps as .nc, .zarr or .html, a figure as .pdf, .svg,
    .png or .html. A model is written to a folder that `hs.load` reads, also one that `hs.prune` made smaller. A list
    of examples is written as .jsonl, which `hs.read` reads.

    As .html, whatever `hs.show` shows is the viewer, such as Maps, a Trace, a Dataset, or several in a list or dict:
    one page that opens without a server and connects to nothing.

    Maps, or a list of Maps of the same texts, are written as `maps.to_dataset()` with their provenance: the lens, the
    model, the version, and hashes of the weights, the tokenizer, the config and the texts.

    A figure replaces one that exists; any other file or folder is replaced only with `overwrite=True`. The older one is
    unchanged until the new one is complete. The same content gives the same bytes. Tables (.csv .parquet) hold measured
    numbers for other tools: the means, or with a name such as heads.rows.csv the values of single examples.

    >>> hs.save(hs.draw(hs.view(trace)), "maps.pdf").name
    'maps.pdf'
    >>> hs.open_result(hs.save(hs.view(trace), "maps.nc"))["weights"].dims
    ('example', 'lens', 'layer', 'head', 'query', 'key')
    >>> hs.save([hs.view(trace, "raw"), hs.view(trace, "effective")], "maps.html").name
    'maps.html'
    """
    path = Path(options.path)
    write = _choose_writer(options.what, path)
    if isinstance(options.what, WritesFolder):
        refuse_folder(path, overwrite=options.overwrite)
    refuse_existing(path, overwrite=options.overwrite)
    with atomic_path(path) as temporary:
        write(temporary)
    return path


def refuse_existing(path: Path | None, *, overwrite: bool) -> None:
    """Raise InputError if a result is at `path`, unless it may be replaced, as figures may. No path is no problem."""
    if path is None:
        return
    check_name(path)
    if overwrite or path.suffix.lower() in FIGURES:
        return
    if path.is_file() or is_zarr(path):
        raise InputError(f"{path} exists already. {REPLACE.format('path')}")


def refuse_folder(path: Path, *, overwrite: bool) -> None:
    """Raise InputError if a folder is at `path`, unless it holds a model that may be replaced."""
    check_name(path)
    if path.is_dir() and any(path.iterdir()):
        if not (path / "config.json").is_file():
            raise InputError(f"{path} is a folder that holds something else than a model. Give another folder.")
        if not overwrite:
            raise InputError(f"{path} exists already. {REPLACE.format('folder')}")


def open_result(path: str | Path) -> xr.Dataset:
    """Read a Dataset that `save` wrote as .nc or .zarr into memory, and close the file.

    Its checksum is verified: a file that is damaged, or was changed by another program, raises InputError. Files of
    versions that wrote no checksum are read too.

    Parameters
    ----------
    path
        A file (.nc) or a folder (.zarr).

    >>> path = hs.save(hs.view(trace, "raw").dataset(), "maps.nc")
    >>> hs.open_result(path)["weights"].sizes["head"]
    12
    """
    path = Path(path)
    try:
        path.exists()
    except OSError as error:  # a name that no file can have
        raise InputError(f"Cannot open {path}: {(error.strerror or str(error)).lower()}. Give another path.") from error
    if (ending := path.suffix.lower()) in TABLES:
        raise InputError(
            f"Cannot open {path}: a {ending} file is a table for other tools. Read it with {TABLES[ending]}, or open "
            "the result that was saved as .nc or .zarr."
        )
    if ending == ".zarr":
        data, format_name = read_zarr(path), "Zarr folder"
    else:
        data, format_name = read_netcdf(path), "NetCDF file"
    if "headscope" not in data.attrs:
        raise InputError(
            f"Cannot open {path}: it is a {format_name}, but not one that headscope wrote (it has no attribute "
            "'headscope'). Open it with xarray.open_dataset."
        )
    with guard_reading(path, PROVENANCE):
        dict(read_provenance(data))
    return data


def _choose_writer(what: Any, path: Path) -> Callable[[Path], None]:
    """Return the function that writes this kind of object with this file ending."""
    if isinstance(what, WritesFolder):
        return what.write_folder
    if isinstance(what, xr.Dataset):
        writers: dict[str, Callable[[Path], None]] = {
            ".nc": partial(write_netcdf, what),
            ".zarr": partial(write_zarr, what, path),
            ".csv": partial(write_csv, what, path.name),
            ".parquet": partial(write_parquet, what, path.name),
            ".html": partial(_write_viewer, what),
        }
    elif isinstance(what, Figure):
        writers = {f".{ending}": partial(write_figure, what, ending) for ending in FIXED_METADATA}
        writers[".html"] = partial(write_page, what)
    elif isinstance(what, WritesPage):
        writers = {".html": what.write_page}
    elif is_examples(what):
        writers = {".jsonl": partial(write_examples, what)}
    elif maps := _list_maps(what):
        writers = {
            ".nc": lambda temporary: write_netcdf(_stamp_maps(maps), temporary),
            ".zarr": lambda temporary: write_zarr(_stamp_maps(maps), path, temporary),
            ".html": partial(_write_viewer, maps),
        }
    elif path.suffix.lower() == ".html":
        writers = {".html": partial(_write_viewer, what)}  # which says what it cannot show
    else:
        raise InputError(
            "Only a Dataset, Maps, Importances, examples, a model or a matplotlib figure can be saved, but got a "
            f"{type(what).__name__}."
        )
    if path.suffix.lower() not in writers:
        what_is = (
            "A Dataset is"
            if isinstance(what, xr.Dataset)
            else "A figure is"
            if isinstance(what, Figure)
            else "Examples are"
            if is_examples(what)
            else "A viewer is"
            if isinstance(what, WritesPage)
            else "Maps are"
        )
        problem = f"ends in '{path.suffix}'" if path.suffix else "has no ending"
        raise OutputError(f"{what_is} saved as {' '.join(writers)}, but '{path.name}' {problem}. Change the ending.")
    return writers[path.suffix.lower()]


def _write_viewer(what: Any, path: Path) -> None:
    """Write the viewer's page, which is in a layer above, so found by name."""
    source = import_module("headscope.viewer.source").make_source(what, hashed=True)
    import_module("headscope.viewer.page").write_viewer_page(source, path)


def _list_maps(what: Any) -> list[Any]:
    """Return Maps, or a list of Maps, as a list; an empty one for anything else."""
    maps = list(what) if isinstance(what, list | tuple) else [what]
    return maps if all(isinstance(item, DrawableBatch) for item in maps) else []


def _stamp_maps(maps: Sequence[Any]) -> xr.Dataset:
    """Return Maps of the same texts as one Dataset with its provenance."""
    data = combine_results([item.to_dataset() for item in maps])
    facts, *others = ({} if item.source is None else item.source.describe() for item in maps)
    if any(other != facts for other in others):
        raise InputError(
            "These maps are of different models, or of one model before and after a change. Save each alone."
        )
    return stamp(data, kind="maps", command="hs.save", **facts, data=fingerprint_examples(maps[0].examples))


def is_examples(what: Any) -> bool:
    """Whether this is a list of examples, and not an empty one."""
    return isinstance(what, list | tuple) and bool(what) and all(isinstance(item, Example) for item in what)


def write_examples(examples: Sequence[Example], path: Path) -> None:
    """Write one object a line: the fields of an example that any of them has, and its further columns."""
    names = [name for name in FIELDS if any(getattr(example, name) is not None for example in examples)]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for example in examples:
            row = {name: getattr(example, name) for name in names} | dict(example.columns)
            file.write(json.dumps(row, ensure_ascii=False, default=_to_plain) + "\n")


def _to_plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else value.tolist() if hasattr(value, "tolist") else str(value)

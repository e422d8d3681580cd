import errno
import os
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from headscope.core import errors
from headscope.core.errors import DataWarning, InputError, MissingExtra, OutputError
from headscope.core.provenance import stamp
from headscope.plotting import fonts
from headscope.plotting.draw import draw
from headscope.results import store
from headscope.results.store import open_result, save
from tests.figures.data import dataset, measured
from tests.full_disk import run_python

FOREIGN = "the 中(1/3) 🦊"


def unwritable(code: int):
    def write(*_):
        raise OSError(code, os.strerror(code))

    return write


@pytest.mark.parametrize("tokens", ["the cat", "中(1/3) שלום العربية 😀 ##ing $x_1$", "·the \n"])
def test_a_dataset_comes_back_as_it_was(tokens, tmp_path):
    data = dataset(tokens)
    back = open_result(save(data, tmp_path / "a.nc"))
    xr.testing.assert_identical(back, data)
    assert back["visible"].dtype == bool
    assert back["weights"].dtype == np.float32


def test_the_same_dataset_has_the_same_bytes(tmp_path):
    first, second = (save(dataset(), tmp_path / f"{n}.nc").read_bytes() for n in (1, 2))
    assert first == second


def test_large_variables_are_compressed_without_loss(tmp_path):
    values = np.repeat(np.linspace(0, 1, 100), 1000)
    data = stamp(xr.Dataset({"x": ("row", values), "few": ("column", values[:10])}), command="test")
    path = save(data, tmp_path / "a.nc")
    assert path.stat().st_size < values.nbytes / 4
    xr.testing.assert_identical(open_result(path), data)


def test_an_opened_file_is_closed(tmp_path):
    path = save(dataset(), tmp_path / "a.nc")
    data = open_result(path)
    path.unlink()
    assert data["weights"].sum() > 0


def test_missing_folders_are_created(tmp_path):
    assert save(dataset(), tmp_path / "new" / "folder" / "a.nc").exists()


def test_endings_may_be_upper_case(tmp_path):
    assert save(draw(dataset(), "matrix"), tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")


def test_a_page_is_self_contained(tmp_path):
    page = save(draw(dataset(), "matrix"), tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert '<meta charset="utf-8">' in page
    assert "<title>raw · L0H0</title>" in page
    assert "<script" not in page
    assert "src=" not in page


def test_files_contain_no_date(tmp_path):
    figure = draw(dataset(), "matrix")
    assert b"CreationDate" not in save(figure, tmp_path / "a.pdf").read_bytes()
    assert b"dc:date" not in save(figure, tmp_path / "a.svg").read_bytes()


def test_characters_without_a_font_are_shown_as_code_points_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(fonts, "_glyphs", lambda: frozenset(range(128)))
    figure = draw(dataset(FOREIGN), "matrix")
    with pytest.warns(DataWarning, match=r"^2 characters have no glyph .* such as U\+4E2D\. Save it as \.svg"):
        save(figure, tmp_path / "a.png")
    assert figure.axes[0].get_yticklabels()[1].get_text() == "U+4E2D(1/3)"


def test_the_browser_shows_every_character(tmp_path, monkeypatch):
    monkeypatch.setattr(fonts, "_glyphs", lambda: frozenset(range(128)))
    figure = draw(dataset(FOREIGN), "matrix")
    for ending in ("svg", "html"):
        text = save(figure, tmp_path / f"a.{ending}").read_text(encoding="utf-8")
        assert ">中(1/3)</text>" in text
        assert "U+4E2D" not in text
    assert figure.get_layout_engine() is not None


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_an_existing_file_survives_any_failure(stop, tmp_path, monkeypatch):
    path = save(dataset(), tmp_path / "a.nc")
    before = path.read_bytes()

    def interrupted(data: xr.Dataset, part: Path) -> None:
        part.write_bytes(b"half")
        raise stop

    monkeypatch.setattr(store, "write_netcdf", interrupted)
    with pytest.raises(stop):
        save(dataset("other words"), path, overwrite=True)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ["nc", "zarr", "csv", "parquet"])
def test_an_existing_result_is_replaced_only_with_overwrite(ending, tmp_path):
    path, first, second = tmp_path / f"a.{ending}", measured(rows=False), measured(rows=False, seed=1)
    before = read_content(save(first, path))
    with pytest.raises(InputError, match=rf"a\.{ending} exists already\. Give another path, or replace it with overwr"):
        save(second, path)
    assert read_content(path) == before
    assert read_content(save(second, path, overwrite=True)) == read_content(save(second, tmp_path / f"b.{ending}"))


@pytest.mark.parametrize("ending", ["pdf", "svg", "png", "html", "PDF"])
def test_an_existing_figure_is_replaced(ending, tmp_path):
    path = save(draw(dataset()), tmp_path / f"a.{ending}")
    before = path.read_bytes()
    assert save(draw(dataset("other words")), path).read_bytes() != before


def test_an_existing_figure_survives_a_failure(tmp_path, monkeypatch):
    path = save(draw(dataset()), tmp_path / "a.pdf")
    before = path.read_bytes()
    monkeypatch.setattr(store, "write_figure", unwritable(errno.ENOSPC))
    with pytest.raises(OutputError, match="the disk is full"):
        save(draw(dataset("other words")), path)
    assert path.read_bytes() == before


def read_content(path):
    return files(path) if path.is_dir() else path.read_bytes()


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    assert save(dataset(), tmp_path / "a.nc").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_full_disk_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "write_netcdf", unwritable(errno.ENOSPC))
    with pytest.raises(
        OutputError,
        match=r"a\.nc: the disk is full\. Its disk has .* left\. Free some space, or give a path on another disk\.",
    ):
        save(dataset(), tmp_path / "a.nc")


FULL_DISK = """
import numpy as np
import xarray as xr
from headscope.core.errors import OutputError
from headscope.results.store import save

data = xr.Dataset({"x": (("lens", "layer", "head"), np.arange(600.0).reshape(1, 20, 30) ** 0.5)}, {"lens": ["raw"]})
fill_disk(300)
for path in sys.argv[1:]:
    try:
        save(data, path)
    except OutputError as error:
        print(error)
"""


def test_python_survives_a_disk_that_takes_no_more_and_nothing_is_left(tmp_path):
    paths = [tmp_path / f"a.{ending}" for ending in ("nc", "zarr", "csv", "parquet")]
    done = run_python(FULL_DISK, *paths)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"(Cannot write .*: .*file too large\. Give another path\.\n){4}", done.stdout)
    assert not done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_without_write_permission_raises(code, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "write_netcdf", unwritable(code))
    with pytest.raises(OutputError, match=r"you may not write there\. Give a path in a folder that is yours\."):
        save(dataset(), tmp_path / "a.nc")


def test_a_file_in_place_of_a_folder_raises(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"Cannot write .*a\.nc: .*\. Give another path\."):
        save(dataset(), tmp_path / "file" / "a.nc")


def test_a_folder_in_place_of_the_file_raises(tmp_path):
    (tmp_path / "a.nc").mkdir()
    with pytest.raises(OutputError, match=r"Cannot write .*a\.nc: is a directory\. Give another path\."):
        save(dataset(), tmp_path / "a.nc")


def test_an_unknown_ending_raises(tmp_path):
    with pytest.raises(
        OutputError, match=r"A figure is saved as \.pdf \.svg \.png \.html, but 'a\.jpg' ends in '\.jpg'"
    ):
        save(draw(dataset(), "matrix"), tmp_path / "a.jpg")
    with pytest.raises(
        OutputError, match=r"A Dataset is saved as \.nc \.zarr \.csv \.parquet \.html, but 'a' has no ending\."
    ):
        save(dataset(), tmp_path / "a")


def test_only_datasets_and_figures_are_saved(tmp_path):
    with pytest.raises(
        InputError,
        match="Importances, examples, a model or a matplotlib figure can be saved, but got a list",
    ):
        save([1], tmp_path / "a.nc")


def test_text_that_no_file_can_hold_raises(tmp_path):
    with pytest.raises(OutputError, match="This Dataset does not fit into a NetCDF file"):
        save(measured(types=["a", "\ud83d"]), tmp_path / "a.nc")
    assert not list(tmp_path.iterdir())


def test_a_missing_file_raises(tmp_path):
    with pytest.raises(InputError, match=r"a\.nc: there is nothing of that name\. Give the path of a \.nc file\."):
        open_result(tmp_path / "a.nc")
    with pytest.raises(InputError, match="there is a folder of that name"):
        open_result(tmp_path)


def test_a_file_of_another_kind_raises(tmp_path):
    (tmp_path / "a.nc").write_text("not a NetCDF file")
    with pytest.raises(
        InputError, match=r"a\.nc: it is not a NetCDF file that headscope wrote, or it is damaged\. Copy it"
    ):
        open_result(tmp_path / "a.nc")


def test_a_file_of_another_program_raises(tmp_path):
    xr.Dataset({"x": 1}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(InputError, match=r"but not one that headscope wrote .it has no attribute 'headscope'"):
        open_result(tmp_path / "a.nc")


def test_any_matplotlib_figure_can_be_saved(tmp_path):
    figure = Figure()
    figure.subplots().plot([1, 2])
    assert "<title>headscope</title>" in save(figure, tmp_path / "a.html").read_text()
    assert matplotlib.rcParams["svg.hashsalt"] is None


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("data", [dataset("中(1/3) שלום 😀"), measured(), measured(rows=False, types=["a"])])
def test_a_zarr_folder_comes_back_as_it_was(data, tmp_path):
    back = open_result(save(data, tmp_path / "a.zarr"))
    xr.testing.assert_identical(back, data)
    assert files(tmp_path / "a.zarr") == files(save(data, tmp_path / "b.zarr"))


def test_a_new_zarr_folder_replaces_an_existing_one(tmp_path):
    path = save(measured(layers=4), tmp_path / "a.zarr")
    save(measured(), path, overwrite=True)
    xr.testing.assert_identical(open_result(path), measured())
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_zarr_folder_survives_any_failure(tmp_path, monkeypatch):
    path = save(measured(), tmp_path / "a.zarr")
    before = files(path)

    real, written = Path.write_bytes, []

    def interrupted(self, content):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(self)
        return real(self, content)

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(measured(seed=1), path, overwrite=True)
    assert files(path) == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_with_other_content_is_never_replaced(tmp_path):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "thesis.txt").write_text("kept")
    with pytest.raises(OutputError, match=r"a\.zarr: a folder of that name holds something else\. Give another path\."):
        save(measured(), tmp_path / "a.zarr")
    assert files(tmp_path) == {Path("a.zarr/thesis.txt"): b"kept"}


def test_a_zarr_folder_with_missing_chunks_raises(tmp_path):
    path = tmp_path / "a.zarr"
    measured().to_zarr(path, zarr_format=2, consolidated=True, write_empty_chunks=True)  # as before checksums
    next((path / "entropy").glob("0*")).unlink()
    with pytest.raises(InputError, match=r"a\.zarr: 1 of its files are missing\. Copy the whole folder again\."):
        open_result(path)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "there is nothing of that name"),
        (lambda path: path.touch(), "there is a file of that name"),
        (lambda path: path.mkdir(), r"there is a folder without Zarr data of that name\. Give the path of a \.zarr"),
        (lambda path: xr.Dataset({"x": 1}).to_zarr(path, zarr_format=2), "it is a Zarr folder, but not one that"),
        (
            lambda path: (path.mkdir(), (path / ".zgroup").write_text("no")),
            "it is not a Zarr folder that headscope wrote",
        ),
    ],
)
def test_other_zarr_folders_raise(make, sentence, tmp_path):
    make(tmp_path / "a.zarr")
    with pytest.raises(InputError, match=sentence):
        open_result(tmp_path / "a.zarr")


@pytest.mark.parametrize(("ending", "extra_name"), [("zarr", "zarr"), ("parquet", "parquet")])
def test_a_missing_package_is_named_with_its_install_command(ending, extra_name, tmp_path, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(errors, "import_module", absent)
    with pytest.raises(MissingExtra, match=rf"Install it with: pip install 'headscope\[{extra_name}\]'"):
        save(measured(rows=False), tmp_path / f"a.{ending}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_opening_a_table_raises_and_names_its_reader(ending, tmp_path):
    path = save(measured(rows=False), tmp_path / f"a.{ending}")
    with pytest.raises(InputError, match=rf"table for other tools\. Read it with pandas\.read_{ending}, or open the"):
        open_result(path)

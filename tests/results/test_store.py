import errno
import os
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.errors import DataWarning, InputError, OutputError
from headscope.results import store
from headscope.results.draw import draw
from headscope.results.store import open_result, save
from tests.figures.data import dataset

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


def test_an_opened_file_is_free_again(tmp_path):
    path = save(dataset(), tmp_path / "a.nc")
    data = open_result(path)
    path.unlink()
    assert data["weights"].sum() > 0


def test_missing_folders_are_made(tmp_path):
    assert save(dataset(), tmp_path / "new" / "folder" / "a.nc").exists()


def test_endings_may_be_in_capitals(tmp_path):
    assert save(draw(dataset()), tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")


def test_a_page_needs_nothing_else(tmp_path):
    page = save(draw(dataset()), tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert '<meta charset="utf-8">' in page
    assert "<title>raw · L0H0</title>" in page
    assert "<script" not in page
    assert "src=" not in page


def test_a_file_says_nothing_of_the_time(tmp_path):
    figure = draw(dataset())
    assert b"CreationDate" not in save(figure, tmp_path / "a.pdf").read_bytes()
    assert b"dc:date" not in save(figure, tmp_path / "a.svg").read_bytes()


def test_characters_without_a_font_are_shown_as_code_points_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(store.fonts, "_glyphs", lambda: frozenset(range(128)))
    figure = draw(dataset(FOREIGN))
    with pytest.warns(DataWarning, match=r"^2 characters have no glyph .* such as U\+4E2D\. Save it as \.svg"):
        save(figure, tmp_path / "a.png")
    assert figure.axes[0].get_yticklabels()[1].get_text() == "U+4E2D(1/3)"


def test_the_browser_shows_every_character(tmp_path, monkeypatch):
    monkeypatch.setattr(store.fonts, "_glyphs", lambda: frozenset(range(128)))
    figure = draw(dataset(FOREIGN))
    for ending in ("svg", "html"):
        text = save(figure, tmp_path / f"a.{ending}").read_text(encoding="utf-8")
        assert ">中(1/3)</text>" in text
        assert "U+4E2D" not in text
    assert figure.get_layout_engine() is not None


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_an_older_file_survives_whatever_happens(stop, tmp_path, monkeypatch):
    path = save(dataset(), tmp_path / "a.nc")
    before = path.read_bytes()

    def interrupted(data: xr.Dataset, part: Path) -> None:
        part.write_bytes(b"half")
        raise stop

    monkeypatch.setattr(store, "_write_netcdf", interrupted)
    with pytest.raises(stop):
        save(dataset("other words"), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_may_be_read_by_others_as_usual(tmp_path):
    (tmp_path / "usual").touch()
    assert save(dataset(), tmp_path / "a.nc").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_write_netcdf", unwritable(errno.ENOSPC))
    with pytest.raises(OutputError, match=r"a\.nc: the disk is full\. Make room, or give a path on another disk\."):
        save(dataset(), tmp_path / "a.nc")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_that_may_not_be_written_is_said(code, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_write_netcdf", unwritable(code))
    with pytest.raises(OutputError, match=r"you may not write there\. Give a path in a folder that is yours\."):
        save(dataset(), tmp_path / "a.nc")


def test_a_file_in_place_of_a_folder_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"Cannot write .*a\.nc: .*\. Give another path\."):
        save(dataset(), tmp_path / "file" / "a.nc")


def test_a_folder_in_place_of_the_file_is_said(tmp_path):
    (tmp_path / "a.nc").mkdir()
    with pytest.raises(OutputError, match=r"Cannot write .*a\.nc: is a directory\. Give another path\."):
        save(dataset(), tmp_path / "a.nc")


def test_an_unknown_ending_is_said(tmp_path):
    with pytest.raises(
        OutputError, match=r"A figure is saved as \.pdf \.svg \.png \.html, but 'a\.jpg' ends in '\.jpg'"
    ):
        save(draw(dataset()), tmp_path / "a.jpg")
    with pytest.raises(OutputError, match=r"A Dataset is saved as \.nc, but 'a' has no ending\. Change the ending\."):
        save(dataset(), tmp_path / "a")


def test_only_datasets_and_figures_are_saved(tmp_path):
    with pytest.raises(InputError, match="Only a Dataset or a matplotlib figure can be saved, but got a list"):
        save([1], tmp_path / "a.nc")


def test_text_that_no_file_can_hold_is_said(tmp_path):
    with pytest.raises(OutputError, match="This Dataset does not fit into a NetCDF file"):
        save(dataset("a \ud83d"), tmp_path / "a.nc")
    assert not list(tmp_path.iterdir())


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(InputError, match=r"a\.nc: there is nothing of that name\. Give the path of a \.nc file\."):
        open_result(tmp_path / "a.nc")
    with pytest.raises(InputError, match="there is a folder of that name"):
        open_result(tmp_path)


def test_a_file_of_another_kind_is_said(tmp_path):
    (tmp_path / "a.nc").write_text("not a NetCDF file")
    with pytest.raises(InputError, match=r"a\.nc: it is not a NetCDF file that headscope wrote\."):
        open_result(tmp_path / "a.nc")


def test_a_file_of_someone_else_is_said(tmp_path):
    xr.Dataset({"x": 1}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(InputError, match=r"but not one that headscope wrote .it has no attribute 'headscope'"):
        open_result(tmp_path / "a.nc")


def test_any_matplotlib_figure_can_be_saved(tmp_path):
    figure = Figure()
    figure.subplots().plot([1, 2])
    assert "<title>headscope</title>" in save(figure, tmp_path / "a.html").read_text()
    assert matplotlib.rcParams["svg.hashsalt"] is None

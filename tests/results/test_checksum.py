"""A file that is not what headscope wrote is refused; files from before checksums are read."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

from headscope.core import checksum
from headscope.core.errors import InputError
from headscope.core.provenance import stamp
from headscope.results import isolation
from headscope.results.netcdf import MARKER
from headscope.results.store import open_result, save
from tests.figures.data import measured
from tests.results.in_child import crash, loop, succeed

CHANGED = re.escape(
    "it changed since headscope wrote it (its checksum differs). If it is damaged, copy or make it again. If you "
    "changed it by another program, open it with xarray.open_dataset, and write it with hs.save."
)
RESULTS = sorted((Path(__file__).parents[2] / "docs" / "results").glob("*.nc"))


def write_older(data, path):
    """Write a result as versions without checksums did."""
    if path.suffix == ".nc":
        data.to_netcdf(path, engine="h5netcdf", format="NETCDF4")
    else:
        data.to_zarr(path, zarr_format=2, consolidated=True, write_empty_chunks=True)
    return path


@pytest.mark.parametrize("position", [0.1, 0.5, 0.9, 0.999])
def test_one_flipped_bit_is_noticed(position, tmp_path):
    path = save(measured(), tmp_path / "a.nc")
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=CHANGED):
        open_result(path)


def test_one_flipped_bit_of_a_chunk_is_noticed(tmp_path):
    path = save(measured(), tmp_path / "a.zarr")
    chunk = next((path / "entropy").glob("0*"))
    content = bytearray(chunk.read_bytes())
    content[-1] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(InputError, match=CHANGED):
        open_result(path)


def test_a_missing_chunk_is_noticed_and_a_file_of_the_system_is_not(tmp_path):
    path = save(measured(), tmp_path / "a.zarr")
    (path / ".DS_Store").touch()
    (path / "entropy" / ".DS_Store").touch()
    xr.testing.assert_identical(open_result(path), measured())
    next((path / "entropy").glob("0*")).unlink()
    with pytest.raises(InputError, match=CHANGED):
        open_result(path)


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_a_result_that_xarray_wrote_again_is_not_taken_for_the_original(ending, tmp_path):
    path = save(measured(), tmp_path / f"a.{ending}")
    data = xr.load_dataset(path) if ending == "nc" else xr.open_zarr(path).load().drop_encoding()
    changed = write_older(data.assign(entropy=data["entropy"] * 2), tmp_path / f"b.{ending}")
    with pytest.raises(InputError, match=CHANGED):
        open_result(changed)
    back = open_result(save(data, tmp_path / f"c.{ending}"))
    xr.testing.assert_identical(back, measured())


def test_a_file_that_hdf5_changed_in_place_is_refused(tmp_path):
    path = save(measured(), tmp_path / "a.nc")
    with h5py.File(path, "r+") as file:
        file["entropy"][...] = 0
        file.attrs["note"] = "changed"
    with pytest.raises(InputError, match=CHANGED):
        open_result(path)


def test_plain_xarray_reads_the_file(tmp_path):
    path = save(measured(), tmp_path / "a.nc")
    data = xr.load_dataset(path)
    assert data.attrs.pop(MARKER) == "SHA-256 of the file, at its end"
    xr.testing.assert_identical(data, measured())


def test_the_text_of_a_checksum_in_the_data_does_not_confuse(tmp_path):
    data = stamp(xr.Dataset({"x": 1.0}), note=checksum.PLACEHOLDER)
    for ending in ("nc", "zarr"):
        xr.testing.assert_identical(open_result(save(data, tmp_path / f"a.{ending}")), data)


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_a_result_from_before_checksums_is_read(ending, tmp_path):
    xr.testing.assert_identical(open_result(write_older(measured(), tmp_path / f"a.{ending}")), measured())


def test_committed_results_are_read():
    assert RESULTS
    assert all("headscope" in open_result(path).attrs for path in RESULTS[:3])


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_few_bytes_that_fill_the_memory_are_refused_and_never_written(ending, tmp_path, monkeypatch):
    data = stamp(xr.Dataset({"x": ("row", np.zeros(1_000_000))}), command="test")
    bomb = save(data, tmp_path / f"bomb.{ending}")
    monkeypatch.setattr(checksum, "UNCHECKED_SIZE", 1000)
    with pytest.raises(InputError, match=r"or it is damaged\. Copy it again, or make it again\."):
        open_result(bomb)
    xr.testing.assert_identical(open_result(save(data, tmp_path / f"a.{ending}")), data)


def test_a_crash_happens_in_the_child(tmp_path, monkeypatch):
    path = save(measured(), tmp_path / "a.nc")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    isolation.check_in_child(path, succeed)
    with pytest.raises(checksum.DamagedFile, match="It cannot be read"):
        isolation.check_in_child(path, crash)
    isolation.check_in_child(path, succeed)


def test_an_endless_loop_ends_in_the_child(tmp_path, monkeypatch):
    path = save(measured(), tmp_path / "a.nc")
    monkeypatch.setattr(isolation, "CODE", "from headscope.results import isolation as i; i.SECONDS = 1; i.serve()")
    isolation._stop()
    isolation.check_in_child(path, succeed)
    with pytest.raises(checksum.DamagedFile, match="It cannot be read"):
        isolation.check_in_child(path, loop)
    isolation._stop()


def test_a_result_of_zarr_can_be_saved_again(tmp_path):
    data = open_result(save(measured(), tmp_path / "a.zarr"))
    xr.testing.assert_identical(open_result(save(data, tmp_path / "b.zarr")), measured())


def test_without_a_child_files_are_read_all_the_same(tmp_path, monkeypatch):
    isolation._stop()
    monkeypatch.setattr(isolation.sys, "executable", "")
    xr.testing.assert_identical(open_result(write_older(measured(), tmp_path / "a.nc")), measured())


def test_a_child_that_ended_is_started_again(tmp_path):
    path = write_older(measured(), tmp_path / "a.nc")
    open_result(path)
    isolation._child.kill()
    xr.testing.assert_identical(open_result(path), measured())

"""What an attack of files, links, locks and full disks found."""

import errno
import json
import os
import pickle

import pytest
import xarray as xr

from headscope.core.errors import InputError, OutputError
from headscope.measuring.checkpoint import Checkpoint, write_checkpoint
from headscope.measuring.merge import merge
from headscope.results import isolation
from headscope.results.atomic import atomic_path
from headscope.results.compare import compare
from headscope.results.lock import lock_output, lock_path
from headscope.results.store import open_result, save
from tests.figures.data import measured
from tests.results.in_child import succeed


@pytest.mark.parametrize("attribute", ["{oops", "[1]", "null", "", "[" * 100_000, 5])
def test_provenance_that_is_no_json_object_is_refused(attribute, tmp_path):
    path = save(measured().assign_attrs(headscope=attribute), tmp_path / "a.nc")
    with pytest.raises(InputError, match=r"a\.nc: its attribute 'headscope' is not what headscope wrote\."):
        open_result(path)


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"Cannot open .*: file name too long\. Give another path\."):
        open_result(tmp_path / ("x" * 300 + ".nc"))


@pytest.mark.parametrize("inputs", [("a.nc", measured()), (measured(), None)])
def test_only_datasets_are_compared(inputs):
    with pytest.raises(InputError, match=r"compares two Datasets .* Open a file with hs\.open_result\."):
        compare(*inputs)


def test_a_link_to_a_folder_stays_and_its_folder_is_replaced(tmp_path):
    pytest.importorskip("zarr")
    save(measured(), tmp_path / "a.zarr")
    (tmp_path / "link.zarr").symlink_to("a.zarr")
    save(measured().assign(entropy=measured()["entropy"] + 1), tmp_path / "link.zarr", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "link.zarr"]
    assert (tmp_path / "link.zarr").is_symlink()
    xr.testing.assert_equal(open_result(tmp_path / "a.zarr")["entropy"], measured()["entropy"] + 1)


class RunsCode:
    """What makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "x")


@pytest.mark.parametrize(
    "codecs",
    [
        {"filters": [{"id": "vlen-utf8"}, {"id": "pickle"}], "compressor": None},
        {"filters": [{"id": "vlen-utf8"}], "compressor": {"id": "pic\\u006ble"}},
    ],
)
def test_a_zarr_folder_with_pickled_arrays_is_refused_before_they_are_read(codecs, tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    monkeypatch.setattr("headscope.results.zarr_folder.check_in_child", lambda path, load: load(path))
    array = tmp_path / "a.zarr" / "x"
    array.mkdir(parents=True)
    (array.parent / ".zgroup").write_text('{"zarr_format": 2}')
    facts = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "fill_value": "", "order": "C", **codecs}
    (array / ".zarray").write_text(json.dumps(facts).replace("\\\\", "\\"))
    (array / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["a"]}')
    (array / "0").write_bytes(pickle.dumps(RunsCode(tmp_path / "made")))
    with pytest.raises(InputError, match=r"a\.zarr: an array in it is pickled, and reading it could run code\."):
        open_result(array.parent)
    assert not (tmp_path / "made").exists()


def test_a_full_disk_says_how_much_room_is_left(tmp_path):
    sentence = r"m: the disk is full\. Its disk has .* left\. Free some space, or give a path on another disk\."
    with pytest.raises(OutputError, match=sentence), atomic_path(tmp_path / "m") as part:
        part.mkdir()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:.*Its lock is taken over")
def test_a_lock_without_sense_is_taken_over(tmp_path):
    lock_path(tmp_path / "a.nc").write_text("[" * 100_000)
    with lock_output(tmp_path / "a.nc"):
        assert json.loads(lock_path(tmp_path / "a.nc").read_text())["pid"] == os.getpid()


def test_a_lock_whose_answer_was_lost_on_the_network_is_ours(tmp_path, monkeypatch):
    link = os.link

    def lose_answer(source, target):
        link(source, target)
        raise OSError(errno.EIO, "the answer was lost")

    monkeypatch.setattr(os, "link", lose_answer)
    with lock_output(tmp_path / "a.nc"):
        assert lock_path(tmp_path / "a.nc").is_file()
    assert not list(tmp_path.iterdir())


def test_an_interrupted_read_does_not_answer_for_the_next_file(tmp_path, monkeypatch):
    isolation._stop()
    isolation.check_in_child(tmp_path / "a.nc", succeed)
    child = isolation._child
    stdout, lines = child.stdout, []

    class Interrupted:
        def __getattr__(self, name):
            return getattr(stdout, name)

        def readline(self):
            lines.append(None)
            if len(lines) == 2:
                raise KeyboardInterrupt
            return stdout.readline()

    monkeypatch.setattr(child, "stdout", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        isolation.check_in_child(tmp_path / "b.nc", succeed)
    monkeypatch.undo()
    isolation.check_in_child(tmp_path / "c.nc", succeed)


@pytest.mark.parametrize("facts", [{}, {"shard": "x", "n": 1}, {"shard": [1], "n": 1}, {"shard": [1, 1], "n": None}])
def test_states_that_do_not_count_their_shards_are_refused(facts, tmp_path):
    write_checkpoint(Checkpoint(facts, 1, 1), tmp_path / "a.state")
    with pytest.raises(InputError, match=r"a\.state: it is not a state that headscope wrote, or it is damaged\."):
        merge(tmp_path / "a.state")

"""Damaged files of every kind end in one sentence: no traceback, no crash, no endless loop, no other number."""

import json
import os
import sys
import zipfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from headscope.core.checksum import DamagedFile
from headscope.core.errors import InputError
from headscope.core.npz import unpack_arrays
from headscope.core.state import Moments, Rows, State, Total
from headscope.measuring.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from headscope.patterns.classify.cnn import BUNDLED, CnnEnsemble, CnnSettings, PatternNet, read_cnn, write_cnn
from headscope.results.npz import read_npz, write_npz
from headscope.results.store import open_result, save
from tests.figures.data import measured
from tests.results.mutations import mutate

SAMPLE = 60
MANY = int(os.environ.get("HEADSCOPE_FUZZ", "2000"))  # of each kind, in `make soak`


def make_netcdf(folder, *, checked):
    path = save(measured(), folder / "a.nc")
    if not checked:
        measured().to_netcdf(path, engine="h5netcdf", format="NETCDF4")
    return path


def make_zarr(folder, *, checked):
    path = folder / "a.zarr"
    if checked:
        return save(measured(), path)
    measured().to_zarr(path, zarr_format=2, consolidated=True, write_empty_chunks=True)
    return path


def drop_comment(path):
    """Remove the checksum of a zip archive, as older files have none."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b""


def make_state(folder, *, checked):
    path, values = folder / "a.state", np.arange(24.0).reshape(4, 2, 3)
    ids = np.array(["a", "b", "c", "d"])
    leaves = {"x": Moments.from_values(values), "y": Total(values.sum(0)), "z": Rows.from_values(ids, values)}
    state = State("entropy", leaves, {"layer": [0, 1], "head": [0, 1, 2]})
    facts = {"model": "tiny", "shard": [1, 1], "n": 4}
    write_checkpoint(Checkpoint(facts, 3, 7, {("raw", "entropy"): state}, {"id": list("abcd")}), path)
    if not checked:
        drop_comment(path)
    return path


def make_step(folder, *, checked):
    path = write_npz(measured(), folder / "a.npz")
    if not checked:
        drop_comment(path)
    return path


def make_classifier(folder, *, checked):
    path, settings = folder / "a.safetensors", CnnSettings(side=8, widths=(4, 4), strides=(2, 1), middle=4, nets=2)
    torch.manual_seed(0)
    metadata = {"settings": vars(settings), "temperature": 1.5}
    write_cnn(CnnEnsemble((PatternNet(settings), PatternNet(settings)), 8, 1.5, metadata), path)
    if not checked:
        with safe_open(path, "pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        save_file(tensors, path, {"headscope": json.dumps(metadata)})
    return path


def read_state(path):
    checkpoint = read_checkpoint(path)
    arrays = {key: state.arrays() for key, state in checkpoint.states.items()}
    return repr((replace(checkpoint, states={}), arrays))


def read_classifier(path):
    cnn = read_cnn(path, torch.device("cpu"))
    weights = [{key: tensor.tolist() for key, tensor in net.state_dict().items()} for net in cnn.nets]
    return repr((weights, cnn.side, cnn.temperature, dict(cnn.metadata)))


def read_dataset(path):
    return json.dumps(open_result(path).to_dict(encoding=False), default=str)


def read_step(path):
    return json.dumps(read_npz(path).to_dict(encoding=False), default=str)


@dataclass(frozen=True)
class Kind:
    make: object
    read: object


KINDS = {
    "netcdf": Kind(make_netcdf, read_dataset),
    "zarr": Kind(make_zarr, read_dataset),
    "state": Kind(make_state, read_state),
    "step": Kind(make_step, read_step),
    "classifier": Kind(make_classifier, read_classifier),
}


def damage(path: Path, seed: int) -> tuple[Path, bytes]:
    """Damage a file, or one file of a folder; return it with its content before."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    file = files[seed % len(files)]
    before = file.read_bytes()
    file.unlink()  # a new file, as a copy would be
    file.write_bytes(mutate(before, seed))
    return file, before


def fuzz(kind: Kind, folder: Path, seeds: range, *, checked: bool) -> Counter:
    """Read damaged files; anything but an InputError or a result fails the test."""
    path, outcomes = kind.make(folder, checked=checked), Counter()
    original = kind.read(path)
    for seed in seeds:
        file, before = damage(path, seed)
        try:
            outcomes["same" if kind.read(path) == original else "other"] += 1
        except InputError as error:
            assert str(error).startswith("Cannot open "), error  # noqa: PT017  (the file may be whole)
            assert "\n" not in str(error)  # noqa: PT017
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed} of {path.suffix} raised {error!r}") from error
        file.unlink()
        file.write_bytes(before)
    assert kind.read(path) == original
    return outcomes


@pytest.mark.parametrize("checked", [True, False], ids=["checked", "older"])
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_ends_in_one_sentence(name, checked, tmp_path):
    outcomes = fuzz(KINDS[name], tmp_path, range(SAMPLE), checked=checked)
    assert outcomes["refused"] >= SAMPLE / 10  # Zarr does not read all of its files
    assert not (checked and outcomes["other"])


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("checked", [True, False], ids=["checked", "older"])
@pytest.mark.parametrize("name", KINDS)
def test_thousands_of_damaged_files_end_in_one_sentence(name, checked, tmp_path, capsys):
    outcomes = fuzz(KINDS[name], tmp_path, range(SAMPLE, SAMPLE + MANY), checked=checked)
    with capsys.disabled():
        sys.stdout.write(f"\n{name}, {'checked' if checked else 'older'}: {dict(outcomes)}\n")
    assert not (checked and outcomes["other"])


def test_the_bundled_classifier_is_verified(tmp_path, monkeypatch):
    content = bytearray(BUNDLED.read_bytes())
    content[-5] ^= 1
    (tmp_path / "cnn.safetensors").write_bytes(content)
    monkeypatch.setattr("headscope.patterns.classify.cnn.BUNDLED", tmp_path / "cnn.safetensors")
    with pytest.raises(InputError, match=r"or it is damaged\. Train one: headscope patterns train\."):
        read_cnn(tmp_path / "cnn.safetensors", torch.device("cpu"))


@pytest.mark.parametrize("name", KINDS)
def test_an_empty_file_ends_in_one_sentence(name, tmp_path):
    path = KINDS[name].make(tmp_path, checked=True)
    if path.is_dir():
        path = path / ".zmetadata"
    path.write_bytes(b"")
    with pytest.raises(InputError, match="damaged|changed"):
        KINDS[name].read(path if path.name != ".zmetadata" else path.parent)


def test_text_that_is_none_is_refused(tmp_path):
    path = make_zarr(tmp_path, checked=False)
    damage(path, 224)  # the name of a lens is no longer UTF-8
    with pytest.raises(InputError, match="or it is damaged"):
        open_result(path)


def test_wrong_counts_of_batches_are_refused(tmp_path):
    for done, total in ((8, 7), (-1, 7), (True, 1)):
        write_checkpoint(Checkpoint({}, done, total), tmp_path / "a.state")
        with pytest.raises(InputError, match="not a state that headscope wrote, or it is damaged. Measure it again"):
            read_checkpoint(tmp_path / "a.state")


def write_arrays(path, shape, zeros):
    """Write an archive of one compressed array of zeros, which declares any shape."""
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({shape},), }}\n".encode()
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as file,
    ):
        file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
        for _ in range(zeros // 1_000_000):
            file.write(bytes(1_000_000))
    return path.read_bytes()


def test_few_bytes_that_fill_the_memory_are_refused(tmp_path):
    content = write_arrays(tmp_path / "a.npz", 400_000_000, 400_000_000)
    assert len(content) < 1_000_000
    with pytest.raises(DamagedFile, match="It expands to far more than its size"):
        unpack_arrays(content)


@pytest.mark.parametrize("shape", [2_000_001, 10**15, -1, "2000000, -1", "2000000.0", "None"])
def test_an_array_of_another_size_than_it_declares_is_refused(shape, tmp_path):
    assert unpack_arrays(write_arrays(tmp_path / "a.npz", 2_000_000, 2_000_000))["x"].shape == (2_000_000,)
    with pytest.raises(DamagedFile):
        unpack_arrays(write_arrays(tmp_path / "a.npz", shape, 2_000_000))

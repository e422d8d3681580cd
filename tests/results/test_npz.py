import numpy as np
import pytest
import xarray as xr

from headscope.core.errors import InputError
from headscope.results.npz import read_npz, write_npz

DATA = xr.Dataset(
    {"value": (("task", "x"), [[1.0, np.nan]], {"units": "m"}), "kind": ("task", ["a b"]), "n": 3},
    coords={"task": ["é"], "x": [1, 2]},
    attrs={"headscope": "{}"},
)


def test_a_dataset_is_read_as_it_was_written(tmp_path):
    xr.testing.assert_identical(read_npz(write_npz(DATA, tmp_path / "a" / "b.npz")), DATA)


def test_a_damaged_file_raises(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="it is no step of a study that headscope wrote, or it is damaged. Delete it"):
        read_npz(tmp_path / "a.npz")

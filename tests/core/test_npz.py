"""Arrays as bytes."""

import numpy as np
import pytest

from headscope.core.checksum import seal_zip
from headscope.core.npz import pack_arrays, unpack_arrays


@pytest.mark.parametrize("compress", [True, False])
def test_the_arrays_come_back_and_no_other(compress):
    arrays = {"numbers": np.arange(6.0).reshape(2, 3), "text": np.array("é")}
    back = unpack_arrays(seal_zip(pack_arrays(arrays, compress=compress)))
    assert set(back) == set(arrays)
    assert all((back[name] == array).all() for name, array in arrays.items())


def test_objects_are_refused_not_pickled():
    with pytest.raises(ValueError, match="The array 'x' holds objects, which would have to be pickled"):
        pack_arrays({"x": np.array([{}], dtype=object)})

"""Memory of long texts."""

import pytest

from benchmarks.long import run_cell


@pytest.mark.soak
@pytest.mark.parametrize("shape", ["bert", "llama"])
def test_a_text_of_8192_tokens_is_measured_in_less_than_2_gb(shape):
    assert run_cell(shape, 8192, "blocks")["peak_gb"] < 2  # one map of all heads is 3.2 GB

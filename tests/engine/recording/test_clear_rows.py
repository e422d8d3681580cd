"""Rows of padding become zero wherever the padding is."""

import pytest
import torch

from headscope.engine.recording.make_trace import _clear_rows


@pytest.mark.parametrize("padding", [[], [4, 5], [0, 1], [1, 4], [0, 1, 2, 3, 4, 5], [0, 5]])
def test_only_masked_rows_are_cleared(padding):
    rows = torch.zeros(2, 1, 6, 1, dtype=torch.bool)
    rows[1, 0, padding] = True
    layer = torch.rand(2, 3, 6, 6) + 1
    layer[1, :, padding] = torch.nan  # a softmax without any key
    expected = layer.masked_fill(rows, 0)
    _clear_rows(layer, rows)
    torch.testing.assert_close(layer, expected, rtol=0, atol=0)

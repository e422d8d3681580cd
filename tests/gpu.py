"""Tests that want a GPU; where there is none they are skipped, and nothing they say is checked."""

import pytest
import torch

gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no GPU here; where there is one: pytest tests/core tests/statistics"
)

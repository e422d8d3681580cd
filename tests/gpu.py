"""Tests that want a GPU; where there is none they are skipped, and nothing they say is checked."""

import pytest
import torch

# The same code runs in other tests on a CPU; these see what only a GPU can show: devices, stacked layers, waiting.
WHY = "no GPU here; where there is one: pytest tests/core tests/effective tests/engine tests/statistics"
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason=WHY)

"""The folder of real data, where it exists."""

from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "shared" / "data"
# They are too large, or may not be redistributed; small samples test the same readers everywhere.
WHY = "real data are not available; with them in ../shared/data: pytest tests"
real = pytest.mark.skipif(not DATA.is_dir(), reason=WHY)

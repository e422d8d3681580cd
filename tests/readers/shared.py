"""Where real data lie, if they do."""

from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "shared" / "data"
# They are too large, or may not be given on: bundled and written samples test the same readers everywhere else.
WHY = "the real data are not beside this clone; with them in ../shared/data: pytest tests"
real = pytest.mark.skipif(not DATA.is_dir(), reason=WHY)

"""Where real data lie, if they do."""

from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "shared" / "data"
real = pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not beside this clone")

"""The first example of the README, and the picture below it."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from headscope.results.store import open_result

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "results" / "what_reaches.nc"


def test_the_readme_session_draws_the_picture_below_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    code += (
        "import numpy; numpy.save('drawn.npy', maps[1].weights[0, 3, 4].numpy())\n"
        "print(*trace.keys.counts.tolist(), trace.values[0].shape[-1])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "compare.pdf").read_bytes().startswith(b"%PDF")
    tokens, size = done.stdout.split()
    assert f"{size} value dimensions a head" in readme
    assert f"a paragraph of {tokens} tokens" in readme
    assert int(tokens) > int(size)
    committed = open_result(PICTURE).sel(lens="effective", layer=3, head=4)
    assert f"{float(committed['share']):.0%}".replace("%", " %") + " of it by norm" in readme
    drawn = np.load(tmp_path / "drawn.npy")
    np.testing.assert_allclose(drawn, committed["weights"], atol=1e-4)  # float32 on another machine

"""The code of docs/training.md runs."""

import re
from pathlib import Path

import numpy as np

from headscope.results.store import open_result

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def test_the_session_of_the_page_runs(tmp_path, monkeypatch):
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL))
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, str(PAGE), "exec"), names)
    assert open_result("score.nc").sizes["example"] == 8
    np.testing.assert_allclose(names["found"]["logits"], names["same"]["logits"], atol=1e-4)  # float32, six layers
    assert names["hs"].capture(names["new"], "the key near the cabinets").visible[0].all()
    assert names["without"].sizes["bleu_count"] == 10

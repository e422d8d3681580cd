"""The code of docs/measuring.md runs."""

import re
from pathlib import Path

from headscope.results.store import open_result

PAGE = Path(__file__).parents[2] / "docs" / "measuring.md"


def test_the_session_of_the_page_runs(tmp_path, monkeypatch):
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(PAGE), "exec"), {})
    assert list(open_result("heads.nc")["lens"].values) == ["raw", "effective"]
    assert (tmp_path / "entropy.pdf").stat().st_size > 1000

"""The code and tables of docs/reading.md."""

import re
from pathlib import Path

import pytest

from headscope.core.catalog import readers
from headscope.core.errors import DataWarning
from headscope.data.reading.columns import IDS, LABELS, SINGLE_TEXTS, TEXT_PAIRS, WORDS

PAGE = (Path(__file__).parents[3] / "docs" / "reading.md").read_text(encoding="utf-8")
FILES = {
    "reviews.csv": "review,stars,place\nWell made.,5,Bonn\nBadly made.,1,Ulm\n",
    "prices.csv": "note;price\nCheap, they say.;3\n",
    "damaged.jsonl": '{"text": "One."}\n{"text": "Tw\n{"text": "Three."}\n',
}


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    scope = {"__name__": "page"}
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    with pytest.warns(DataWarning, match=r"skipped 1 of 3 rows of damaged\.jsonl: line 2: "):
        exec(compile(code, "docs/reading.md", "exec"), scope)
    assert (scope["examples"][1].label, scope["examples"][1].columns["place"]) == (1, "Ulm")
    assert [row.values["text"] for row in scope["Fortune"]()(_sayings(tmp_path)).rows] == ["One.", "Two."]


def _sayings(folder):
    (folder / "a.fortune").write_text("One.\n%\nTwo.")
    return str(folder / "a.fortune")


def test_the_page_lists_every_common_column_name():
    for name in (*SINGLE_TEXTS, *WORDS, *LABELS, *IDS, *(name for pair in TEXT_PAIRS for name in pair)):
        assert name in PAGE, name


def test_the_page_lists_every_format():
    for name in readers.names():
        assert re.search(rf"\"{name}:|\.{name}\"", PAGE), name

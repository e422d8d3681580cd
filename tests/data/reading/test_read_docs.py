"""The page on reading shows what runs."""

import re
from pathlib import Path

import pytest

from headscope.core.catalog import readers
from headscope.core.errors import DataWarning
from headscope.data.reading.columns import ALONE, IDS, LABELS, TEXTS, WORDS

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
    held = {"__name__": "page"}
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    with pytest.warns(DataWarning, match=r"skipped 1 of 3 rows of damaged\.jsonl: line 2: "):
        exec(compile(code, "docs/reading.md", "exec"), held)
    assert (held["examples"][1].label, held["examples"][1].columns["place"]) == (1, "Ulm")
    assert [row.values["text"] for row in held["Fortune"]()(_sayings(tmp_path)).rows] == ["One.", "Two."]


def _sayings(folder):
    (folder / "a.fortune").write_text("One.\n%\nTwo.")
    return str(folder / "a.fortune")


def test_the_page_names_every_column_that_is_looked_for():
    for name in (*ALONE, *WORDS, *LABELS, *IDS, *(each for pair in TEXTS for each in pair)):
        assert name in PAGE, name


def test_the_page_names_every_format():
    for name in readers.names():
        assert re.search(rf"\"{name}:|\.{name}\"", PAGE), name

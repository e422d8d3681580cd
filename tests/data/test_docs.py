"""The code and tables of docs/reading.md."""

import re
from pathlib import Path

import pytest

from headscope.core.catalog import readers
from headscope.core.errors import DataWarning
from headscope.data.reading.examples import IDS, LABELS, SINGLE_TEXTS, TEXT_PAIRS, WORDS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reading.md").read_text(encoding="utf-8")
FILES = {
    "reviews.csv": "review,stars,place\nWell made.,5,Bonn\nBadly made.,1,Ulm\n",
    "prices.csv": "note;price\nCheap, they say.;3\n",
    "reviews.jsonl": '{"text": "It rained."}\n',
    "damaged.jsonl": '{"text": "One."}\n{"text": "Tw\n{"text": "Three."}\n',
}


def run_code(name, folder, monkeypatch):
    """Run the Python code of a page in a folder with FILES, and return its variables."""
    monkeypatch.chdir(folder)
    for file, text in FILES.items():
        (folder / file).write_text(text)
    variables = {"__name__": "page"}
    code = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL))
    exec(compile(code, name, "exec"), variables)
    return variables


def test_the_code_on_reading_and_words_runs(tmp_path, monkeypatch):
    with pytest.warns(DataWarning, match=r"skipped 1 of 3 rows of damaged\.jsonl: line 2: "):
        variables = run_code("reading.md", tmp_path, monkeypatch)
    example = variables["examples"][1]
    assert (example.label, example.columns["place"]) == (1, "Ulm")
    assert variables["words"].queries.text == [["[CLS]", "unbelievable", "tokenizers", ".", "[SEP]"]]
    assert variables["tagged"][0].columns["tags"] == ("PRON", "VERB", "PUNCT")
    assert [row.values["text"] for row in variables["Fortune"]()(_sayings(tmp_path)).rows] == ["One.", "Two."]


def _sayings(folder):
    (folder / "a.fortune").write_text("One.\n%\nTwo.")
    return str(folder / "a.fortune")


def test_the_page_lists_every_common_column_name():
    for name in (*SINGLE_TEXTS, *WORDS, *LABELS, *IDS, *(name for pair in TEXT_PAIRS for name in pair)):
        assert name in PAGE, name


def test_the_page_lists_every_format():
    for name in readers.names():
        assert re.search(rf"\"{name}[:@]|\.{name}\"", PAGE), name

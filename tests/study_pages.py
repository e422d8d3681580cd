"""What the tests of every study's pages in the docs share."""

import re
import runpy
import sys
from importlib.util import find_spec

import pytest

from headscope.core.provenance import read_provenance
from headscope.results.store import open_result


def join_runs(module, folder):
    """Join the runs in the folder `found` with the script of a study, as its committed results are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [module, "join", str(folder / "found"), "--out", str(folder)])
        runpy.run_path(find_spec(module).origin, run_name="__main__")


def check_stamps(folder, names):
    """The result files in a folder have these names, and say what was run."""
    assert {path.name for path in folder.glob("*.nc")} == set(names)
    for path in folder.glob("*.nc"):
        assert {"command", "model", "weights_hash", "data", "n", "version"} <= set(read_provenance(open_result(path)))


def check_page(page, facts, *expected, words=1300):
    """The main page says what is expected, with four figures that are drawn, in fewer words: two screens, captions."""
    text = page.page(facts).decode()
    for sentence in expected:
        assert sentence in text
    pictures = re.findall(r"!\[[^]]+\]\(pictures/([^)]+)\)", text)
    assert len(pictures) == 4
    assert set(pictures) == set(page.draw_pictures(facts))
    assert "nan" not in text
    assert len(text.split()) < words


def count_words(text):
    """Return the number of words that a person reads: not those of tables, pictures, commands and the origin."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return sum(len(line.split()) for line in prose.splitlines() if not line.startswith(("|", "![", "*Made by")))


def check_tables(page, facts, *expected):
    """The page of all tables says what is expected, and shows only figures that are drawn; its text."""
    text = page.tables.page(facts).decode()
    for sentence in expected:
        assert sentence in text
    assert "nan" not in text
    assert set(re.findall(r"\(pictures/([^)]+)\)", text)) <= set(page.draw_table_pictures(facts))
    return text

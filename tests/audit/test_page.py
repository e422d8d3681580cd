"""The page docs/cues.md says what its results say, and these are what the package counts."""

from pathlib import Path

import pytest

from headscope.audit.cues import cues
from headscope.results.store import open_result
from headscope_studies.argument_cues.paper import NOT, PATTERNS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def results():
    return open_result(DOCS / "results" / "cues.nc")


@pytest.mark.parametrize("variant", ["exclusive", "either"])
def test_the_committed_rates_are_those_of_the_bundled_data(variant, results):
    row = cues("arct:dev", ngrams=(1,), variant=variant).sel(cue="not")
    committed = results.sel(variant=variant, split="dev", word="not")
    for name in ("productivity", "productivity_low", "coverage", "applicability"):
        assert float(row[name]) == pytest.approx(float(committed[f"known_{name}"]), abs=1e-12)


def test_the_pattern_of_the_study_is_the_word():
    data = cues("arct:dev", ngrams=(1,), patterns={f"study: {name}": pattern for name, pattern in PATTERNS.items()})
    pattern, word = (data.sel(cue=name) for name in (f"study: {NOT}", "not"))
    assert int(pattern["productive"]) == int(word["productive"])
    assert int(pattern["applicability"]) == int(word["applicability"])


def test_no_cue_of_an_adversarial_or_balanced_set_is_off_chance(results):
    for name in map(str, results["set"].values):
        assert (int(results["left_off"].sel(set=name)) == 0) == ("," in name and not name.endswith("labels")), name


def test_the_page_says_that_the_printed_figures_do_not_come_out():
    page = (DOCS / "cues.md").read_text(encoding="utf-8")
    assert "None of the 8 printed figures for *not* comes out from the data" in page
    assert "the nearest is *not or n't*, `exclusive`" in page

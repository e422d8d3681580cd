"""The pages of the docs on the study sixteen-heads are generated from result files only."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from headscope.results.npz import write_npz
from headscope.results.stamp import read_provenance, stamp
from headscope.results.store import open_result
from headscope.studies.sixteen_heads.claims import CLAIMS, TRANSLATION_CLAIMS
from headscope.studies.sixteen_heads.translation import ALL, SITES
from tests.studies.data import found
from tests.studies.test_page import read_script

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def maker():
    return read_script(DOCS / "sixteen_heads_page.py")


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Two tasks and two seeds of a tiny study, and sites with the same numbers, joined as the docs' own results are."""
    folder = tmp_path_factory.mktemp("joined")
    numbers = found("sixteen_heads")["numbers"]
    facts = read_provenance(numbers)
    numbers = numbers.assign(n=0 * numbers["n"] + 40)  # enough for verdicts
    for seed in (0, 1):
        for task, name in (("rte", "RTE"), ("stsb", "STS-B")):
            data = numbers.assign_coords(task=[name]).expand_dims(seed=[seed], axis=1)
            write_npz(stamp(data, **facts), folder / "found" / f"tiny.{task}.{seed}.numbers.npz")
        for site in (ALL, *SITES):
            data = (
                numbers.drop_dims(["parts", "trained"])
                .drop_vars("majority")
                .assign_coords(task=[site])
                .expand_dims(seed=[seed], axis=1)
            )
            path = folder / "found" / f"translation.{seed}.{site}.sites.npz"
            write_npz(stamp(data, **{**facts, "model": "translation"}), path)
    script = [sys.executable, DOCS / "runs" / "sixteen_heads.py", "join", folder / "found", "--out", folder]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def facts(joined, maker):
    return maker.said.read_facts(joined)


def test_runs_are_joined_into_stamped_files(joined):
    names = {"sixteen_heads_tiny.nc", "sixteen_heads_translation.nc"}
    assert {path.name for path in joined.glob("*.nc")} == names
    for name in names:
        stamped = read_provenance(open_result(joined / name))
        assert {"command", "model", "weights_hash", "data", "n", "version"} <= set(stamped)
    whole, one = open_result(joined / "sixteen_heads_tiny.nc"), found("sixteen_heads")["numbers"]
    assert (whole["task"].values.tolist(), whole["seed"].values.tolist()) == (["RTE", "STS-B"], [0, 1])
    xr.testing.assert_allclose(whole["head_importance"].isel(task=1, seed=1, drop=True),
                               one["head_importance"].isel(task=0, drop=True), rtol=1e-5)  # fmt: skip


def test_the_page_answers_in_words_and_numbers_with_four_figures(facts, maker):
    text = maker.page(facts).decode()
    for said in (
        f"{2 * len(CLAIMS)} verdicts on {len(CLAIMS)} claims for 2 pairs of a model and a task: ",
        f"{4 * len(TRANSLATION_CLAIMS)} verdicts on {len(TRANSLATION_CLAIMS)} claims for 4 sites of a model",
        "have a significant effect when they are removed alone",
        "so much is left when heads are pruned",
        "Not shown to have learned their task: tiny (",
        "judged by plain 95 % intervals, each by itself, ",
        "without 60 % of encoder–decoder heads",
        "verdicts hold with all of them halved",
    ):
        assert said in text, said
    pictures = re.findall(r"!\[[^]]+\]\(pictures/([^)]+)\)", text)
    assert len(pictures) == 4
    assert set(pictures) <= set(maker.drawn(facts))
    assert "nan" not in text
    assert len(text.split()) < 1500  # two screens and the captions


def test_without_a_model_that_translates_the_page_says_so(facts, maker):
    text = maker.page(type(facts)(facts.measured)).decode()
    assert "No model that translates was studied." in text
    assert "sixteen_heads_translation.svg" not in text


def test_all_tables_are_on_a_page_of_their_own(facts, maker):
    ((main, _), (tables, content)) = maker.made(facts)
    assert (main.name, tables.name) == ("sixteen_heads.md", "sixteen_heads_tables.md")
    text = content.decode()
    for said in ("## tiny", "## Translation", "| One head is enough in most layers. |", "2026-11-16"):
        assert said in text, said
    assert "nan" not in text
    assert set(re.findall(r"\(pictures/([^)]+)\)", text)) <= set(maker.drawn(facts))

"""The pages of the docs on the study sixteen-heads are generated from result files only."""

import json

import pytest
import xarray as xr

from headscope.core.provenance import read_provenance, stamp
from headscope.results.npz import write_npz
from headscope.results.store import open_result
from headscope_studies.sixteen_heads.pages import page
from headscope_studies.sixteen_heads.pages.facts import HeadFacts, find_unlearned, list_fewer, list_reduced, read_facts
from headscope_studies.sixteen_heads.translation import ALL, SITES
from tests.study_data import found
from tests.study_pages import check_page, check_stamps, check_tables, count_words, join_runs


@pytest.fixture(scope="module")
def maker():
    return page


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
            if name == "STS-B":  # a task of numbers has no most common label
                data = data.assign(majority=data["majority"] * float("nan"))
            write_npz(stamp(data, **facts), folder / "found" / f"tiny.{task}.{seed}.numbers.npz")
        for site in (ALL, *SITES):
            data = (
                numbers.drop_dims(["parts"])
                .drop_vars("majority")
                .assign_coords(trained=[10, 50])
                .assign(alone_score=0 * numbers["alone_score"] + 0.5)
                .assign_coords(task=[site])
                .expand_dims(seed=[seed], axis=1)
            )
            path = folder / "found" / f"translation.{seed}.{site}.sites.npz"
            write_npz(stamp(data, **{**facts, "model": "translation"}), path)
    trained = {"training": {"facts": {"n": 4000}}}
    (folder / "found" / "translation-0.json").write_text(json.dumps(trained), encoding="utf-8")
    join_runs("headscope_studies.sixteen_heads.runs.sixteen_heads", folder)
    return folder


@pytest.fixture(scope="module")
def facts(joined):
    return read_facts(joined)


def test_runs_are_joined_into_stamped_files(joined):
    check_stamps(joined, {"sixteen_heads_tiny.nc", "sixteen_heads_translation.nc"})
    whole, one = open_result(joined / "sixteen_heads_tiny.nc"), found("sixteen_heads")["numbers"]
    assert (whole["task"].values.tolist(), whole["seed"].values.tolist()) == (["RTE", "STS-B"], [0, 1])
    xr.testing.assert_allclose(
        whole["head_importance"].isel(task=1, seed=1, drop=True),
        one["head_importance"].isel(task=0, drop=True),
        rtol=1e-5,
    )


def test_the_page_answers_in_words_and_numbers_with_four_figures(facts, maker):
    check_page(
        maker,
        facts,
        "of its BLEU",
        "| BLEU left with the best head of the last encoder–decoder layer alone |",
        "are significant after Holm's correction",
        "pairs of program messages",
        "after a tenth, and",
    )


def test_tasks_that_are_not_learned_are_those_whose_interval_reaches_the_most_common_label(facts):
    unlearned = find_unlearned(facts)
    for label, task, data in facts.by_task:
        learned = not float(data["score_low"]) <= float(data["majority"])
        assert (label in [name for name, _, _ in unlearned.get(task, [])]) is not learned
    numbers = {label: data.assign(majority=data["majority"] * float("nan")) for label, data in facts.measured.items()}
    assert find_unlearned(HeadFacts(numbers, facts.sites)) == {}  # a task of numbers has no most common label


def test_only_tasks_with_fewer_inputs_than_there_are_are_reduced(facts):
    assert list_reduced(HeadFacts(_with_whole(facts, 40), facts.sites)) == []
    reduced = list_reduced(HeadFacts(_with_whole(facts, 41), facts.sites))
    assert reduced == [{"task": task, "n": 40, "whole": 41} for task in ("RTE", "STS-B")]


def test_tasks_with_fewer_seeds_are_named_with_their_model(facts):
    data = facts.measured["tiny"]
    parts = {"tiny": data.sel(task=["RTE"]), "tiny-1-seeds": data.sel(task=["STS-B"], seed=[0])}
    assert list_fewer(HeadFacts(parts, facts.sites)) == [{"task": "STS-B", "model": "tiny", "seeds": 1}]
    assert list_fewer(facts) == []


def _with_whole(facts, count):
    return {label: data.assign(whole_dev=0 * data["whole_dev"] + count) for label, data in facts.measured.items()}


def test_all_tables_are_on_a_page_of_their_own(facts, maker):
    check_tables(
        maker,
        facts,
        "## tiny",
        "## Translation",
        "| One head is enough in most layers. |",
        "2026-11-16",
    )


def test_the_page_of_the_docs_is_read_in_a_few_minutes():
    assert count_words(page.page(read_facts()).decode()) < 725


def test_sentences_without_numbers_are_true_of_the_committed_results():
    """The page says so of these results, without a look at others."""
    facts = read_facts()
    translation = {
        claim.text: {task.task: task.verdict for task in claim.tasks} for claim in facts.judged_all["translation"]
    }
    assert translation["The last encoder–decoder layer needs more than one head."]["cross"] == "holds"
    assert translation["Without 60 % of encoder–decoder heads, translation collapses."]["cross"] == "holds"
    assert translation["Without 60 % of self-attention heads, translation survives."]["encoder"] == "holds"
    assert translation["One head in every layer, and no other, is not enough."]["all"] == "holds"
    gains = [task.verdict for claim in facts.every if "random pruning" in claim.text for task in claim.tasks]
    assert "holds" not in gains  # no site or task shows it
    cross = facts.sites["best_change"].sel(task="cross").transpose("seed", "layer")
    assert (cross.diff("layer") < 0).all()  # the deeper, the more heads
    assert (facts.sites["best_change_high"].sel(task=["encoder", "cross"]) < 0).all()  # a loss shows in every layer
    assert set(find_unlearned(facts)) == {"RTE"}
    assert read_provenance(facts.sites)["stored"] == ["decoder"]

"""The pages of the docs on the study dark-secrets are generated from result files only."""

import pytest
import xarray as xr

from headscope.core.provenance import read_provenance, stamp
from headscope.results.npz import write_npz
from headscope.results.store import open_result
from headscope_studies.dark_secrets.claims import CLAIMS, name_related
from headscope_studies.dark_secrets.pages import page
from headscope_studies.dark_secrets.pages.facts import (
    RELATED,
    count_changes,
    find_unlearned,
    list_fewer,
    list_random,
    list_reduced,
    list_special,
    read_facts,
)
from tests.study_data import found
from tests.study_pages import check_page, check_stamps, check_tables, count_words, join_runs


@pytest.fixture(scope="module")
def maker():
    return page


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Two tasks and two seeds of a tiny study, joined as the docs' own results are."""
    folder = tmp_path_factory.mktemp("joined")
    results = found("dark_secrets")
    for part in ("relations", "semantic", "shown_relation"):
        data = results["relations" if part == "semantic" else part]
        data = data.assign(n=0 * data["n"] + 40) if part != "shown_relation" else data
        write_npz(stamp(data, **read_provenance(data)), folder / "found" / f"tiny.{part}.npz")
    numbers = results["numbers"].assign(n=0 * results["numbers"]["n"] + 40)  # enough for verdicts
    for task, name in (("mrpc", "MRPC"), ("sst2", "SST-2")):
        for seed in (0, 1):
            data = numbers.assign_coords(task=[name]).expand_dims(seed=[seed], axis=1)
            write_npz(
                stamp(data, **read_provenance(numbers)), folder / "found" / f"tiny.{task}.{seed}.dark_secrets.npz"
            )
    join_runs("headscope_studies.dark_secrets.runs.dark_secrets", folder)
    return folder


@pytest.fixture(scope="module")
def facts(joined, maker):
    return read_facts(joined)


def test_runs_are_joined_into_stamped_files(joined):
    others = {f"dark_secrets_tiny_{part}.nc" for part in ("relations", "semantic", "shown_relation")}
    check_stamps(joined, {"dark_secrets_tiny.nc", *others})
    whole, one = open_result(joined / "dark_secrets_tiny.nc"), found("dark_secrets")["numbers"]
    assert (whole["task"].values.tolist(), whole["seed"].values.tolist()) == (["MRPC", "SST-2"], [0, 1])
    xr.testing.assert_allclose(
        whole["head_change"].isel(task=0, seed=1, drop=True), one["head_change"].isel(task=0, drop=True), rtol=1e-5
    )


def test_the_page_answers_in_words_and_numbers_with_four_figures(facts, maker):
    check_page(
        maker,
        facts,
        "of the heads of tiny give these two tokens more than half of their attention",
        "| heads without which the score is significantly lower with every seed, over all tasks |",
        "| accuracy on MRPC from pretrained weights, and from random ones",
        "of the changes have p < 0.05",
        "| tiny, MRPC | accuracy |",
        "nor is any for MNLI and QQP",
        "Of three links of meaning",
    )


def test_all_tables_are_on_a_page_of_their_own(facts, maker):
    check_tables(
        maker,
        facts,
        "## tiny",
        "| Disabling some head improves the score. |",
        "| subject |",
        "2026-11-16",
    )


def test_kinds_of_verdicts_that_no_claim_can_have_are_not_shown(facts):
    assert facts.kinds == ("holds", "not reproduced", "undecided", "does not apply")


def test_significant_changes_need_every_seed(facts, maker):
    data = facts.measured["tiny"].copy(deep=True)
    data["head_change"] = data["head_change"] * 0 - 0.1
    data["head_change_p_adjusted"] = data["head_change_p_adjusted"] * 0 + 0.01
    heads = data.sizes["layer"] * data.sizes["head"]
    worse = type(facts)({"tiny": data}, facts.more)
    assert count_changes(worse) == {"tiny": {"changes": 2 * heads, "losses": 2 * heads, "gains": 0}}
    data["head_change_p_adjusted"] = data["head_change_p_adjusted"] + 0.9 * (data["seed"] == 1)
    counts = count_changes(worse)["tiny"]
    assert (counts["losses"], counts["gains"]) == (0, 0)


def test_averages_are_over_the_tasks_of_all_models(facts):
    data = facts.measured["tiny"].copy(deep=True)
    data["special_share"] = 0 * data["special_share"] + xr.where(data["task"] == "MRPC", 0.2, 0.4)
    both = type(facts)({"tiny": data, "other": data.sel(task=["MRPC"])}, facts.more)
    assert both.shared == ["MRPC"]
    assert both.average(lambda part: part["special_share"]) == {
        "tiny": pytest.approx(20),
        "other": pytest.approx(20),
    }
    assert list_special(both)["tiny"] == {"MRPC": pytest.approx(20), "SST-2": pytest.approx(40)}


def test_a_share_that_some_seed_does_not_have_is_left_out(facts):
    data = facts.measured["tiny"].copy(deep=True)
    data["special_share"] = 0 * data["special_share"] + xr.where(data["task"] == "MRPC", float("nan"), 0.4)
    facts = type(facts)({"tiny": data}, facts.more)
    assert facts.average(lambda part: part["special_share"]) == {"tiny": pytest.approx(40)}
    assert list_special(facts) == {"tiny": {"SST-2": pytest.approx(40)}}


def test_models_that_beat_the_most_common_label_have_learned(facts):
    data = facts.measured["tiny"].copy(deep=True)
    for end, value in {"": 0.7, "_low": 0.6, "_high": 0.8}.items():
        data[f"score{end}"] = data[f"score{end}"] * 0 + value
    data["majority"] = data["majority"] * 0 + xr.where(data["task"] == "MRPC", 0.65, 0.55)
    (row,) = find_unlearned(type(facts)({"tiny": data}, facts.more))
    assert row == {"label": "tiny", "task": "MRPC", "score": pytest.approx(0.7), "majority": pytest.approx(0.65)}
    data["majority"] = data["majority"] * float("nan")  # a regression has no most common label
    assert find_unlearned(type(facts)({"tiny": data}, facts.more)) == []


def test_a_reduced_dev_set_is_listed_with_both_sizes(facts):
    (_, row) = list_reduced(type(facts)({"tiny": facts.measured["tiny"].assign(whole_dev=("task", [41, 50]))}, {}))
    assert row == {"task": "SST-2", "n": 40, "whole": 50}
    assert list_reduced(type(facts)({"tiny": facts.measured["tiny"].assign(whole_dev=("task", [40, 40]))}, {})) == []


def test_tasks_with_fewer_seeds_are_listed(facts):
    data = facts.measured["tiny"]
    parts = {"tiny": data.sel(task=["MRPC"]), "tiny-1-seeds": data.sel(task=["SST-2"], seed=[0])}
    assert list_fewer(type(facts)(parts, {})) == [{"task": "SST-2", "seeds": 1}]


def test_a_task_with_fewer_seeds_stands_apart(joined, tmp_path):
    for path in (joined / "found").glob("*.npz"):
        if path.name != "tiny.sst2.1.dark_secrets.npz":
            (tmp_path / "found").mkdir(exist_ok=True)
            (tmp_path / "found" / path.name).write_bytes(path.read_bytes())
    join_runs("headscope_studies.dark_secrets.runs.dark_secrets", tmp_path)
    facts = read_facts(tmp_path)
    assert {label: data.sizes["seed"] for label, data in facts.measured.items()} == {"tiny": 2, "tiny-1-seeds": 1}
    assert list(facts.measured["tiny-1-seeds"]["task"].values) == ["SST-2"]
    assert read_provenance(facts.measured["tiny-1-seeds"])["not_run"] == [1]


def test_the_page_of_the_docs_is_read_in_a_few_minutes():
    assert count_words(page.page(read_facts()).decode()) < 745


def test_sentences_without_numbers_are_true_of_the_committed_results():
    """The page says so of these results, without a look at others."""
    facts = read_facts()
    assert list_random(facts) == ["SST-2", "RTE", "MRPC"]
    bag = page.open_result(page.BAG)
    assert list(bag.train.values) == [facts.models["e5-small"]["train"].sel(task="SST-2"), 67349]
    assert {data.sizes["seed"] for data in facts.measured.values()} == {1, 2, 3}  # QNLI has one, MRPC two
    assert {row["task"] for row in find_unlearned(facts)} == {"RTE"}
    assert len(find_unlearned(facts)) == len(set(facts.names.values()))  # with every model
    random = [data.sel(start="random, fine-tuned") for _, task, data in facts.by_task if task == "STS-B"]
    assert all(float(data["start_score_low"]) > 0 for data in random)
    assert list(facts.related) == list(RELATED)
    assert all(set(results) == set(facts.names.values()) for results in facts.related.values())
    verdicts = {claim.text: facts.cells(claim) for claim in CLAIMS}
    harmed = [cell for text, cells in verdicts.items() if "improves the score" in text for cell in cells.values()]
    assert {cell.verdict for cell in harmed} == {"undecided"}  # a gain is neither shown nor excluded
    third = verdicts["At least a third of the heads attend simply to [CLS] and [SEP]."]
    assert "not reproduced" not in {cell.verdict for (model, _), cell in third.items() if "e5-small" in model}
    learned = verdicts["Fine-tuned from random weights, the model still learns the task, on all tasks but STS-B."]
    assert {task for (_, task), cell in learned.items() if cell.verdict == "holds"} == {"SST-2"}
    for data in (data for _, task, data in facts.by_task if task == "MRPC"):
        margin = float((data["head_change_high"] - data["head_change_low"]).median()) / 2
        assert float((abs(data["head_change"]) < margin).mean()) > 0.5  # more than most changes
    for label, data in facts.related["semantic"].items():  # only pronouns have a head
        (claim, _) = facts.judged_all[name_related("semantic", label)]
        assert [task.task for task in claim.tasks if task.verdict == "holds"] == ["pronoun – antecedent"]
        assert len(claim.tasks) == 3 == data.sizes["task"] - 1
    counts = count_changes(facts)
    assert sum(row["gains"] for row in counts.values()) == 0  # the table has losses only
    vertical = facts.average(lambda data: data["share"].sel(pattern="vertical", lens="raw"))
    special = facts.average(lambda data: data["special_share"])
    assert all(vertical[name] > 50 > special[name] for name in special)  # more than half look vertical

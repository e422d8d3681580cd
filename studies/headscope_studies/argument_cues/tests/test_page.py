"""The pages of the docs on the study argument-cues are generated from result files only."""

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.core.provenance import read_provenance, stamp
from headscope.experiments.describe import describe_study
from headscope.results.hashes import fingerprint_examples
from headscope.results.npz import write_npz
from headscope.results.store import open_result
from headscope_studies.argument_cues import ArgumentCues
from headscope_studies.argument_cues.answers import NETWORKS, TUNED
from headscope_studies.argument_cues.claims import find_unlearned
from headscope_studies.argument_cues.heads import compare_groups
from headscope_studies.argument_cues.pages import page
from headscope_studies.argument_cues.parts import ALL
from headscope_studies.argument_cues.runs import argument_cues
from tests.study_data import found, place
from tests.study_pages import check_page, check_stamps, check_tables

HEADER = "#id\twarrant0\twarrant1\tcorrectLabelW0orW1\treason\tclaim\tdebateTitle\tdebateInfo"
PARTS = ("warrant", "reason + warrant", "claim + warrant", "all", "all, balanced")


def write_arct(folder):
    """Write a small ARCT whose right warrant has `not` most often, with adversarial copies."""
    for split in ("train", "dev", "test"):
        rows, copies = [], []
        for at in range(60):
            label = at % 2
            warrants = ["it is dry", "it is not wet"] if (at % 5 > 0) == bool(label) else ["it is not wet", "it is dry"]
            row = [f"{split}{at}", *warrants, str(label), f"It rains {at}.", "Stay in", "t", "i"]
            rows.append("\t".join(row))
            copies.append("\t".join([f"{row[0]}-adversarial", *warrants, str(1 - label), row[4], "Go out", "t", "i"]))
        (folder / f"{split}.tsv").write_text("\n".join([HEADER, *rows]), encoding="utf-8")
        (folder / f"{split}-adv-negated.csv").write_text("\n".join([HEADER, *rows, *copies]), encoding="utf-8")
    return folder


def make_run(network, part, seed, points):
    """Return random answers, and random heads where a study has them."""
    random = np.random.default_rng(seed)
    data = xr.Dataset(
        {"prediction": ("point", random.integers(0, 2, points).astype(np.int8)), "learned": 0.9, "checked": 100}
    ).expand_dims(network=[network], part=[part], seed=[seed])
    if network != TUNED or part != ALL:
        return data
    dims, shape = ("example", "lens", "query", "layer", "head"), (40, 3, 2, 2, 3)
    table = xr.DataArray(
        random.random(shape),
        dims=dims,
        coords={"lens": ["raw", "effective", "norm"], "query": ["cls", "all"], "layer": [0, 1], "head": [0, 1, 2]},
    )
    return data.merge(compare_groups(table, np.arange(40) < 20).expand_dims(seed=[seed]))


@pytest.fixture(scope="module")
def maker():
    return page


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Two seeds of random answers, and the audit of other data, joined as the docs' own results are."""
    folder = tmp_path_factory.mktemp("joined")
    arct, base = write_arct(tmp_path_factory.mktemp("arct")), hs.load(place() / "base", device="cpu", dtype="float32")
    study = ArgumentCues(data=str(arct), balanced=True)
    points = [example for examples in study.read_data().sets.values() for example in examples]
    facts = {**describe_study(study, base), "model": "base", "data": fingerprint_examples(points, labels=True)}
    for network in NETWORKS:
        for part in PARTS:
            for seed in (0, 1):
                run = stamp(make_run(network, part, seed, len(points)), **facts)
                write_npz(run, folder / "found" / f"base.{network.replace(' ', '_')}.{part}.{seed}.argument_cues.npz")
    for name in ("numbers", "cues"):
        write_npz(found("argument_cues")[name], folder / "found" / f"audit.toy.{name}.argument_cues.npz")
    options = Namespace(
        folder=folder / "found",
        out=folder,
        arct=arct,
        model=str(place() / "base"),
        limit=None,
        train_limit=None,
        epochs=None,
        device="cpu",
    )
    argument_cues.join(options)
    return folder


@pytest.fixture(scope="module")
def facts(joined, maker):
    return maker.read_facts(joined)


def test_runs_are_joined_into_stamped_files(joined):
    names = {f"argument_cues_base{end}.nc" for end in ("", "_answers", "_heads", "_cues")}
    check_stamps(joined, names | {f"argument_cues_audit_toy_{name}.nc" for name in ("numbers", "cues")})
    whole = open_result(joined / "argument_cues_base.nc")
    assert whole["part"].values.tolist() == list(PARTS)
    assert read_provenance(whole)["seeds"] == [0, 1]


def test_the_page_answers_in_words_and_numbers_with_four_figures(facts, maker):
    check_page(
        maker,
        facts,
        "| right with warrants alone, test | ",
        "With the whole input base is not shown to do better than with warrants alone",
        "“not” in the claim *and* in one warrant is right in",
        "The models answer accordingly: base gets",
        "The others have 90 % of these right",
        words=900,
    )


def test_the_page_on_committed_results_is_short(maker):
    assert len(maker.page(maker.read_facts()).decode().split()) < 900


def with_one_model(facts, **variables):
    """The same facts, but with other numbers of the one model."""
    ((label, data),) = facts.results.items()
    return replace(facts, measured={label: data.assign(variables).expand_dims(task=["ARCT"])})


def test_claims_on_trainings_that_barely_learned_do_not_apply(facts):
    """A training with 55 % of its own examples right says nothing by being at chance elsewhere."""
    data = facts.first
    lost = data["part"] == "all, balanced"
    texts = [
        "Trained where no single word tells the answer, it is at chance there.",
        "Where no single word tells the answer, it is at chance.",
    ]
    for share, applies in ((0.55, False), (0.59, False), (0.61, True)):
        barely = with_one_model(facts, run_learned=data["run_learned"].where(~lost, share))
        verdicts = {claim.text: claim.verdict for claim in barely.every}
        assert [verdicts[text] != "does not apply" for text in texts] == [applies, True]
    reason = find_unlearned(data.assign(run_learned=0 * data["run_learned"] + 0.55), {"trained": "balanced"})
    assert reason == "trainings have 55 % of their own examples right, less than 60 %"


def test_shuffled_answers_follow_no_pair(facts):
    """Random answers are at chance with and without the pair; in this ARCT every point has the cue."""
    assert np.isnan(facts.find_accuracy("base", pair=None)).all()
    for pair in (True, False):
        _, low, high = facts.find_accuracy("base", pair=pair)
        assert low <= 50 <= high


def test_the_page_says_which_input_does_better(facts, maker):
    ends = {"": -0.05, "_low": -0.08, "_high": -0.02}
    worse = {f"gain_change{end}": xr.full_like(facts.first["gain_change"], value) for end, value in ends.items()}
    text = maker.page(with_one_model(facts, **worse)).decode()
    assert "**With warrants alone base does better than with the whole input**, by 5.0 points [2.0, 8.0]" in text
    unsure = maker.page(with_one_model(facts, **{**worse, "gain_change_high": 0 * worse["gain_change"]})).decode()
    assert "base is not shown to do better than with warrants alone: the gain is −5.0 points [−8.0, 0.0]" in unsure


def test_sentences_of_the_page_without_numbers_hold_for_the_committed_results(maker):
    facts = maker.read_facts()
    test = facts.cues.isel(cue=0).sel(split="test")
    assert test["productivity_low"] <= 0.5 <= test["productivity_high"]  # no more than chance in test
    assert all(low <= 0 for _, _, low, _ in facts.gains)  # as good with warrants alone, or better
    assert max(facts.learned_balanced) < 60  # nothing was learned from adversarial data
    assert facts.pair["pair"].item() == "not in claim & not in choices"
    pair = facts.pair.sel(counted=["adversarial", "balanced train"])
    assert pair["pair_productivity_low"].values[0] > 0.5 > pair["pair_productivity_high"].values[1]  # the other way
    for label in facts.results:  # answers go with the pair
        assert facts.find_accuracy(label, pair=True)[1] > 50 > facts.find_accuracy(label, pair=False)[0]
    heads = [claim for claim in facts.every if claim.text.startswith("In some head")]
    assert {task.verdict for claim in heads for task in claim.tasks} == {"undecided"}  # no head is shown
    cells = [claim for claim in facts.every if claim.text.startswith("Its answers follow")]
    assert {task.verdict for claim in cells for task in claim.tasks} == {"holds"}


def test_all_tables_are_on_a_page_of_their_own(facts, maker):
    check_tables(maker, facts, "## base", "## Cues of ARCT", "## Audit of toy", "2026-11-16")

"""The page of the docs is generated from result files only."""

import argparse
import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from headscope.core.document import Picture
from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance, stamp
from headscope.experiments.claims import REFUTED, UNCLEAR, UNDECIDED, TaskVerdict
from headscope.experiments.pages.facts import rank_claims
from headscope.experiments.template import format_range
from headscope.results.npz import write_npz
from headscope_studies.effective_attention.claims import GAINS, LOSES, SINK, SPREAD
from headscope_studies.effective_attention.pages import note, page
from headscope_studies.effective_attention.pages.facts import Facts, PairCount, count_pairs, read_facts
from headscope_studies.effective_attention.pages.null_values import read_null_values
from headscope_studies.effective_attention.pages.pad_positions import read_pad_positions, read_release
from headscope_studies.effective_attention.runs import effective_attention
from tests.study_data import found
from tests.study_pages import check_page, check_stamps, check_tables, join_runs


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Runs of a tiny study of two tasks with two seeds, joined as the docs' own results are."""
    folder = tmp_path_factory.mktemp("joined")
    parts = found("effective_attention")
    for task in ("RTE", "SST-2"):
        for seed in (0, 1):
            numbers = parts["numbers"].assign_coords(task=[task]).expand_dims(seed=[seed], axis=1)
            write_npz(numbers, folder / "found" / f"tiny.{task.lower()}.{seed}.numbers.npz")
        write_npz(stamp(parts["maps"], task_shown=task), folder / "found" / f"tiny.{task.lower()}.0.maps.npz")
    timed = [parts["times"].assign_coords(task=[task]) for task in ("RTE", "SST-2")]
    for label in ("tiny", "bert-base-shape_cpu"):
        timed_as = xr.concat(timed, "task", combine_attrs="override")
        write_npz(timed_as, folder / "found" / f"{label}.times.npz")
    join_runs("headscope_studies.effective_attention.runs.effective_attention", folder)
    return folder


@pytest.fixture(scope="module")
def maker():
    return page


@pytest.fixture(scope="module")
def facts(joined):
    return read_facts(joined)


def test_runs_are_joined_into_stamped_files(joined):
    from headscope.core.provenance import read_provenance
    from headscope.results.store import open_result

    names = ("tiny", "tiny_times", "tiny_maps", "bert-base-shape_cpu_times")
    check_stamps(joined, [f"effective_attention_{name}.nc" for name in names])
    for path in joined.glob("*.nc"):
        assert read_provenance(open_result(path))["n"] == (12 if path.stem.endswith("_times") else 24)
    whole = open_result(joined / "effective_attention_tiny.nc")
    one = found("effective_attention")["numbers"]
    assert whole["share"].dims[:2] == ("task", "seed")
    for seed in (0, 1):
        again = whole["share"].isel(task=1, drop=True).sel(seed=seed, drop=True)
        xr.testing.assert_allclose(again, one["share"].isel(task=0, drop=True), rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda run: run.assign(data_hash=("task", ["other"])), "The seeds of RTE study different inputs"),
        (lambda run: stamp(run, weights_hash="other"), "differ in weights_hash"),
        (lambda run: run.assign_coords(task=["MRPC"]), "Tasks have different seeds"),
    ],
)
def test_runs_that_do_not_belong_together_are_not_joined(tmp_path, change, said):
    numbers = found("effective_attention")["numbers"].assign_coords(task=["RTE"])
    for seed, run in enumerate((numbers, change(numbers))):
        run = run.expand_dims(seed=[seed], axis=1)
        write_npz(run, tmp_path / "found" / f"tiny.{run['task'].item().lower()}.{seed}.numbers.npz")
    with pytest.raises((SystemExit, InputError), match=said):
        effective_attention.join(argparse.Namespace(folder=tmp_path / "found", out=tmp_path, seeds=None))
    assert not list(tmp_path.glob("*.nc"))


def test_the_page_answers_in_words_and_numbers_with_four_figures(facts, maker):
    check_page(
        maker,
        facts,
        "**The paper said** that",
        "**We find** that",
        "**Believe** a picture",
        "tiny were tuned with 2 seeds on RTE and SST-2, 24 inputs each.",
        "of the inputs have at most d tokens",
        words=850,
    )


def test_all_tables_are_on_a_page_of_their_own(facts, maker):
    text = check_tables(
        maker,
        facts,
        "| RTE, the sink |",
        "| SST-2, paper |",
        "| [CLS] to punctuation, sum |",
        "one thread of a CPU (seconds of CPU time), random weights",
        "It was tuned with 2 seeds for each task (1 epoch, batch 8, learning rate 2e-05)",
        "pictures/effective_attention_scaled_thresholds.svg",
        "pictures/effective_attention_sinks.svg",
    )
    assert "**Reduced**" not in text  # all of dev was studied


def test_the_note_and_the_objections_have_their_numbers(facts):
    pages = {name: content.decode() for name, content in note.fill_templates(facts)}
    assert re.findall(r"^\*\*(\d+)\.", pages["objections.md"], re.MULTILINE) == [str(number) for number in range(1, 11)]
    distance = facts.tuned["tiny"]["distance"].sel(lens="paper", task="RTE")
    assert f"| tiny, paper | {float(distance):.3f} |" in pages["note.md"]
    (code,) = re.findall(r"```python\n(.*?)```", pages["note.md"], re.DOTALL)
    exec(compile(code, "note.md", "exec"), {})  # its last line compares A_eff·V with A·V
    assert not any("nan" in text.split() for text in pages.values())


def test_counts_of_pairs_and_changes_follow_from_the_numbers(facts):
    """The same results, but as if effective attention were attention, and so all that paper shows were padding."""
    numbers = facts.measured["tiny"].copy(deep=True)
    for name in ("sink_mean", "weight", "type_weight", "counted", "dispersion"):
        for end in ("", "_low", "_high"):
            numbers[f"{name}_change{end}"] = numbers[f"{name}_change{end}"] * 0
    lost = numbers["sink_mean"].sel(lens="raw", drop=True)
    numbers["n"] = 100 * numbers["n"]  # enough to be judged
    for end in ("", "_low", "_high"):
        numbers[f"sink_mean{end}"] = numbers["sink_mean"]
        numbers[f"sink_mean_change{end}"] = -0.9 * lost.where(numbers["lens"] == "paper", 0)
    same = Facts({"tiny": numbers})
    assert same.count_pairs(SINK, REFUTED) == PairCount(2, 2, None)  # there is one model only
    short = int((numbers["n"].sel(length="at most d").isel(seed=0) > 0).sum())
    refuted, holding = same.losses_by_size
    assert (refuted["the sink"].count, holding["the sink"].count) == (short, 0)
    assert (SINK.text.rstrip("."), 2, 2) in rank_claims(same, REFUTED)
    assert format_range(same.change("sink_mean", "effective")) == "0 %"
    assert format_range(same.change("sink_mean", "paper")) == "−90 %"
    assert "time" not in same.judged_all


def test_pairs_of_one_model_of_several_are_named():
    cells = {(name, "RTE"): TaskVerdict("RTE", verdict, "") for name, verdict in {"a": REFUTED, "b": "holds"}.items()}
    assert count_pairs(cells, REFUTED) == PairCount(1, 2, "a")
    assert count_pairs(cells, REFUTED, "holds") == PairCount(2, 2, None)
    assert count_pairs(cells, "undecided") == PairCount(0, 2, None)


def test_sentences_of_the_pages_without_numbers_hold_for_the_committed_results():
    facts, random = read_facts(), read_null_values().whole
    assert set(facts.seeds.values()) == {3}  # in all models
    assert facts.twins == {"e5-small": facts.tasks}  # all tasks
    assert facts.most_changed("effective") == facts.most_changed("padded") == 0 < facts.most_changed("paper")
    assert facts.times.attrs["device"] == "cpu"
    gains = [claim for claim in GAINS if claim.text.startswith(("Noun", "Verb"))]  # nouns and verbs gain nowhere
    assert not {verdict for claim in gains for verdict in facts.verdicts(claim)} & {*facts.exact, REFUTED}
    assert not {*facts.verdicts(LOSES["punctuation"])} & {*facts.exact, REFUTED}  # punctuation loses nowhere
    _, longer = facts.losses_by_size  # on short inputs nothing is lost, on longer ones the sink loses
    assert abs(facts.change("sink_mean", "effective", "at most d")).max() < 1
    assert longer["the sink"].count > longer["the sink"].total / 2
    assert [kinds[0][0] for kinds in facts.sinks.values()] == ["[CLS]"] * 3  # most often the sink
    for end in ("", "_low", "_high"):  # random values disperse attention as much as the model's
        assert (abs(random[f"dispersion_beyond{end}"]) < SPREAD.value).all()


def test_padding_as_in_bert_changes_mpnet_as_much_as_the_other_models():
    pads, facts = read_pad_positions(), read_facts()
    assert pads.tasks == facts.tasks
    own, distinct = (np.array(pads.distances(lens)) for lens in ("paper", "paper, distinct"))
    assert (distinct > own).all()
    shares = {
        lens: np.mean([cell.verdict == REFUTED for cell in cells.values()]) for lens, cells in pads.verdicts.items()
    }
    assert abs(shares["paper, distinct"] - 0.5) < 0.1 > shares["paper"]  # about half
    others = [float(facts.tuned[label]["distance"].sel(lens="paper").min()) for label in list(facts.tuned)[:2]]
    assert distinct.min() > min(others)
    assert pads.provenance["weights_hash"] == read_provenance(facts.measured["all-mpnet-base-v2"])["weights_hash"]


def test_the_release_differs_after_the_first_layer_only():
    apart = read_release().results["apart"]
    assert float(apart.isel(layer=0).max()) < 1e-5
    assert min(read_release().distances) > 1


def test_choices_are_counted_by_what_is_unclear():
    facts = read_facts()
    counts = facts.choice_counts
    assert (counts.sum(axis=1) == facts.tests).all()  # one choice changes verdicts, and not what applies
    assert counts.iloc[0][[f"undecided: {reason}" for reason in UNCLEAR]].sum() == facts.counts[UNDECIDED]
    assert counts.loc["the first seed alone", "undecided: seeds differ"] == 0
    assert counts.loc["no correction for many verdicts"].iloc[:4].sum() > counts.iloc[0].iloc[:4].sum()
    assert facts.collapsed == [("all-MiniLM-L6-v2", "RTE", 0), ("e5-small", "RTE", 2)]


def test_verdicts_that_depend_on_the_seed_are_counted(facts):
    numbers = facts.measured["tiny"].copy(deep=True)
    numbers["n"] = 100 * numbers["n"]  # enough to be judged
    for end in ("", "_low", "_high"):
        numbers[f"sink_mean{end}"] = numbers["sink_mean"]
        change = numbers[f"sink_mean_change{end}"]
        numbers[f"sink_mean_change{end}"] = xr.where(numbers["seed"] == 1, -abs(numbers["sink_mean"]), 0 * change)
    changed = Facts({"tiny": numbers})
    assert changed.unstable == 2  # the sink on both tasks


def test_changes_in_per_cent_are_those_of_each_seed_united(facts):
    numbers = facts.measured["tiny"].copy(deep=True)
    for end in ("", "_low", "_high"):  # the second seed has five times the weight, and the same change
        scaled = xr.where(numbers["seed"] == 1, 5, 1)
        numbers[f"sink_mean{end}"] = numbers[f"sink_mean{end}"] * scaled
    united = Facts({"tiny": numbers}).relative("tiny", "sink_mean")
    each = [Facts({"tiny": numbers.isel(seed=[seed])}).relative("tiny", "sink_mean") for seed in (0, 1)]
    xr.testing.assert_allclose(united["value"], (each[0]["value"] + each[1]["value"]) / 2)
    xr.testing.assert_allclose(each[0]["value"], 5 * each[1]["value"])
    known = united["low"].notnull()
    assert known.any()
    for seed in each:
        assert ((seed["low"] >= united["low"]) | ~known).all()
        assert ((seed["high"] <= united["high"]) | ~known).all()


def test_every_model_has_a_report(joined):
    ((name, document),) = page.list_reports(joined)
    assert name == "effective_attention_tiny"
    assert {part.name for section in document.sections for part in section.parts if isinstance(part, Picture)} >= {
        *(f"figure_{number}" for number in range(1, 8)),
        "sink_by_layer",
        "scaled_thresholds",
    }


def test_numbers_are_printed_with_their_intervals(maker):
    frame = pd.DataFrame({"x": [0.5, np.nan], "x_low": [0.4, np.nan], "x_high": [0.6, np.nan], "name": ["a", "b"]})
    text = maker.tables.format_intervals(frame, ".1f", ("x",))
    assert text.to_dict("list") == {"x": ["0.5 [0.4, 0.6]", ""], "name": ["a", "b"]}

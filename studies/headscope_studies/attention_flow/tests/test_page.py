"""The page of the docs on attention flow is generated from result files only."""

import re

import numpy as np
import pytest
import xarray as xr

from headscope.core.provenance import read_provenance, stamp
from headscope.experiments.claims import MOOT
from headscope.experiments.pages import facts as study_facts
from headscope.experiments.seeds import join_seeds
from headscope.experiments.thresholds import count_scaled
from headscope.results.npz import write_npz
from headscope.results.store import open_result
from headscope_studies.attention_flow.claims import CLAIMS, LOW
from headscope_studies.attention_flow.pages import page
from headscope_studies.attention_flow.pages.facts import (
    FlowFacts,
    list_gains,
    list_script_gains,
    list_steps,
    list_tuned_scores,
    measure_attractors,
    read_facts,
)
from headscope_studies.attention_flow.paper import ACCURACY, BLANK_OUT, LOGGED
from headscope_studies.attention_flow.published import SCRIPT, STEPS
from headscope_studies.attention_flow.report import measure_saturation
from tests.study_data import found
from tests.study_pages import check_page, check_stamps, check_tables, join_runs

SATURATED = 99
"""Percent of tokens that get the same flow from every position, above which a map is one ranking of tokens."""


def count_true(facts: FlowFacts, text: str) -> str:
    """Return for how many pairs to which it applies the claim that begins so holds, such as 2 of 3."""
    (claim,) = [claim for claim in CLAIMS if claim.text.startswith(text)]
    return facts.count(claim, *facts.exact)


def list_saturated(facts: FlowFacts) -> list[str]:
    """Return the models whose last map of flow is one ranking of input tokens on every task."""
    shares = {label: measure_saturation(data)["same_for_sources"] for label, data in facts.models.items()}
    return [label for label, share in shares.items() if float(share.min()) > SATURATED]


@pytest.fixture(scope="module")
def maker():
    return page


@pytest.fixture(scope="module")
def facts(joined, maker):
    return read_facts(joined)


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Two seeds of a tiny study, joined as the docs' own results are."""
    folder = tmp_path_factory.mktemp("joined")
    parts = found("attention_flow")
    for task, name in (("templates", "templates"), ("sst2", "SST-2")):
        for part in ("numbers", "shown", "maps"):
            data = parts[part]
            data = data.assign(count=0 * data["count"] + 40) if part == "numbers" else data  # enough for verdicts
            if "task" in data.dims:
                named = [data.assign_coords(task=[name]).expand_dims(seed=[seed], axis=1) for seed in (0, 1)]
                data = stamp(join_seeds(named), **read_provenance(data))
            write_npz(data, folder / "found" / f"tiny.{task}.{part}.npz")
    join_runs("headscope_studies.attention_flow.runs.attention_flow", folder)
    return folder


def test_runs_are_joined_into_stamped_files(joined):
    check_stamps(joined, [f"attention_flow_{name}.nc" for name in ("tiny", "tiny_shown", "tiny_maps")])
    whole, one = open_result(joined / "attention_flow_tiny.nc"), found("attention_flow")["numbers"]
    assert whole["correlation"].dims[:2] == ("task", "seed")
    assert (whole["task"].values.tolist(), whole["seed"].values.tolist()) == (["templates", "SST-2"], [0, 1])
    shown = open_result(joined / "attention_flow_tiny_shown.nc")
    assert shown["task"].values.tolist() == ["templates"]  # no sentence of GLUE
    xr.testing.assert_allclose(
        whole["correlation"].isel(task=1, seed=1, drop=True), one["correlation"].isel(task=0, drop=True), rtol=1e-5
    )


def test_the_page_answers_in_words_and_numbers_with_four_figures(facts, maker):
    check_page(
        maker,
        facts,
        "**The paper said** (Abnar & Zuidema, 2020)",
        "**We find**",
        "**Believe**",
        "The text does not say whether [CLS] counts",
        "verdicts change.",
        words=950,
    )


def test_all_tables_are_on_a_page_of_their_own(facts, maker):
    check_tables(
        maker,
        facts,
        "## tiny",
        "| Flow correlates better with blank-out than raw attention does, in the last layer. |",
        "(the paper's Table 3)",
        "| rollout | 0.11 ± 0.19 | 0.12 ± 0.21 | 0.13 ± 0.21 | 0.13 ± 0.20 |",
        "| SST-2 | flow |",
        "The studied model has no such head",
        "it masks the verb and reads a masked language model",
        "(pictures/attention_flow_tiny_inner.svg)",
    )


def change_results(data, **values):
    """The same results with some variables, and their intervals, set to a value."""
    names = [f"{name}{end}" for name in values for end in ("", "_low", "_high") if f"{name}{end}" in data]
    return data.assign({name: data[name] * 0 + values[re.sub("_(low|high)$", "", name)] for name in names})


def test_numbers_follow_from_the_results(facts, maker):
    """The same results, but as if flow were saturated, and better in every layer."""
    values = {"score": 0.5, "at_bound": 1, "same_for_sources": 1, "difference_change": 0.9}
    data = change_results(facts.measured["tiny"], **values).assign_coords(task=["agreement", "SST-2"])
    better = FlowFacts({"paper": data}, {"paper": {"accuracy": by_attractors(), **facts.more["tiny"]}})
    assert count_true(better, "Flow correlates better with blank-out than raw") == "1 of 1"
    assert count_true(better, "On SST-2, flow correlates slightly better") == "1 of 1"
    assert list_saturated(better) == ["paper"]
    text = maker.page(better).decode()
    assert "Its accuracy is .70 (most common label .50) where the paper says .96" in text
    assert "75 % of our sentences have attractors" in text
    assert "Without attractors it is .80 (.60)" in text
    assert "| not measured | 100 % |" in text
    assert "| verb, blank-out: raw → flow | 0.29 → 0.70 | " in text
    assert list_saturated(FlowFacts({"paper": change_results(data, same_for_sources=0.99)}, {})) == []


def test_the_first_numbers_are_means_over_seeds_of_the_last_layer(facts):
    data = facts.measured["tiny"].copy(deep=True)
    for lens, ends in (("raw", (0.1, 0.2)), ("flow", (-0.3, -0.5))):
        for seed, value in enumerate(ends):
            data["correlation"].loc[{"lens": lens, "layer": data["layer"][-1], "seed": seed}] = value
    table = page.tabulate_first_numbers(FlowFacts({"tiny": data}, {}))
    assert table.loc["verb, blank-out: raw → flow"].to_dict() == {"the paper": "0.29 → 0.70", "tiny": "0.15 → −0.40"}
    assert table.loc["SST-2, gradients: raw → flow", "tiny"] == "0.15 → −0.40 by their text"


def by_attractors():
    """Accuracy with intervals of ± 0.1 that are above the most common label, around it, and below it."""
    ends = {
        "accuracy": [0.7, 0.8, 0.7, 0.6],
        "accuracy_low": [0.6, 0.7, 0.6, 0.5],
        "accuracy_high": [0.8, 0.9, 0.8, 0.7],
        "majority": [0.5, 0.6, 0.7, 0.8],
    }
    ends["n"] = [40, 10, 20, 10]
    coords = {"attractors": ["all", "0", "1", "2"], "seed": [0, 1]}
    return xr.Dataset({name: (("seed", "attractors"), [row, row]) for name, row in ends.items()}, coords)


def test_sentences_without_numbers_are_true_of_the_committed_results():
    """The page says so of these results, without a look at others."""
    facts = read_facts()
    own = facts.models["paper"].sel(task="agreement", lens="raw")
    assert float(own["score_high"]) < ACCURACY  # what fails may fail because it learned less
    assert measure_attractors(facts.more["paper"]["accuracy"]) > 50
    assert list_tuned_scores(facts)["all-MiniLM-L6-v2"] > float(own["score_high"])  # MiniLM learned the task better
    printed = BLANK_OUT["flow"][0][-1] - BLANK_OUT["raw"][0][-1]
    assert max(list_gains(facts.measured["paper"], "flow", "blank-out")) < printed  # by a smaller margin
    assert list_saturated(facts) == ["paper"]
    gain = "correlates better with blank-out than raw"
    assert count_true(facts, f"Flow {gain}") == "2 of 3"  # the paper's architecture, and not MiniLM
    measured = facts.measured["all-MiniLM-L6-v2"]["difference_high"].sel(task="agreement", subset="all")
    assert (measured.sel(contrast="correlation, flow − raw, blank-out") < 0).all()  # there it is the opposite
    assert min(list_script_gains(facts, "flow")) > 0  # Table 3 by their script, and not by their text
    first = next(iter(STEPS))
    assert max(list_steps(facts, "flow", first)) < 0 < min(list_steps(facts, "raw", first))
    raw, rollout, flow = (np.array(list_steps(facts, lens, SCRIPT)) for lens in ("raw", "rollout", "flow"))
    assert (raw < rollout).all()  # the order of the printed table
    assert (rollout < flow).all()
    assert raw.max() < LOW  # hardly a correlation
    holding = {factor: count_scaled(facts.every, factor)["holds"] for factor in (0.5, 1.0, 2.0)}
    assert max(holding.values()) - min(holding.values()) <= 1  # as many with other thresholds, give or take one
    assert LOGGED["correlations_bert_sst_max2"]["raw"][-1] > LOGGED["correlations_bert_sst_max2"]["rollout"][-1]


def test_rollout_and_flow_improve_with_depth_only_if_special_tokens_count():
    own = read_facts().more["paper"]["appendix"]["correlation"].mean("seed").sel(lens=["rollout", "flow"])
    first = own.isel(layer=0)
    for score, least in (("gradient", 0.3), ("blank-out", 0.05)):
        growth = own.isel(layer=-1) - first
        assert (growth.sel(importance=f"{score}, special tokens too") > least).all()
        assert (growth.sel(importance=score) < 0.1).all()
    script = read_facts().more["all-MiniLM-L6-v2"]["script"]
    assert script["tuned_hash"].values.tolist() == read_tuned("SST-2")  # the models of the task SST-2 are the same


def read_tuned(task):
    """The hashes of the tuned models of a task, one row of seeds."""
    return [read_facts().measured["all-MiniLM-L6-v2"]["tuned_hash"].sel(task=task).values.tolist()]


def test_verdicts_that_change_are_counted(facts):
    """A claim that applies in one version only has changed too."""
    study, judged = study_facts, facts.judged
    assert study.count_changes(judged, judged) == 0
    fewer = {"tiny": judged["tiny"][1:]}
    applies = sum(task.verdict != MOOT for task in judged["tiny"][0].tasks)
    assert study.count_changes(judged, fewer) == applies > 0

"""The pages of the docs on what heads look at are generated from result files only."""

import re

import pytest
import xarray as xr

from headscope.core.provenance import read_provenance, stamp
from headscope.results.npz import write_npz
from headscope.results.store import open_result, save
from headscope_studies.what_heads_look_at.networks import CLASSIFIER, MASKED
from headscope_studies.what_heads_look_at.pages import page
from headscope_studies.what_heads_look_at.pages.coreference import compare_baselines
from headscope_studies.what_heads_look_at.pages.facts import (
    BESIDE_RAW,
    answer_frame,
    count_layers,
    read_facts,
    split_measures,
)
from tests.study_data import found
from tests.study_pages import check_page, check_stamps, check_tables, join_runs

NAME = "what_heads_look_at"
PROBES = ("dependency", "attention", "attention_and_words")


@pytest.fixture(scope="module")
def maker():
    return page


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Two seeds of a tiny study, joined as the docs' own results are."""
    folder = tmp_path_factory.mktemp("joined")
    results = found(NAME)
    facts = {
        **read_provenance(results["numbers"]),
        "dtype": "float32",
        "data": "0123",
        "tuning": {MASKED: "how", CLASSIFIER: "how"},
    }
    for part, name in (("surface", "numbers"), ("clusters", "clusters")):
        data = results[name].assign(n=0 * results[name]["n"] + 40) if part == "surface" else results[name]
        write_npz(stamp(data.drop_attrs(), **facts), folder / "found" / f"tiny.{NAME}.{part}.npz")
    for seed in (0, 1):
        data = results["no_op"].assign(n=0 * results["no_op"]["n"] + 40).drop_attrs()
        data = data.expand_dims(seed=[seed], axis=1)
        write_npz(stamp(data, **facts), folder / "found" / f"tiny.{seed}.{NAME}.no_op.npz")
    join_runs(f"headscope_studies.{NAME}.runs.{NAME}", folder)
    return folder


@pytest.fixture(scope="module")
def facts(joined):
    """The joined results, with those of probes as their own script joins them."""
    folder = joined / "all"
    folder.mkdir()
    for path in joined.glob("*.nc"):
        (folder / path.name).write_bytes(path.read_bytes())
    for name in PROBES:
        data = found(NAME)[name]
        whole = xr.concat(
            [data.expand_dims(model=["tiny"], treebank=[bank], attention=["raw"], seed=[0]) for bank in ("EWT", "GUM")],
            "treebank",
        )
        runs = [{"treebank": "GUM", "documents": 15}]
        save(stamp(whole.drop_attrs(), **read_provenance(data), runs=runs), folder / f"probes_{name}.nc")
    data = found(NAME)["coreference"]
    save(
        stamp(data.expand_dims(data=["Winogender"], lens=["raw"]), **read_provenance(data)),
        folder / "coreference_tiny.nc",
    )
    return read_facts(folder)


def test_runs_are_joined_into_stamped_files(joined):
    check_stamps(joined, {f"{NAME}_tiny.nc", f"{NAME}_tiny_clusters.nc", f"{NAME}_tiny_no_op.nc"})
    whole, one = open_result(joined / f"{NAME}_tiny_no_op.nc"), found(NAME)["no_op"]
    assert whole["seed"].values.tolist() == [0, 1]
    xr.testing.assert_allclose(whole["ratio"].isel(seed=1, drop=True), one["ratio"].astype("float32"), rtol=1e-5)


def test_the_page_answers_in_words_and_numbers_with_four_figures(facts, maker):
    check_page(
        maker,
        facts,
        "| attention on [CLS], [SEP], periods and commas | ",
        "## Is attention to [SEP] a no-op?",
        "| attention adds to words and distances | ",
        "of the antecedents in Winogender",
        words=900,
    )


def test_the_page_on_committed_results_is_short_and_has_every_number(maker):
    text = maker.page(maker.read_facts()).decode()
    assert len(text.split()) < 1000
    assert "nan" not in text
    assert "–" not in text  # a number that is not known


def test_sentences_of_the_page_without_numbers_hold_for_the_committed_results(maker):
    facts = maker.read_facts()
    always, never = split_measures(facts)
    assert (always, sorted(never)) == (["gradient"], sorted(set(BESIDE_RAW) - {"gradient"}))  # by the others it counts
    open_norm = facts.networks["e5-small"].sel(task="classifier", measure="norm", group="sep")
    assert float(open_norm["ratio_low"]) < 1 < float(open_norm["ratio_high"])
    tuned = ["masked language model", "classifier"]
    attended = facts.networks["all-MiniLM-L6-v2"].sel(task=tuned, measure="raw", group="sep")
    assert float(attended["ratio_high"].max()) < 1.2  # hardly more than an ordinary token
    for label, data in facts.surface.items():
        assert float(data["special_share_high"].sel(lens="raw").item()) < 0.5, label
    for data in facts.coreference.values():  # the baselines of GAP and Winogender are right equally often
        accuracy = data["accuracy"].sel(lens="raw", kind="all", predictor=["rules", "head_match", "nearest"])
        apart = accuracy.max("predictor") - accuracy.min("predictor")
        assert (apart.isel(task=0) < 1e-3).values.tolist() == [False, False, True, True]
    assert len({total for *_, total in maker.tables.count_better(facts)}) == 1  # relations of every treebank
    for pair in facts.treebanks:
        plain = maker.select_whole(facts, *pair)["attention"]["accuracy"].sel(predictor="probe")
        words = maker.select_whole(facts, *pair)["attention_and_words"]["accuracy"].sel(predictor="distances")
        assert float(words) > float(plain)  # words and distances do as well as all heads without words, or better
        whole = maker.select_whole(facts, *pair)["attention_and_words"]
        assert float(whole["accuracy_low"].sel(predictor="probe")) > float(whole["accuracy"].sel(predictor="distances"))


def test_layers_are_counted_from_0_on_every_page_of_the_study(maker):
    text = maker.page(maker.read_facts()).decode() + maker.tables.page(maker.read_facts()).decode()
    assert "layers 6 to 10" not in text.lower()
    heads = [int(layer) for layer in re.findall(r"\bL(\d+)H\d+\b", text)]
    assert min(heads) == 0
    assert max(heads) < 12


def test_the_tables_have_every_verdict_and_only_drawn_figures(facts, maker):
    text = check_tables(maker, facts, "## Verdicts on tokens", "## Verdicts on probes", "published code")
    assert text.count("gain over the best fixed offset") == 1


def test_answers_follow_from_both_verdicts(facts):
    frame = answer_frame(facts)
    for (model, _), row in frame.iterrows():
        raw = row["raw"].partition(" × ")[2]
        assert raw in ("attended to more", "not attended to more", "undecided")
        if raw != "attended to more":
            assert {cell.partition(" × ")[2] for cell in row[1:] if cell != "–"} <= {raw}
        assert ("–" in row.values) == model.endswith("pretrained")


def test_single_layers_that_say_otherwise_are_counted(facts, maker):
    more = less = 0
    for data in facts.networks.values():
        for network in data["task"].values:
            for layer in data["layer"].values:
                for group in ("cls", "sep"):
                    cell = data.sel(task=network, layer=layer, group=group)
                    attended = float(cell["ratio_layer_low"].sel(measure="raw")) > 1
                    more += attended
                    less += attended and float(cell["ratio_layer_high"].sel(measure="norm")) < 1
    attending, counts = count_layers(facts, "norm")
    assert (attending, counts.total()) == (more, less)
    assert f", {less} of {more} by norm" in maker.tables.page(facts).decode()


def test_every_measure_is_on_one_side_of_the_headline():
    always, never = split_measures(read_facts())  # the page has no words for a measure that is on both
    assert sorted([*always, *never]) == sorted(BESIDE_RAW)


@pytest.mark.parametrize(
    ("gain", "p", "verdict"),
    [(0.1, 0.04, "better than"), (-0.1, 0.04, "worse than"), (0.1, 0.06, "not significantly different from")],
)
def test_a_head_is_better_than_a_baseline_where_it_is_so_significantly(gain, p, verdict):
    variables = {"gain_over": (("baseline", "kind"), [[gain]]), "gain_over_p": (("baseline", "kind"), [[p]])}
    result = xr.Dataset(variables, {"baseline": ["rules"], "kind": ["all"]})
    assert compare_baselines(result, "all", ["rules"]) == {verdict: ["rules"]}

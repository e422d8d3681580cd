"""Documents built from results."""

import warnings

import numpy as np
import pytest
import xarray as xr

from headscope.core.document import Paragraph, Picture, Table
from headscope.core.errors import InputError
from headscope.core.provenance import stamp
from headscope.reporting.report import build_document, report
from headscope.results.compare import compare
from headscope.results.store import save
from tests.figures.data import clustered, dataset, intervals, measured
from tests.measuring.data import LENSES, examples


def parts(document, kind):
    return {part.name: part for section in document.sections for part in section.parts if isinstance(part, kind)}


def paragraph_text(document):
    return " ".join(part.text for section in document.sections for part in section.parts if isinstance(part, Paragraph))


@pytest.fixture(scope="module")
def small():
    """A real measurement of a tiny model."""
    from headscope.engine.load import load
    from headscope.measuring.measure import measure
    from tests.models import network, tokenizer

    model = load(network("bert"), tokenizer=tokenizer())
    chosen = ["entropy", "special_tokens", "head_distance"]
    return measure(model, examples(6), lens=LENSES, statistics=chosen, rows=True, progress=False)


def test_a_real_measurement_has_a_section_for_each_statistic(small):
    document = build_document({"small": small})
    assert [section.title for section in document.sections] == [
        "Overview",
        "Entropy",
        "Special tokens",
        "Head distance",
    ]
    assert document.runs[0]["n"] == 6
    assert document.references == ["vaswani2017", "brunner2020", "sun2021", "clark2019", "headscope"]
    assert "over 6 examples" in document.lead
    assert "Mean entropy of a head's rows" in paragraph_text(document)


def test_layers_are_means_over_heads_with_the_interval_of_examples(small):
    table = parts(build_document({"small": small[[name for name in small if name.startswith("entropy")]]}), Table)[
        "entropy"
    ]
    rows = small["entropy_rows"].sel(lens="effective", site="self", layer=1).mean("head")
    assert table.frame.loc["1", "effective"] == pytest.approx(float(rows.mean()))
    half = 2.570582 * float(rows.std(ddof=1)) / 6**0.5  # Student's t with 5 degrees of freedom
    assert table.frame.loc["1", "effective_high"] == pytest.approx(float(rows.mean()) + half, rel=1e-5)
    assert table.frame.loc["all", "raw"] == pytest.approx(float(small["entropy"].sel(lens="raw").mean()))
    assert table.n == 6


def test_labels_without_any_value_are_left_out_and_named(small):
    document = build_document({"small": small})
    table = parts(document, Table)["special_tokens"]
    assert set(table.frame.index.get_level_values("role")) == {"cls", "sep"}
    assert "No value: role mask and role other." in table.caption
    assert {"special_tokens_others_bars", "special_tokens_itself_stacked"} <= set(parts(document, Picture))


def test_numbers_between_two_heads_are_shown_as_means_over_the_other(small):
    document = build_document({"small": small})
    frame = parts(document, Table)["head_distance"].frame
    assert frame.loc["0", "raw"] == pytest.approx(float(small["head_distance"].sel(lens="raw", layer=0).mean()))
    assert "shown is its mean over other layer and other head" in paragraph_text(document)


def test_clusters_are_reported_with_their_test_pictures_and_tree():
    data = clustered(layers=3, heads=4)
    document = build_document({"clusters": data})
    (section,) = document.sections
    assert section.title == "Clusters of heads"
    tables, names = parts(document, Table), {"layer", "behaviour", "tree"}
    assert tables["clusters_layers"].frame.loc["raw", "p"] == float(data["p"].sel(lens="raw"))
    assert tables["clusters_by_gap"].frame.loc[1, "raw"] == float(data["by_gap"].sel(lens="raw", gap=1))
    assert set(parts(document, Picture)) == {
        f"clusters_{lens}_{name}" for lens in data["lens"].values for name in names
    }
    assert (
        document.lead
        == "How alike the heads are, seen through `raw` and `effective`, by the distances between them over 7 examples."
    )


def test_named_results_have_separate_sections(tmp_path):
    result = measured(rows=False)[["entropy", "entropy_n", "entropy_low", "entropy_high"]]
    document = build_document({"a b": result, "c": result})
    assert [section.title for section in document.sections] == [
        "a b: overview",
        "a b: entropy",
        "c: overview",
        "c: entropy",
    ]
    assert set(parts(document, Table)) == {"a_b_overview", "a_b_entropy", "c_overview", "c_entropy"}
    assert [run["name"] for run in document.runs] == ["a b", "c"]
    assert "at most this wide" in parts(document, Table)["c_entropy"].caption


def test_results_are_named_by_file_or_model(tmp_path):
    result = measured(layers=1, heads=1, rows=False, stamp=("texts", "models/tiny"))[["entropy", "entropy_n"]]
    page = report([save(result, tmp_path / "heads.nc"), result], tmp_path / "out").read_text(encoding="utf-8")
    assert "<h2>heads: entropy</h2>" in page
    assert "<h2>tiny: entropy</h2>" in page
    assert "<h1>Attention of tiny</h1>" in page


def test_labels_along_shared_axes_have_separate_sections():
    result = measured(rows=False)
    both = xr.concat([result, result + 1], xr.Variable("corpus", ["sst2", "wiki"])).assign_attrs(result.attrs)
    document = build_document({"x": both[["entropy", "entropy_n", "distance", "distance_n"]]})
    names = ("overview", "entropy", "distance")
    titles = [f"{corpus}: {name}" for corpus in ("sst2", "wiki") for name in names]
    assert [section.title for section in document.sections] == titles
    first, second = (parts(document, Table)[f"{name}_entropy"].frame for name in ("sst2", "wiki"))
    assert np.allclose(second["raw"] - first["raw"], 1)


def test_comparisons_count_the_cells_that_differ_and_list_the_largest():
    difference = compare(measured(seed=1), measured(seed=2), variable="entropy")
    document = build_document({"x": difference})
    significant = int(difference["entropy_significant"].sum())
    sentence = f"**{significant} of 12** cells of `entropy` differ (p < 0.05 after Holm's correction)."
    assert sentence in paragraph_text(document)
    largest = parts(document, Table)["entropy_largest"].frame
    assert len(largest) == min(10, significant)
    assert abs(largest["difference"]).is_monotonic_decreasing
    assert parts(document, Table)["entropy_by_layer"].frame["differ"].sum() == significant
    assert list(parts(document, Picture)) == ["entropy_heads"]


def test_a_comparison_in_which_nothing_differs_has_no_empty_table():
    document = build_document({"x": compare(measured(), measured())})
    assert "**0 of 12** cells of `entropy` differ" in paragraph_text(document)
    assert "entropy_largest" not in parts(document, Table)


def scored():
    """What `hs.score` gives for classes."""
    variables = {
        "accuracy": ((), 0.75, {"interval": "95 %, Wilson"}),
        "accuracy_low": ((), 0.3),
        "accuracy_high": ((), 0.95),
        "majority": ((), 0.5, {"long_name": "share of the most common label, cat"}),
        "n": ((), 4),
        "prediction": ("example", [0, 1, 1, 1]),
        "label": ("example", [0, 0, 1, 1]),
        "logits": (("example", "class"), np.zeros((4, 2))),
        "margin": ("example", [1.0, -1.0, 2.0, 0.5]),
    }
    axes = {"example": list("abcd"), "class": ["cat", "dog"]}
    return stamp(xr.Dataset(variables, axes), command="hs.score", task="classification", n=4)


def test_scores_have_intervals_and_a_confusion_matrix():
    document = build_document({"x": scored()})
    tables = parts(document, Table)
    assert list(tables["scores"].frame.loc["accuracy", ["value", "value_low", "value_high"]]) == [0.75, 0.3, 0.95]
    assert tables["scores"].frame.loc["majority", "interval"] == "share of the most common label, cat"
    assert tables["scores"].n == 4
    assert tables["confusion"].frame.to_numpy().tolist() == [[1, 1], [0, 2]]
    assert tables["spread"].frame.loc["margin", "median"] == 0.75
    assert "Not shown here: `logits`." in paragraph_text(document)


def test_a_score_of_translations_shows_the_first_of_them():
    names = {"text": "source", "reference": "reference", "prediction": "written by the model"}
    texts = {name: ("example", np.array([f"{name} {row}" for row in range(12)], object)) for name in names}
    counts = {"bleu": 26.5, "bleu_counts": (("example", "bleu_count"), np.ones((12, 10), int))}
    coords = {"example": [str(row) for row in range(12)], "text": texts.pop("text")}
    document = build_document({"x": stamp(xr.Dataset({**counts, **texts}, coords), command="hs.score", n=12)})
    table = parts(document, Table)["texts"]
    assert (len(table.frame), table.n) == (10, 10)
    assert table.frame.loc["3"].to_dict() == {title: f"{name} 3" for name, title in names.items()}
    assert "first 10 of 12 examples" in table.caption
    assert "spread" not in parts(document, Table)


def test_maps_are_drawn_side_by_side():
    document = build_document({"x": dataset()})
    assert {"compare", "every_head_raw", "every_head_effective"} <= set(parts(document, Picture))
    known = parts(document, Table)["known"].frame
    assert known.loc[("effective", 1, 2), "share"] == 0.5
    assert "share: effective share (norm ÷ norm of the raw map)" in parts(document, Table)["known"].caption


def test_the_intervals_of_one_row_are_drawn():
    document = build_document({"x": intervals()})
    assert "identifiability" in parts(document, Picture)
    assert "by_key" in parts(document, Table)


def test_a_figure_that_fails_is_replaced_by_the_reason():
    lenses = [f"lens{number}" for number in range(8)]
    document = build_document({"x": measured(lenses=lenses)[["entropy", "entropy_n"]]})
    assert "There are 8 lenses, but only 7 can be told apart in one figure." in paragraph_text(document)
    assert "entropy" in parts(document, Table)


def test_a_variable_without_any_value_is_listed_and_not_drawn():
    result = measured(rows=False)[["entropy", "entropy_n"]]
    document = build_document(
        {"x": result.assign(entropy=result["entropy"] * np.nan, entropy_n=result["entropy_n"] * 0)}
    )
    assert "`entropy` has no value for any head (n = 0)." in paragraph_text(document)
    assert not parts(document, Table)
    assert not parts(document, Picture)


def test_values_of_single_examples_are_summarized():
    variables = {"change": (("keys", "example"), [[1.0, 2.0, 3.0], [np.nan] * 3])}
    document = build_document({"x": xr.Dataset(variables, {"keys": ["visible", "paper"]})})
    frame = parts(document, Table)["spread"].frame
    assert list(frame["mean"]) == [2.0]
    assert frame.index[0] == ("change", "keys visible")


def test_the_same_result_has_the_same_bytes(tmp_path):
    result = measured(layers=1, rows=False)[["token_types", "token_types_n"]]
    first, second = (report(result, tmp_path / name).parent for name in ("a", "b"))
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)
    assert len(names) == 5  # the page, a figure and a table


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ([], "There is nothing to report: no result was given. Give at least one Dataset or path."),
        ({}, "There is nothing to report: no result was given."),
        (3, "A report is made of a Dataset, .* or a Document, but got a int. Measure first"),
        ([3], "Datasets, paths of saved ones and Maps, but one of them is a int. Take it out"),
        (xr.Dataset(), "There is nothing to report: 'result' has no variables. Measure first"),
        ("nothing.nc", "Cannot open nothing.nc: there is nothing of that name"),
    ],
)
def test_invalid_results_are_refused(what, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        report(what, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_unpaired_comparisons_say_why():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        difference = compare(measured(rows=False), measured(rows=False, seed=2), variable="distance")
    assert "Not paired by example: neither holds the values of single examples" in paragraph_text(
        build_document({"x": difference})
    )


def test_rows_are_named_by_texts_along_their_axis():
    variables = {"accuracy": ("run", [0.5, np.nan, 0.75])}
    data = xr.Dataset(variables, {"task": ("run", ["rte", "mnli", "sst2"]), "model": ("run", ["a", "a", "b"])})
    table = parts(build_document({"x": data}), Table)["by_run"]
    assert list(table.frame.index) == [("rte", "a"), ("sst2", "b")]
    assert "Left out: rows without any value (1)" in table.caption


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (dataset(), "Attention maps of one text, seen through `raw` and `effective`."),
        (
            compare(measured(), measured(seed=1), variable="entropy"),
            "How two results differ, head by head, in entropy over 7 examples.",
        ),
        (stamp(xr.Dataset({"loss": ("run", [1.0, 2.0])}), n=2), "What one result holds: loss over 2 examples."),
    ],
)
def test_the_lead_describes_the_result(data, sentence):
    assert build_document({"x": data}).lead == sentence

"""The study what-heads-look-at: what it measures, its claims, and what it says."""

import numpy as np
import pytest
import transformers
import xarray as xr

from headscope.core.document import Picture, Table
from headscope.core.errors import InputError
from headscope.engine.load import load
from headscope.measuring.measure import measure
from headscope_studies.what_heads_look_at.claims import PARTS, SURFACE, judge_claims
from headscope_studies.what_heads_look_at.networks import CLASSIFIER, MASKED, PRETRAINED, describe_quality
from headscope_studies.what_heads_look_at.report import collect_numbers
from headscope_studies.what_heads_look_at.surface import add_layer_test
from tests.study_data import WIDTH, found, place, tiny

NAME = "what_heads_look_at"


def verdict(part, text, data):
    (judged,) = [claim for claim in judge_claims({"": {part: data}})[""][part] if claim.text.startswith(text)]
    return judged.verdict


def changed(part, **changes):
    """The numbers of the tiny study, as if of enough inputs, with some set to a value and its interval."""
    data = found(NAME)["numbers" if part == "surface" else "no_op"].copy(deep=True)
    data["n"] = data["n"] * 0 + 40
    for name, ends in changes.items():
        for end, value in zip(("", "_low", "_high"), ends, strict=True):
            data[f"{name}{end}"] = xr.full_like(data[f"{name}{end}"], value)
    return data


def test_every_threshold_has_a_reason_and_a_date():
    for claim in (claim for part in PARTS.values() for claim in part):
        assert claim.threshold.reason
        assert claim.threshold.date == "2026-11-16"


@pytest.mark.parametrize(
    ("text", "name", "ends", "expected"),
    [
        ("Some head gives more than half of its attention to the prev", "most_previous", (0.7, 0.69, 0.71), "holds"),
        ("Some head gives more than half of its attention to the next", "most_next", (0.4, 0.3, 0.6), "undecided"),
        ("[CLS] takes most", "cls_lead", (-0.1, -0.12, -0.08), "not reproduced"),
        ("In layers 6 to 10", "sep_middle", (0.02, 0.01, 0.03), "not reproduced"),
        ("In these layers", "sep_to_sep", (0.95, 0.94, 0.96), "holds"),
        ("Some head in the lower half", "least_peak", (0.05, 0.04, 0.06), "holds"),
        ("[CLS] attends as broadly", "cls_entropy_gap", (-1.0, -1.1, -0.9), "not reproduced"),
        ("Heads of one layer", "layer_p", (0.0001, 0.0001, 0.0001), "holds"),
        ("Heads of one layer", "layer_p", (0.3, 0.3, 0.3), "not reproduced"),
    ],
)
def test_claims_on_the_surface_are_judged_by_their_interval(text, name, ends, expected):
    assert verdict("surface", text, changed("surface", **{name: ends})) == expected


def test_a_gain_below_zero_is_shown_in_points_and_not_cut_at_zero():
    ends = dict(zip(("", "_low", "_high"), (-0.02, -0.03, -0.01), strict=True))
    names = ("nearest_gain_change", "match_gain_change", "rules_gain")
    data = xr.Dataset({f"{name}{end}": ("task", [value]) for name in names for end, value in ends.items()})
    data = data.assign_coords(task=["GUM"]).assign(n=("task", [400]))
    (claim,) = [
        claim for claim in judge_claims({"": {"coreference": data}})[""]["coreference"] if "rules" in claim.text
    ]
    assert claim.verdict == "holds"
    assert claim.tasks[0].figures.startswith("−2.0 points [−3.2")


def test_heads_of_one_layer_are_judged_by_the_stored_clusters():
    numbers = changed("surface")
    clusters = xr.Dataset(
        {"p": ("lens", [0.3, 0.0002]), "difference": ("lens", [0.0, 0.0631])}, {"lens": ["effective", "raw"]}
    )
    judged = judge_claims({"": {"surface": add_layer_test(numbers, clusters)}})[""]["surface"]
    (claim,) = [claim for claim in judged if claim.text.startswith("Heads of one layer")]
    assert (claim.verdict, claim.tasks[0].figures) == ("holds", "0.063 nats further apart between layers, p = 0.0002")


def test_no_ops_are_judged_by_the_ratio_to_an_ordinary_token():
    data = changed("no-op", ratio=(0.5, 0.4, 0.6))
    assert verdict("no-op", "[SEP] is attended to more", data) == "not reproduced"
    assert verdict("no-op", "[SEP] counts less than an ordinary token, by effective", data) == "holds"
    judged = {claim.text: claim for claim in judge_claims({"": {"no-op": found(NAME)["no_op"]}})[""]["no-op"]}
    (gradient,) = [claim for text, claim in judged.items() if text.startswith("[SEP]") and "gradient of" in text]
    assert {task.task: task.verdict for task in gradient.tasks}[PRETRAINED] == "does not apply"


def test_quality_is_shown_without_exponents():
    about = {"metric": "perplexity", "quality": 1753.4}
    assert describe_quality(xr.Dataset(about)) == "perplexity 1,753"
    assert describe_quality(xr.Dataset({"metric": "accuracy", "quality": 0.8121})) == "accuracy 0.812"


def test_shares_are_the_weights_of_the_model():
    numbers, model = found(NAME)["numbers"].isel(task=0), load(place() / "base", dtype="float32")
    data = measure(
        model,
        str(place() / "dev.jsonl"),
        lens="raw",
        statistics=["special_tokens:source=clark"],
        max_length=WIDTH,
        progress=False,
    ).isel(site=0, lens=0)
    ours, clark = (numbers[name].sel(target="sep") for name in ("share", "clark"))
    weights = data["special_tokens"].sel(role="sep", source="clark")
    np.testing.assert_allclose(clark.values, weights.values, rtol=1e-6)
    np.testing.assert_allclose(ours.sel(lens="raw").values, weights.values, rtol=1e-5)


def test_probes_are_judged_by_the_number_of_documents():
    results = found(NAME)
    numbers = collect_numbers(results)
    sources = {"syntax": "dependency", "trees": "dependency", "coreference": "coreference"}
    for part, source in sources.items():
        documents = int(results[source]["documents"])
        assert {int(count) for count in np.atleast_1d(numbers[part]["documents"])} == {documents}, part
        assert numbers[part]["n"].max() > documents, part


def test_all_networks_have_weights_and_tuned_ones_gradients():
    data = found(NAME)["no_op"]
    assert data["task"].values.tolist() == [PRETRAINED, MASKED, CLASSIFIER]
    known = np.isfinite(data["ratio"].sel(group="sep"))
    assert known.sel(task=PRETRAINED).values.tolist() == [True, True, True, False, False]
    assert known.sel(task=[MASKED, CLASSIFIER]).all()


def test_the_report_answers_whether_it_is_a_no_op():
    document = tiny(NAME).document(found(NAME))
    parts = {
        part.name: part for section in document.sections for part in section.parts if isinstance(part, Table | Picture)
    }
    assert {"no_op", "answers", "no_ops", "depth", "lists", "entropy", "clusters", "relations", "uas"} <= set(parts)
    assert "[SEP]" in document.lead
    assert parts["verdicts"].reduced.endswith("where the paper has 1,000")
    assert len(parts["verdicts"].frame) == sum(map(len, PARTS.values()))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dev": None}, "train=FILE is given, but not dev=FILE"),
        ({"dev": None, "train": None, "tuned": "folder"}, "dev=FILE, its labelled data, is not given"),
        ({"limit": 0}, "limit=0 is too small. Give at least 1."),
    ],
)
def test_options_that_do_not_fit_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        tiny(NAME, **options)


def test_a_model_without_masked_words_is_refused(tmp_path):
    study = tiny(NAME, mlm=str(place() / "base"), trained_probes=False)
    with pytest.raises(InputError, match="predicts no masked words"):
        study.run(place() / "base", tmp_path / "out", device="cpu")


def test_a_model_without_special_tokens_is_refused_before_anything_is_measured(tmp_path):
    base = load(place() / "base", device="cpu")
    plain = transformers.PreTrainedTokenizerFast(tokenizer_object=base.tokenizer.backend_tokenizer, pad_token="[PAD]")
    model = load(base.network, tokenizer=plain)
    with pytest.raises(InputError, match="has no class token, separator or mask. Give an encoder"):
        tiny(NAME).run(model, tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


def test_the_surface_of_heads_is_described_by_thirteen_quantities():
    assert len(SURFACE) == 13

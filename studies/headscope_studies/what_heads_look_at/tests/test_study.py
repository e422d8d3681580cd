"""The study what-heads-look-at: what it measures, its claims, and what it says."""

from functools import partial

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
from headscope_studies.what_heads_look_at.probe_numbers import find_gain, number_coreference
from headscope_studies.what_heads_look_at.report import collect_numbers
from headscope_studies.what_heads_look_at.surface import add_claimed, bootstrap_heads, compare_layers
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
        assert claim.threshold.date in ("2026-11-16", "2026-11-19")


@pytest.mark.parametrize(
    ("text", "name", "ends", "expected"),
    [
        ("Some head gives more than half of its attention to the prev", "most_previous", (0.7, 0.69, 0.71), "holds"),
        ("Some head gives more than half of its attention to the next", "most_next", (0.4, 0.3, 0.6), "undecided"),
        ("[CLS] takes most", "cls_lead", (-0.1, -0.12, -0.08), "not reproduced"),
        ("In middle layers (L5", "sep_middle", (0.02, 0.01, 0.03), "not reproduced"),
        ("In these layers", "sep_to_sep", (0.95, 0.94, 0.96), "holds"),
        ("Some head in the lower half", "least_peak", (0.05, 0.04, 0.06), "holds"),
        ("[CLS] attends as broadly", "cls_entropy_gap", (-1.0, -1.1, -0.9), "not reproduced"),
        ("Heads of one layer", "layer_effect", (0.3, 0.28, 0.32), "holds"),
        ("Heads of one layer", "layer_effect", (0.02, 0.01, 0.03), "not reproduced"),
        ("All heads attend alike", "cls_alike", (0.3, 0.28, 0.32), "holds"),
        ("All heads attend alike", "cls_alike", (1.2, 1.1, 1.3), "not reproduced"),
        ("More than half of the", "special_share", (0.4, 0.39, 0.41), "not reproduced"),
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


def make_clusters(distance, from_cls=None, layers=3):
    """Clusters of raw attention with these distances between heads, in layers of equal size."""
    heads = len(distance) // layers
    dims = ("layer", "head", "other_layer", "other_head")
    tables = {"head_distance": distance, **({} if from_cls is None else {"cls_distance": from_cls})}
    values = {name: (dims, np.reshape(table, (layers, heads) * 2)) for name, table in tables.items()}
    data = xr.Dataset({**values, "p": 0.5}).expand_dims(lens=["raw"])
    return data if from_cls is None else data.assign(cls_distance=data["cls_distance"].isel(lens=0, drop=True))


def judge_clusters(clusters):
    """The verdicts on what is claimed of heads of one layer, and of those from [CLS]."""
    numbers = changed("surface").drop_vars("cls_alike", errors="ignore")
    judged = judge_claims({"": {"surface": add_claimed(numbers, clusters)}})[""]["surface"]
    return {claim.text: claim.verdict for claim in judged if "alike" in claim.text}


def test_heads_of_one_layer_are_judged_by_how_far_others_are_apart():
    layer = np.repeat([0, 1, 2], 6)
    distance = np.where(np.equal.outer(layer, layer), 0.2, 0.3) * ~np.eye(18, dtype=bool)
    verdicts = judge_clusters(make_clusters(distance, 0.1 * distance))
    assert verdicts == {"Heads of one layer attend alike.": "holds", "All heads attend alike from [CLS].": "holds"}
    effect = bootstrap_heads(partial(compare_layers, distance, layer), layer)
    np.testing.assert_allclose(effect, 0.5)  # all draws are the same
    one, other = (
        [distance[i, j] for i in range(18) for j in range(18) if i != j and (layer[i] == layer[j]) == same]
        for same in (True, False)
    )
    assert effect[0] == pytest.approx(np.mean(other) / np.mean(one) - 1)


@pytest.mark.parametrize("seed", range(3))
def test_identical_maps_and_random_layers_are_not_said_to_be_alike(seed):
    """Heads that are all the same, and distances that know no layers, give no verdict that heads of one are alike."""
    zeros = np.zeros((18, 18))
    random = np.random.default_rng(seed).random((18, 18))
    random = (random + random.T) * ~np.eye(18, dtype=bool)
    for distance in (zeros, random):
        assert judge_clusters(make_clusters(distance))["Heads of one layer attend alike."] != "holds"
    assert judge_clusters(make_clusters(random, random))["All heads attend alike from [CLS]."] != "holds"
    assert judge_clusters(make_clusters(random))["All heads attend alike from [CLS]."] == "does not apply"


def place_heads(random, centers, heads):
    """Distances between heads that are scattered around the centers of their layers."""
    x = np.repeat(centers, heads, 0) + random.normal(size=(len(centers) * heads, 3))
    return np.linalg.norm(x[:, None] - x[None], axis=-1)


@pytest.mark.soak
@pytest.mark.parametrize("spread", [0.0, 0.6])
def test_intervals_over_heads_hold_the_truth_often_enough(spread):
    """Coverage of the 95 % interval of how much further apart heads of other layers are; layers stay as they are."""
    random, hits = np.random.default_rng(1), 0
    layer, many = np.repeat(np.arange(6.0), 12), np.repeat(np.arange(6.0), 150)
    for _ in range(60):
        centers = spread * random.normal(size=(6, 3))
        truth = compare_layers(place_heads(random, centers, 150), many, np.ones(len(many))) if spread else 0.0
        measured = partial(compare_layers, place_heads(random, centers, 12), layer)
        _, low, high = bootstrap_heads(measured, layer, draws=300)
        hits += low <= truth <= high
    assert hits >= 52  # 57 are expected


def test_a_gain_is_the_paired_one_where_it_is_known():
    predictors = ["probe", "fixed_offset", "right_branching", "distances"]
    ends = {"": [0.7, 0.3, 0.3, 0.6], "_low": [0.68, 0.29, 0.29, 0.58], "_high": [0.72, 0.31, 0.31, 0.62]}
    data = xr.Dataset(
        {f"accuracy{end}": ("predictor", values) for end, values in ends.items()}
        | {"gain": 0.4, "gain_low": 0.39, "gain_high": 0.41},
        {"predictor": predictors},
    )
    assert find_gain(data, "right_branching") == pytest.approx((0.4, 0.39, 0.41))  # it answers as the fixed offset
    apart = find_gain(data, "distances")
    assert apart == pytest.approx((0.1, 0.1 - 0.0283, 0.1 + 0.0283), abs=1e-3)  # wider than any paired interval
    paired = {
        f"gain_over{end}": ("baseline", [value])
        for end, value in zip(("", "_low", "_high"), (0.1, 0.09, 0.11), strict=True)
    }
    known = data.assign(paired).assign_coords(baseline=["distances"])
    assert find_gain(known, "distances") == pytest.approx((0.1, 0.09, 0.11))
    assert np.isnan(find_gain(data.drop_sel(predictor="distances"), "distances")).all()


def test_baselines_that_answer_alike_are_judged_once():
    """Without words to match, rules and a match of head words know no more than the nearest mention."""
    result = found(NAME)["coreference"]  # Winogender
    numbers = number_coreference({"Winogender": result})
    accuracy = result["accuracy"].sel(kind="all").isel(task=0)
    same = float(accuracy.sel(predictor="rules")) == float(accuracy.sel(predictor="nearest"))
    assert same == bool(np.isnan(numbers["rules_gain"]).all())
    judged = judge_claims({"": {"coreference": numbers.assign(rules_gain=np.nan * numbers["rules_gain"])}})[""]
    (rules,) = [claim for claim in judged["coreference"] if "rules" in claim.text]
    assert rules.tasks[0].verdict == "does not apply"


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


def test_the_surface_of_heads_is_described_by_fifteen_quantities():
    assert len(SURFACE) == 15

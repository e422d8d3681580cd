"""The study dark-secrets: what it measures, its claims, and what it says."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from headscope.core.document import Table
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.provenance import read_provenance
from headscope.training.score import score
from headscope_studies.dark_secrets.claims import CLAIMS, RELATION_CLAIMS, judge_claims
from headscope_studies.dark_secrets.measure import summarise_special
from headscope_studies.dark_secrets.semantic import LINKS, SAME, link_mentions
from headscope_studies.dark_secrets.starts import MAJORITY, RANDOM, TUNED
from headscope_studies.dark_secrets.starts import _compare as compare
from tests.study_data import found, place, tiny


def numbers(**changes):
    """The numbers of the tiny study, as if of enough inputs, with some set to a value and its interval."""
    data = found("dark_secrets")["numbers"].copy(deep=True)
    data["n"] = data["n"] * 0 + 40
    for name, ends in changes.items():
        for end, value in zip(("", "_low", "_high"), ends, strict=True):
            data[f"{name}{end}"] = data[f"{name}{end}"] * 0 + value
    return data


def verdict(text, data):
    (judged,) = [claim for claim in judge_claims(data)[""] if claim.text.startswith(text)]
    return judged.verdict


def test_every_threshold_has_a_reason_and_a_date():
    for claim in (*CLAIMS, *RELATION_CLAIMS):
        assert claim.threshold.reason
        assert claim.threshold.date in ("2026-11-16", "2026-11-19")


@pytest.mark.parametrize(
    ("text", "name", "ends", "expected"),
    [
        ("32 to 61 %", "share", (0.4, 0.39, 0.41), "holds"),
        ("32 to 61 %", "share", (0.8, 0.79, 0.81), "not reproduced"),
        ("At least a third of all maps", "share", (0.5, 0.4, 0.6), "holds"),
        ("At least a third of all maps", "share", (0.3, 0.1, 0.5), "undecided"),
        ("At least a third of the heads", "special_share", (0.6, 0.5, 0.7), "holds"),
        ("At least a third of the heads", "special_share", (0.1, 0.05, 0.15), "not reproduced"),
        ("Disabling some head", "best_head_change", (0.02, 0.01, 0.03), "holds"),
        ("Disabling some head", "best_head_change", (0.02, -0.01, 0.05), "undecided"),
        ("Disabling some head", "best_head_change", (0.0, -0.001, 0.001), "not reproduced"),
        ("Disabling one head hardly", "mean_head_change", (0.001, 0.0, 0.002), "holds"),
        ("Disabling one head hardly", "mean_head_change", (-0.05, -0.06, -0.04), "not reproduced"),
        ("Some whole layer", "best_layer_change", (0.0, -0.001, 0.001), "holds"),
        ("Some whole layer", "best_layer_change", (-0.1, -0.11, -0.09), "not reproduced"),
        ("Fine-tuned from pretrained", "pretraining_gain_change", (0.1, 0.09, 0.11), "holds"),
        ("Fine-tuned from random", "random_gain_change", (0.0, -0.01, 0.01), "not reproduced"),
    ],
)
def test_claims_are_judged_by_their_interval(text, name, ends, expected):
    assert verdict(text, numbers(**{name: ends})) == expected


def test_a_model_that_was_tuned_before_has_no_start_from_random_weights():
    data = numbers(pretraining_gain_change=(np.nan,) * 3, random_gain_change=(np.nan,) * 3)
    assert verdict("Fine-tuned from pretrained", data) == "does not apply"
    assert verdict("Fine-tuned from random", data) == "does not apply"
    document = tiny("dark_secrets").document({"numbers": data})
    texts = [part.text for section in document.sections for part in section.parts if hasattr(part, "text")]
    assert any(text.startswith("The model was fine-tuned before the study") for text in texts)


def test_scores_are_those_of_the_tuned_model_and_of_a_constant_prediction():
    data = found("dark_secrets")["numbers"].isel(task=0)
    scored = score(f"{place()}/dark_secrets-0/tasks/dev/model", str(place() / "dev.jsonl"), progress=False)
    scores = data["start_score"]
    assert float(scores.sel(start=TUNED)) == pytest.approx(float(scored["accuracy"]))
    assert float(scores.sel(start=MAJORITY)) == pytest.approx(float(scored["majority"]))
    gain = float(scores.sel(start=TUNED) - scores.sel(start=RANDOM))
    assert float(data["pretraining_gain_change"]) == pytest.approx(gain)
    gain = float(scores.sel(start=RANDOM) - scores.sel(start=MAJORITY))
    assert float(data["random_gain_change"]) == pytest.approx(gain)


def test_a_disabled_head_has_the_score_under_uniform_attention():
    data = found("dark_secrets")["numbers"].isel(task=0)
    model, dev = f"{place()}/dark_secrets-0/tasks/dev/model", str(place() / "dev.jsonl")
    whole, without = (
        float(score(model, dev, edit=edit, progress=False)["accuracy"]) for edit in (None, "uniform_heads:heads=L1H2")
    )
    assert float(data["head_change"].sel(layer=1, head=2)) == pytest.approx(without - whole)


def test_a_head_attends_simply_if_most_of_its_weight_is_on_special_tokens():
    rows = np.zeros((2, 2, 1, 1, 1, 2))  # example role source lens layer head
    rows[:, 0, ..., 0], rows[:, 1, ..., 0] = 0.3, 0.3
    rows[:, 1, ..., 1] = [[[[0.3]]], [[[0.7 - 1e-9]]]]
    dims = ("example", "role", "source", "lens", "layer", "head")
    labels = {"role": ["cls", "sep"], "source": ["clark"], "lens": ["raw"], "layer": [0], "head": [0, 1]}
    data = summarise_special(xr.Dataset({"special_tokens_rows": (dims, rows)}, labels))
    np.testing.assert_allclose(data["special_weight"].values, [[0.6, 0.5]], atol=1e-8)
    assert float(data["special_share"]) == 0.5


def test_links_are_between_mentions_of_one_entity():
    mentions = ((0, 0, "7", ""), (2, 2, "7", ""), (4, 4, "8", ""), (6, 6, "7", ""))
    words = ("Ann", "said", "she", "met", "Eve", "before", "Ann")
    example = Example("0", " ".join(words), words=words, columns={"mentions": mentions})
    (passage,) = link_mentions([example, Example("1", "No", words=("No",), columns={"mentions": ()})])
    assert passage.columns["word_pairs"] == ((2, 0, LINKS["pronoun"]), (6, 2, LINKS["proper"]))
    mentions = ((0, 0, "7", ""), (6, 6, "7", ""))
    (passage,) = link_mentions([Example("0", " ".join(words), words=words, columns={"mentions": mentions})])
    assert passage.columns["word_pairs"] == ((6, 0, SAME),)


def test_finding_a_word_again_is_not_judged_as_a_link_of_meaning():
    related = found("dark_secrets")["relations"]
    renamed = related.assign_coords(task=[SAME, "object"])
    judged = judge_claims(found("dark_secrets")["numbers"], semantic=renamed)["semantic"]
    assert [task.task for claim in judged for task in claim.tasks] == ["object", "object"]


def test_the_report_has_the_papers_range_and_every_relation():
    document = tiny("dark_secrets").document(found("dark_secrets"))
    tables = {part.name: part for section in document.sections for part in section.parts if isinstance(part, Table)}
    assert tables["shares"].theirs["H"].dropna().tolist() == [32.0, 61.0]
    assert set(tables["relations"].frame.index) == {"subject", "object"}
    assert tables["shares"].reduced  # far fewer maps than the paper has


def test_results_on_relations_are_stamped():
    facts = read_provenance(found("dark_secrets")["relations"])
    assert {"model", "weights_hash", "data", "n", "version"} <= set(facts)


def test_words_that_are_not_related_stop_the_study_before_it_trains(tmp_path):
    study = replace(tiny("dark_secrets"), relations=str(place() / "dev.jsonl"))
    with pytest.raises(InputError, match="does not say which words are related"):
        study.run(place() / "base", tmp_path / "out", device="cpu")
    assert not (tmp_path / "out" / "tasks").exists()


def test_an_example_to_show_is_refused():
    with pytest.raises(InputError, match="but this study shows none"):
        tiny("dark_secrets", example="dev-1")


def test_a_model_that_was_tuned_before_is_compared_with_no_copy_from_random_weights():
    scored = xr.Dataset({"label": ("example", [0, 1]), "prediction": ("example", [0, 1]), "majority": 0.5})
    unknown = compare("pretraining_gain", {TUNED: scored}, "accuracy", RANDOM, TUNED)
    assert all(np.isnan(value[1]) for value in unknown.values())
    known = compare("random_gain", {RANDOM: scored}, "accuracy", MAJORITY, RANDOM)
    assert float(known["random_gain_change"][1]) == 0.5

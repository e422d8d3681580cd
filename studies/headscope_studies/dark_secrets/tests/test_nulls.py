"""Where nothing is to be found, no verdict says that something is: shuffled labels, other seeds, unrelated words."""

import numpy as np
import pytest
import xarray as xr

from headscope.ablation.changes import compare_scores
from headscope.core.provenance import stamp
from headscope.experiments.relation_heads import summarise_best
from headscope.training.metrics import make_accuracy, make_pearson
from headscope.uncertainty.corrections import correct_p_values
from headscope_studies.dark_secrets.claims import judge_claims
from headscope_studies.dark_secrets.disabled import average_changes, summarise_changes
from tests.study_data import found

ENDS = ("", "_low", "_high")
EXAMPLES = 200


def numbers(**changes):
    """The numbers of the tiny study, as if of enough inputs, with some set to a value and its interval."""
    data = found("dark_secrets")["numbers"].copy(deep=True)
    data["n"] = data["n"] * 0 + EXAMPLES
    for name, ends in changes.items():
        for end, value in zip(ENDS, ends, strict=True):
            data[f"{name}{end}"] = data[f"{name}{end}"] * 0 + value
    return data


def verdicts(data, **related):
    judged = judge_claims(data, **related)
    return {claim.text: {task.verdict for task in claim.tasks} for group in judged.values() for claim in group}


def disable_at_random(random, helping=0.0):
    """Return the result of hs.ablate where labels are shuffled: disabled heads change one answer in ten, at random.

    Of the answers of the last head, so many more are right.
    """
    label, whole = random.integers(0, 2, (2, EXAMPLES))
    prediction = np.where(random.random((4, 6, EXAMPLES)) < 0.1, 1 - whole, whole)
    prediction[-1, -1] = np.where(random.random(EXAMPLES) < helping, label, prediction[-1, -1])
    before, *after = (make_accuracy(label, each.astype(float)) for each in (whole, *prediction.reshape(24, -1)))
    compared = compare_scores(before, after)
    names = ("change", "change_low", "change_high", "change_p")
    dims = ("layer", "head")
    variables = {name: (dims, compared[name].reshape(4, 6)) for name in names}
    variables["change_p_adjusted"] = (dims, correct_p_values(compared["change_p"]).reshape(4, 6))
    variables |= {"label": ("example", label), "prediction_whole": ("example", whole)}
    variables["prediction"] = ((*dims, "example"), prediction)
    coords = {"example": range(EXAMPLES), "layer": range(4), "head": range(6)}
    return stamp(xr.Dataset(variables, coords), main="accuracy")


def judge_disabled(ablated):
    heads = summarise_changes(ablated, "head")
    layers = summarise_changes(ablated.isel(head=0, drop=True).transpose("layer", ...), "layer")
    tables = {"best_head_change": heads, "best_layer_change": layers, "mean_head_change": average_changes(ablated)}
    return verdicts(numbers(**{name: [float(table[f"{name}{end}"]) for end in ENDS] for name, table in tables.items()}))


def test_with_shuffled_labels_no_head_and_no_layer_helps_or_harms():
    for seed in range(5):
        judged = judge_disabled(disable_at_random(np.random.default_rng(seed)))
        assert judged["Disabling some head improves the score."] != {"holds"}
        assert judged["Disabling some whole layer improves the score."] != {"holds"}
        assert judged["Some whole layer can be disabled without loss."] != {"not reproduced"}
        assert judged["Disabling one head hardly changes the score, on average over heads."] != {"not reproduced"}
    helped = judge_disabled(disable_at_random(np.random.default_rng(0), helping=0.6))
    assert helped["Disabling some head improves the score."] == {"holds"}  # so that this test can tell


@pytest.mark.parametrize("make", [make_accuracy, make_pearson])
def test_with_shuffled_labels_no_start_is_better_than_another(make):
    for seed in range(10):
        label, first, second = np.random.default_rng(seed).integers(0, 2, (3, EXAMPLES)).astype(float)
        compared = compare_scores(make(label, first), [make(label, second)])
        ends = [float(compared[f"change{end}"][0]) for end in ENDS]
        judged = verdicts(numbers(pretraining_gain_change=ends, random_gain_change=ends))
        for text in judged:
            assert not text.startswith("Fine-tuned") or judged[text] != {"holds"}


def test_two_seeds_of_one_start_are_no_gain():
    """Models that are both right in 80 % of the inputs, and err on others."""
    text = "Fine-tuned from pretrained weights, the model is better than from random ones."
    for seed in range(10):
        random = np.random.default_rng(seed)
        label = random.integers(0, 2, EXAMPLES)
        first, second, worse = (np.where(random.random(EXAMPLES) < p, label, 1 - label) for p in (0.8, 0.8, 0.5))
        before, *after = (make_accuracy(label, each.astype(float)) for each in (first, second, worse))
        compared = compare_scores(before, after)
        ends = [float(compared[f"change{end}"][0]) for end in ENDS]
        assert verdicts(numbers(pretraining_gain_change=ends))[text] != {"holds"}
        less = [-float(compared[f"change{end}"][1]) for end in ("", "_high", "_low")]
        assert verdicts(numbers(pretraining_gain_change=less))[text] == {"holds"}  # so that this test can tell


def test_no_head_encodes_a_relation_of_unrelated_words():
    random, dims = np.random.default_rng(0), ("task", "direction", "layer", "head")
    texts = random.normal(0, 0.3, (20, 1, 6, 12, 100))  # related words get as much as others at their distance
    mean, margin = texts.mean(-1), 1.96 * texts.std(-1, ddof=1) / 10
    ends = {"gain": mean, "gain_low": mean - margin, "gain_high": mean + margin}
    labels = {"task": [f"relation {at}" for at in range(20)], "direction": ["larger"]}
    coords = {**labels, "layer": range(6), "head": range(12)}
    table = xr.Dataset({name: (dims, values) for name, values in ends.items()}, coords).assign(n=("task", [100] * 20))
    text = "Some head attends to the words of a relation more than their distance explains."
    assert "holds" not in verdicts(numbers(), relations=table.merge(summarise_best(table)))[text]
    shifted = table.assign({name: table[name] + 0.3 * (table["head"] == 0) for name in ends})
    assert verdicts(numbers(), relations=shifted.merge(summarise_best(shifted)))[text] == {"holds"}


def test_no_head_of_an_untrained_model_encodes_a_relation():
    results = found("dark_secrets")
    related = results["relations"].assign(n=0 * results["relations"]["n"] + 60)
    judged = verdicts(results["numbers"], relations=related)
    text = "Some head attends to the words of a relation more than their distance explains."
    assert "holds" not in judged[text]

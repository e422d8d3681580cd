"""Ablation equals scores under edits, one set of heads after the other."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.ablation.changes import compare_scores
from headscope.core.errors import InputError
from headscope.core.provenance import read_provenance
from headscope.training.find_task import TASKS
from headscope.training.metrics import make_accuracy
from headscope.uncertainty.corrections import correct_p_values
from headscope.uncertainty.paired import mcnemar_test
from tests.heads import headed_network
from tests.models import tokenizer
from tests.training.data import choosing, labeled, paired, plain

QUIET = {"progress": False}
DATA = {"classification": labeled, "regression": paired, "choice": choosing, "mlm": plain, "causal": plain}


def with_head(kind, task, **changes):
    """A tiny model with a random head, whose answers differ from text to text."""
    changes |= {"num_labels": 1, "problem_type": "regression"} if task == "regression" else {}
    head = {"regression": "classification"}.get(task, task)
    return hs.load(headed_network(kind, head, **changes).double(), tokenizer=tokenizer())  # little rounding


def balanced_bert():
    """A tiny classifier that gives half of the examples each class."""
    model = with_head("bert", "classification")
    logits = hs.score(model, labeled(40), **QUIET)["logits"].values
    with torch.no_grad():
        model.network.classifier.bias[0] += float(np.median(logits[:, 1] - logits[:, 0]))
    return model


@pytest.fixture(scope="module")
def bert():
    return balanced_bert()


@pytest.fixture(scope="module")
def every_head(bert):
    return hs.ablate(bert, labeled(40), **QUIET)


def test_every_head_is_scored_as_hs_score_does(bert, every_head):
    whole = hs.score(bert, labeled(40), **QUIET)
    assert float(every_head["score"]) == float(whole["accuracy"])
    assert float(every_head["score_low"]) == float(whole["accuracy_low"])
    for layer in every_head["layer"].values:
        for head in every_head["head"].values:
            literal = hs.score(bert, labeled(40), edit=f"zero_heads:heads=L{layer}H{head}", **QUIET)
            cell = every_head.sel(layer=layer, head=head)
            assert float(cell["ablated"]) == float(literal["accuracy"])
            assert float(cell["ablated_high"]) == float(literal["accuracy_high"])
            assert float(cell["change"]) == float(literal["accuracy"]) - float(whole["accuracy"])
            assert (cell["prediction"].values == literal["prediction"].values).all()
            assert int(cell["changed"]) == int((literal["prediction"] != whole["prediction"]).sum())
    assert every_head["changed"].max() > 0  # the test tests something


def test_changes_are_tested_in_pairs_and_corrected_for_all_heads(every_head):
    label = every_head["label"].values
    before = every_head["prediction_whole"].values == label
    literal = np.array(
        [[mcnemar_test(before, cell == label) for cell in row] for row in every_head["prediction"].values]
    )
    np.testing.assert_array_equal(every_head["change_p"], literal)
    np.testing.assert_array_equal(
        every_head["change_p_adjusted"], correct_p_values(literal.ravel()).reshape(literal.shape)
    )
    assert (every_head["change_significant"] == (every_head["change_p_adjusted"] < 0.05)).all()
    assert (every_head["change_low"] <= every_head["change"]).all()
    assert (every_head["change"] <= every_head["change_high"]).all()


def test_the_interval_of_a_change_is_a_paired_bootstrap(every_head):
    cell = every_head.isel(layer=1, head=int(np.argmax(every_head["changed"].values[1])))
    before, after = (
        (every_head[name].values == every_head["label"].values).astype(float)
        for name in ("prediction_whole", "prediction")
    )
    after = after[1, int(cell["head"])]
    index = np.random.default_rng(0).integers(0, 40, (1000, 40))
    draws = after[index].mean(-1) - before[index].mean(-1)
    low, high = np.percentile(draws, [2.5, 97.5])
    change, least = after.mean() - before.mean(), 1.959964 * np.sqrt(2) / 42  # by Bonett & Price
    expected = [min(low, change - least), max(high, change + least)]
    assert [float(cell["change_low"]), float(cell["change_high"])] == pytest.approx(expected, rel=1e-6)


def test_no_changed_prediction_is_no_proof_that_none_ever_changes():
    same, other = make_accuracy(np.ones(48), np.ones(48)), make_accuracy(np.ones(48), np.ones(48))
    ends = compare_scores(same, [same, other])
    margin = 1.959964 * np.sqrt(2) / 50
    np.testing.assert_allclose(ends["change_low"], [0, -margin], rtol=1e-6)  # a run is no comparison of itself
    np.testing.assert_allclose(ends["change_high"], [0, margin], rtol=1e-6)
    assert ends["change"].tolist() == [0, 0]


@pytest.mark.parametrize("task", DATA)
def test_every_task_can_be_ablated(task):
    kind = "gpt2" if task == "causal" else "bert"
    model, data = with_head(kind, task), DATA[task](12)
    found = hs.ablate(model, data, sets=["L1", "L0H1+L1H0"], edit="uniform_heads", batch_size=5, **QUIET)
    for heads in found["heads"].values:
        literal = hs.score(model, data, edit=f"uniform_heads:heads={heads}", batch_size=5, **QUIET)
        assert float(found["ablated"].sel(heads=heads)) == pytest.approx(float(literal[TASKS[task].main]), rel=1e-9)
        answer = "loss" if task in ("mlm", "causal") else "prediction"
        np.testing.assert_allclose(found[answer].sel(heads=heads), literal[answer], rtol=1e-9, atol=1e-9)
    assert ("changed" in found) == (task in ("classification", "choice"))


def test_sets_are_layers_or_all_heads_but_one(bert):
    layers = hs.ablate(bert, labeled(10), sets="layers", **QUIET)
    named = hs.ablate(bert, labeled(10), sets=["L0", "L1", "L1-L1H2"], **QUIET)
    assert layers["ablated"].dims == ("layer",)
    np.testing.assert_array_equal(layers["prediction"], named["prediction"][:2])
    others = hs.ablate(bert, labeled(10), sets="all_but_one", **QUIET)
    np.testing.assert_array_equal(others["prediction"].sel(layer=1, head=2), named["prediction"][2])


def test_sites_are_chosen_by_name():
    model, data = with_head("bart", "classification"), labeled(8)
    found = hs.ablate(model, data, site="cross", **QUIET)
    literal = hs.score(model, data, edit="zero_heads:heads=cross.L1H1", **QUIET)
    np.testing.assert_array_equal(found["prediction"].sel(layer=1, head=1), literal["prediction"])
    assert read_provenance(found)["site"] == "cross"
    own = hs.ablate(model, data, sets=["decoder.L0+L1"], **QUIET)  # of the main site, the encoder
    literal = hs.score(model, data, edit="zero_heads:heads=decoder.L0+encoder.L1", **QUIET)
    np.testing.assert_array_equal(own["prediction"][0], literal["prediction"])
    with pytest.raises(InputError, match="no attention site 'self'. Its sites: encoder, decoder and cross"):
        hs.ablate(model, data, site="self", **QUIET)


def test_results_are_stamped(every_head):
    facts = read_provenance(every_head)
    assert facts["command"] == "hs.ablate"
    assert (facts["edit"], facts["sets"], facts["site"]) == ("zero_heads", "heads", "self")
    assert (facts["main"], facts["correction"], facts["n"]) == ("accuracy", "holm", 40)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edit": "effective_attention"}, "'effective_attention' is no edit of heads"),
        ({"edit": "zero_heads:heads=L1"}, r"names heads, but hs.ablate edits one set .* sets=\['L1'\]"),
        ({"sets": "head"}, "sets='head' is none of heads, layers or all_but_one"),
        ({"sets": []}, "or a list of selections of heads, but got"),
        ({"sets": ["L0", "L0"]}, "names L0 twice"),
        ({"sets": ["L7"]}, "7"),
        ({"site": "cross"}, "no attention site 'cross'. Its sites: self"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_wrong_arguments_are_refused(bert, options, message):
    with pytest.raises(InputError, match=message):
        hs.ablate(bert, labeled(4), **options, **QUIET)


def test_the_model_is_left_as_it_was(bert):
    before = {name: module.forward for name, module in bert.network.named_modules()}
    hs.ablate(bert, labeled(4), sets="layers", **QUIET)
    assert {name: module.forward for name, module in bert.network.named_modules()} == before
    assert not bert.network._forward_hooks
    assert not bert.network._forward_pre_hooks


def test_heads_that_were_pruned_have_no_change_and_are_not_counted(bert):
    smaller, data = hs.prune(bert, ["L0H1", "L1"]), labeled(20)
    found = hs.ablate(smaller, data, **QUIET)
    gone = np.array([[False, True, False, False], [True] * 4])
    assert (found["change"].isnull().values == gone).all()
    assert (found["prediction"].isnull().all("example").values == gone).all()
    kept = found["change_p"].values[~gone]
    np.testing.assert_array_equal(found["change_p_adjusted"].values[~gone], correct_p_values(kept))
    literal = hs.score(bert, data, edit="zero_heads:heads=L0H1+L1+L0H3", **QUIET)
    np.testing.assert_array_equal(found["prediction"].sel(layer=0, head=3), literal["prediction"])
    alone = hs.ablate(smaller, data, sets="all_but_one", **QUIET)
    assert (alone["change"].isnull().values == gone).all()
    assert hs.ablate(smaller, data, sets="layers", **QUIET)["change"].isnull().values.tolist() == [False, True]
    with pytest.raises(InputError, match="'L0H1' was pruned, so it cannot be ablated"):
        hs.ablate(smaller, data, sets=["L0H2", "L0H1"], **QUIET)
    with pytest.raises(InputError, match="All heads at 'self' were pruned"):
        hs.ablate(hs.prune(bert, "all"), data, **QUIET)

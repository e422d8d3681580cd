"""Pruning curves equal literal loops over scores under edits."""

import numpy as np
import pytest

import headscope as hs
from headscope.ablation.pruning_curve import Head, _read_seeds, extend_pruned, list_heads, plan_steps, rank_heads
from headscope.core.errors import InputError, UnknownName
from headscope.core.provenance import read_provenance
from tests.ablation.test_ablate import balanced_bert, with_head
from tests.training.data import labeled, plain

QUIET = {"progress": False}
NAMES = [f"L{layer}H{head}" for layer in range(2) for head in range(4)]


@pytest.fixture(scope="module")
def bert():
    return balanced_bert()


def literal_order(model, data, edit=None):
    """Return the names of all heads from the least important on."""
    table = hs.head_importance(model, data, edit=edit, normalize="layer", **QUIET)["head_importance"].values
    return [NAMES[index] for index in np.argsort(table.flatten(), kind="stable")]


def score_without(model, data, names):
    edit = f"zero_heads:heads={'+'.join(names)}" if names else None
    return hs.score(model, data, edit=edit, **QUIET)


def test_heads_go_from_the_least_important_on(bert):
    data = labeled(40)
    curve = hs.pruning_curve(bert, data, steps=25, **QUIET)
    order, whole = literal_order(bert, data), hs.score(bert, data, **QUIET)
    assert curve["pruned"].values.tolist() == [0, 25, 50, 75, 100]
    assert curve["count"].values.tolist() == [0, 2, 4, 6, 8]
    for index, count in enumerate(curve["count"].values):
        step, literal = curve.isel(pruned=index), score_without(bert, data, order[:count])
        assert str(step["heads"].values) == "+".join(order[:count])
        for end in ("", "_low", "_high"):
            assert float(step[f"score{end}"]) == float(literal[f"accuracy{end}"])
        assert float(step["change"]) == float(literal["accuracy"]) - float(whole["accuracy"])
    assert (curve["change_low"] <= curve["change"]).all()
    assert (curve["change_high"] >= curve["change"]).all()
    assert [float(curve[f"change{end}"][0]) for end in ("", "_low", "_high")] == [0, 0, 0]  # the whole model itself
    assert (curve["change_high"] > curve["change_low"])[1:].all()
    assert len(set(curve["score"].values)) > 2  # the test tests something
    facts = read_provenance(curve)
    assert facts["main"] == "accuracy"
    assert (facts["by"], facts["site"], facts["recompute"]) == ("importance", "self", False)


def test_recomputed_importance_is_that_of_what_is_left(bert):
    data, pruned = labeled(12), []
    curve = hs.pruning_curve(bert, data, steps=25, recompute=True, **QUIET)
    for count, heads in zip((2, 4, 6, 8), curve["heads"].values[1:], strict=True):
        edit = f"zero_heads:heads={'+'.join(pruned)}" if pruned else None
        left = [name for name in literal_order(bert, data, edit) if name not in pruned]
        pruned += left[: count - len(pruned)]
        assert heads == "+".join(pruned)
    assert read_provenance(curve)["recompute"] is True


def test_importance_may_come_from_other_data(bert):
    curve = hs.pruning_curve(bert, labeled(8), steps=50, importance_data=labeled(12, 50), **QUIET)
    assert str(curve["heads"].values[1]) == "+".join(literal_order(bert, labeled(12, 50))[:4])


def test_random_orders_differ_by_seed_and_come_again(bert):
    data = labeled(8)
    curve = hs.pruning_curve(bert, data, by="random", steps=25, seeds=3, **QUIET)
    assert curve["score"].dims == ("seed", "pruned")
    assert len(set(curve["heads"].values[:, 2])) == 3
    assert {len(set(heads.split("+"))) for heads in curve["heads"].values[:, 4]} == {8}
    again = hs.pruning_curve(bert, data, by="random", steps=25, seeds=[2], **QUIET)
    assert again["heads"].values[0].tolist() == curve["heads"].sel(seed=2).values.tolist()
    heads = str(curve["heads"].values[1, 2]).split("+")
    literal = score_without(bert, data, heads)
    assert float(curve["score"][1, 2]) == float(literal["accuracy"])
    assert (curve["score"][:, 0] == curve["score"][0, 0]).all()
    assert (curve["score"][:, -1] == curve["score"][0, -1]).all()  # without any head


def test_every_layer_keeps_some_heads(bert):
    curve = hs.pruning_curve(bert, labeled(8), steps=12.5, keep=1, **QUIET)
    assert curve["count"].values.tolist() == [0, 1, 2, 3, 4, 5, 6]
    last = str(curve["heads"].values[-1]).split("+")
    assert [sum(name.startswith(f"L{layer}") for name in last) for layer in range(2)] == [3, 3]


def test_the_scores_are_those_of_the_smaller_models(bert):
    data = labeled(40)
    curve = hs.pruning_curve(bert, data, steps=50, **QUIET)
    smaller = hs.prune(bert, str(curve["heads"].values[1]))
    assert float(hs.score(smaller, data, **QUIET)["accuracy"]) == float(curve["score"][1])
    rest = hs.pruning_curve(smaller, data, steps=50, **QUIET)  # of the four heads that are left
    assert rest["count"].values.tolist() == [0, 2, 4]
    assert float(rest["score"][0]) == float(curve["score"][1])
    assert float(rest["score"][-1]) == float(curve["score"][-1])


def test_a_language_model_has_a_curve():
    model = with_head("gpt2", "causal")
    curve = hs.pruning_curve(model, plain(6), steps=50, **QUIET)
    assert curve["score"].attrs["long_name"] == "perplexity"
    names = str(curve["heads"].values[1])
    literal = hs.score(model, plain(6), edit=f"zero_heads:heads={names}", **QUIET)
    assert float(curve["score"][1]) == pytest.approx(float(literal["perplexity"]), rel=1e-6)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_heads_of_each_site_or_of_all_are_pruned(kind):
    model = with_head(kind, "seq2seq")
    data = [{"text": example.text, "pair": example.text[:12]} for example in plain(4)]
    curve = hs.pruning_curve(model, data, site="cross", steps=50, **QUIET)
    names = str(curve["heads"].values[1]).split("+")
    assert len(names) == 4
    assert all(name.startswith("cross.") for name in names)
    table = hs.head_importance(model, data, site="cross", normalize="layer", **QUIET)["head_importance"].values
    literal = [f"cross.{NAMES[index]}" for index in np.argsort(table.flatten(), kind="stable")]
    assert names == literal[:4]
    score = hs.score(hs.prune(model, names), data, **QUIET)
    assert float(curve["score"][1]) == pytest.approx(float(score["bleu"]))
    everywhere = hs.pruning_curve(model, data, site="all", by="random", steps=50, seeds=1, **QUIET)
    assert everywhere["count"].values.tolist() == [0, 12, 24]
    found = {name.partition(".")[0] for name in str(everywhere["heads"].values[0, 1]).split("+")}
    assert found == {"encoder", "decoder", "cross"}


def test_a_layer_with_few_heads_left_is_passed_over():
    heads = [Head("self", layer, head, f"L{layer}H{head}") for layer in (0, 1) for head in (0, 1)]
    importance = {"self": np.array([[1.0, 2.0], [3.0, 4.0]])}
    ranked = rank_heads(list(reversed(heads)), importance)
    assert [head.name for head in ranked] == ["L0H0", "L0H1", "L1H0", "L1H1"]
    assert [head.name for head in extend_pruned([], ranked, 2, keep=1)] == ["L0H0", "L1H0"]
    assert [head.name for head in extend_pruned([heads[3]], ranked, 2, keep=0)] == ["L1H1", "L0H0"]
    assert plan_steps(heads, 25, keep=1) == {0: 0, 25: 1, 50: 2}
    assert [head.name for head in list_heads({"encoder": {0: 1}, "cross": {0: 2}}, ["cross"], ["cross.L0H0"])] == [
        "cross.L0H1"
    ]


def test_requests_that_cannot_be_met(bert):
    data = labeled(4)
    with pytest.raises(UnknownName, match="No order of pruning is called 'gradient'. Known: importance, random"):
        hs.pruning_curve(bert, data, by="gradient", **QUIET)
    with pytest.raises(InputError, match="recompute and importance_data are for by='importance'"):
        hs.pruning_curve(bert, data, by="random", recompute=True, **QUIET)
    with pytest.raises(InputError, match="steps is a percentage of all heads, above 0 and up to 100, but got 0"):
        hs.pruning_curve(bert, data, steps=0, **QUIET)
    with pytest.raises(
        InputError, match="keep is the number of heads that each layer keeps, from 0 to 3 here, but got 4"
    ):
        hs.pruning_curve(bert, data, keep=4, **QUIET)
    with pytest.raises(InputError, match=r"a list of different seeds, but got \[1, 1\]"):
        hs.pruning_curve(bert, data, by="random", seeds=[1, 1], **QUIET)
    heads = [Head("self", 0, head, f"L0H{head}") for head in range(4)]
    for options in ({"steps": "x"}, {"steps": True}, {"keep": 1.5}, {"keep": -1}):
        with pytest.raises(InputError, match=f"but got {next(iter(options.values()))!r}"):
            plan_steps(heads, **{"steps": 10, "keep": 0, **options})
    for seeds in ([1.5], "3", 0, [-1], None):
        with pytest.raises(InputError, match="seeds must be a number of random orders or a list of different seeds"):
            _read_seeds(seeds)
    with pytest.raises(InputError, match="has no attention site 'cross'"):
        hs.pruning_curve(bert, data, site="cross", **QUIET)
    with pytest.raises(InputError, match="All heads at 'self' are pruned already"):
        hs.pruning_curve(hs.prune(bert, "all"), data, **QUIET)

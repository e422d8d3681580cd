"""Where nothing is to be found, no verdict says that something is: shuffled labels, random orders, idle heads."""

import numpy as np
import pytest
import xarray as xr

from headscope.ablation.changes import compare_scores
from headscope.experiments.claims import judge
from headscope.training.metrics import make_accuracy
from headscope.uncertainty.corrections import LEVEL, correct_p_values
from headscope.uncertainty.correlation import pearson, spearman
from headscope_studies.sixteen_heads.claims import CLAIMS, TRANSLATION_CLAIMS, complete_sites, enough
from headscope_studies.sixteen_heads.head_effects import choose_best, correlate_heads, judge_best, name_all_but

ENDS = ("", "_low", "_high")
SHAPE = LAYERS, HEADS = 6, 12
EXAMPLES = 200


def find_claim(quantity, claims=CLAIMS):
    (claim,) = [claim for claim in claims if claim.quantity == quantity]
    return claim


def test_with_shuffled_labels_heads_are_significant_as_often_as_the_level_says():
    """Predictions do not depend on labels, and without a head one of ten is another."""
    families, raw = 0, []
    for seed in range(40):
        random = np.random.default_rng(seed)
        label, whole = random.integers(0, 2, (2, EXAMPLES))
        without = np.where(random.random((LAYERS * HEADS, EXAMPLES)) < 0.1, 1 - whole, whole)
        before, *after = (make_accuracy(label, each.astype(float)) for each in (whole, *without))
        p = compare_scores(before, after)["change_p"]
        raw.append((p < LEVEL).mean())
        families += int((correct_p_values(p) < LEVEL).any())
    assert families <= 4  # of 40, by binomial draws with 5 % each: more in 1 % of the cases
    assert 0 < np.mean(raw) <= LEVEL  # an exact test of few changes is careful


@pytest.mark.parametrize(
    ("quantity", "dim", "label", "correlation"),
    [
        ("agreement", "reduction", "example", spearman),
        ("effect_correlation", "parts", "groups", pearson),
        ("determined", "trained", 20, spearman),
    ],
)
def test_a_random_order_of_heads_agrees_with_nothing(quantity, dim, label, correlation):
    claim = find_claim(quantity)

    def judge_pair(first, second):
        ends = dict(zip(ENDS, correlate_heads(first, second, correlation), strict=True))
        variables = {f"{quantity}{end}": (("task", dim), [[value]]) for end, value in ends.items()}
        return judge(claim, xr.Dataset({**variables, "n": ("task", [400])}, {"task": ["STS-B"], dim: [label]})).verdict

    for seed in range(10):
        first, second = np.random.default_rng(seed).normal(size=(2, *SHAPE))
        assert judge_pair(first, second) != "holds"
        assert judge_pair(first, first + 0.2 * second) == "holds"  # so that this test can tell


def remove_at_random(random, rows, lost):
    """Return the effect of all heads of a layer but one: as many answers get right as wrong, except those `lost`."""
    whole = random.random(rows) < 0.8
    flips = random.random((LAYERS, HEADS, rows)) < np.where(whole, 0.02, 0.08)
    right = np.where(flips, ~whole, whole) & (random.random((LAYERS, HEADS, rows)) >= lost)
    label = np.ones(rows)
    before, *after = (make_accuracy(label, each.astype(float)) for each in (whole, *right.reshape(-1, rows)))
    return compare_scores(before, after), right.mean(-1), float(whole.mean())


def keep_best(random, lost=0.0):
    """Return the change with the best head of each layer alone, chosen on one half of the inputs, and the score."""
    _, ablated, _ = remove_at_random(random, 1000, lost)
    best = choose_best(xr.Dataset({"ablated": (("layer", "head"), ablated)}, {"layer": range(6), "head": range(12)}))
    compared, _, whole = remove_at_random(random, 1000, lost)  # the other half
    at = [layer * HEADS + head for layer, head in best.items()]
    names = ("change", "change_low", "change_high", "change_p")
    alone = xr.Dataset({name: ("heads", compared[name][at]) for name in names}, {"heads": name_all_but(best)})
    return judge_best(best, alone), whole


def test_a_last_layer_whose_heads_do_nothing_needs_no_more_than_one():
    claim = find_claim("last", TRANSLATION_CLAIMS)
    for seed in range(5):
        for lost, verdict in ((0.0, False), (0.5, True)):
            best, whole = keep_best(np.random.default_rng(seed), lost)
            sites = best.assign(alone_score=whole, score=whole, n=2000).expand_dims(task=["cross"])
            assert (judge(claim, complete_sites(sites)).verdict == "holds") is verdict


def test_one_head_is_enough_in_layers_whose_heads_do_nothing():
    counts = []
    for seed in range(5):
        best, whole = keep_best(np.random.default_rng(seed))
        counts.append(float(enough(best, whole, LEVEL).mean()))
    assert np.mean(counts) > 0.9
    best, whole = keep_best(np.random.default_rng(0), lost=0.5)
    assert not enough(best, whole, LEVEL).any()

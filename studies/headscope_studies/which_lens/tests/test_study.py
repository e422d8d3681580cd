"""What the study of lenses measures and says."""

import numpy as np
import pytest

from headscope.core.estimate import interval_names
from headscope.experiments.claims import HOLDS
from headscope_studies.which_lens.claims import CLAIMS, HEADS, HIDDEN, LAYERS, RANDOM, judge_models
from headscope_studies.which_lens.measure import CUTS, EDGES, ORDER, TOKENS
from tests.study_data import found


@pytest.fixture(scope="module")
def numbers():
    return found("which-lens")["numbers"]


def test_every_lens_of_a_claim_is_measured_where_the_claim_is_judged():
    lenses = {HEADS: EDGES, LAYERS: CUTS, None: {**TOKENS, RANDOM: ""}}
    for claim in CLAIMS:
        assert {claim.where["lens"], claim.where["than"]} <= set(lenses[claim.where.get("judge")])


def test_a_change_is_the_difference_of_two_lenses(numbers):
    assert numbers["lens"].values.tolist() == ORDER
    row = numbers.isel(task=0).sel(judge=HEADS, effect=HIDDEN)
    for lens in EDGES:
        change = row["agreement_change"].sel(lens=lens, than="raw")
        np.testing.assert_allclose(
            change, row["agreement"].sel(lens=lens) - row["agreement"].sel(lens="raw"), atol=1e-9
        )


def test_lenses_that_are_the_same_give_no_claim_that_holds(numbers):
    same = numbers.copy(deep=True).assign(n=("task", [500]), long_share=("task", [1.0]))
    for quantity in ("agreement", "covered", "unseen", "removed"):
        for end in interval_names(f"{quantity}_change"):
            same[end] = same[end] * 0.0
    (judged,) = judge_models({"same": same}).values()
    assert len(judged) == len(CLAIMS)
    assert {task.verdict for claim in judged for task in claim.tasks}.isdisjoint({HOLDS})


def test_noise_without_an_effect_gives_no_claim_that_holds(numbers):
    draws, noisy = (
        np.random.default_rng(0),
        numbers.copy(deep=True).assign(n=("task", [500]), long_share=("task", [1.0])),
    )
    for quantity in ("agreement", "covered", "unseen", "removed"):
        value, low, high = interval_names(f"{quantity}_change")
        noise = draws.normal(0, 0.02, numbers[value].shape)
        noisy[value] = numbers[value] * 0 + noise
        noisy[low], noisy[high] = noisy[value] - 0.04, noisy[value] + 0.04  # 95 % of 0.02
    (judged,) = judge_models({"noise": noisy}).values()
    assert {task.verdict for claim in judged for task in claim.tasks}.isdisjoint({HOLDS})

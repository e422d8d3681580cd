"""Entropy, peak and distance have the values worked out by hand."""

from math import log

import pytest
import torch

from headscope.core.errors import InputError
from headscope.statistics.distance import Distance
from headscope.statistics.entropy import Entropy
from headscope.statistics.peak import Peak
from tests.batches import build_maps, one_lens

WORDS = ["[CLS]", "noun", "verb", "[SEP]"]


def value(statistic, weights, rows=(WORDS,), **options):
    """Return the value of a statistic for a single map."""
    (number,) = statistic.values(
        one_lens(build_maps([torch.as_tensor(weights)[None, None]], list(rows), **options))
    ).values()
    return number.item()


def uniform(keys):
    return torch.full((keys, keys), 1 / keys)


def test_uniform_attention_has_maximal_entropy():
    assert value(Entropy(), uniform(4)) == pytest.approx(log(4))
    assert value(Peak(), uniform(4)) == pytest.approx(1 / 4)


def test_attention_to_one_key_has_no_entropy():
    assert value(Entropy(), torch.eye(4)) == 0
    assert value(Peak(), torch.eye(4)) == 1
    assert value(Distance(), torch.eye(4)) == 0


def test_rows_are_normalized():
    assert value(Entropy(), uniform(4) * 0.3) == pytest.approx(log(4))
    assert value(Entropy(), torch.eye(4) * 0.3) == pytest.approx(0, abs=1e-6)
    assert value(Peak(), torch.eye(4) * 7) == pytest.approx(1)


def test_negative_weights_count_by_their_absolute_value():
    signed = uniform(4) * torch.tensor([1.0, -1.0, 1.0, -1.0])
    assert value(Entropy(), signed, signed=True) == pytest.approx(log(4))
    assert value(Peak(), -torch.eye(4), signed=True) == 1


def test_a_causal_mask_restricts_the_entropy_to_visible_keys():
    visible = torch.ones(4, 4).tril()
    number = value(Entropy(), visible / visible.sum(-1, keepdim=True), causal=True)
    assert number == pytest.approx((log(1) + log(2) + log(3) + log(4)) / 4)


def test_smoothing_mixes_in_uniform_attention():
    share = 0.9 + 0.1 / 4
    expected = -share * log(share) - 3 * (0.1 / 4) * log(0.1 / 4)
    assert value(Entropy(smoothing=0.1), torch.eye(4)) == pytest.approx(expected)


def test_the_row_of_cls_can_be_selected():
    weights = torch.eye(4)
    weights[0] = 1 / 4
    assert value(Entropy(rows="cls"), weights) == pytest.approx(log(4))
    assert value(Entropy(), weights) == pytest.approx(log(4) / 4)


def test_a_text_without_cls_has_no_value_for_its_row():
    weights = uniform(3)[None, None]
    result = Entropy(rows="cls").observe(one_lens(build_maps([weights], [["noun", "verb", "noun"]])))
    result = Entropy(rows="cls").finish(result)
    assert result.entropy.isnull().all()
    assert (result.entropy_n == 0).all()


def test_a_row_without_weight_is_left_out():
    weights = uniform(4)
    weights[1] = 0
    assert value(Entropy(), weights) == pytest.approx(log(4))


def test_attention_to_the_neighbour_has_distance_1():
    weights = torch.eye(4).roll(-1, dims=1)
    weights[0] = torch.tensor([0.0, 1.0, 0.0, 0.0])  # the first token has no previous token, and attends to the next
    assert value(Distance(), weights) == 1


def test_the_distance_of_uniform_attention_is_the_mean_distance_of_tokens():
    assert value(Distance(), uniform(3), [["noun"] * 3]) == pytest.approx((1 + 2 / 3 + 1) / 3)


def test_maps_larger_than_a_block_have_the_same_entropy():
    weights = torch.rand(2, 3, 400, 400, generator=torch.Generator().manual_seed(0))
    whole = Entropy().values(one_lens(build_maps([weights], [["noun"] * 400])))["entropy"]
    shares = weights.double() / weights.double().sum(-1, keepdim=True)
    torch.testing.assert_close(whole[0], -(shares * shares.log()).sum(-1).mean(-1), rtol=1e-6, atol=1e-6)


def test_half_precision_maps_are_measured_in_float32():
    weights = uniform(4).to(torch.bfloat16)
    assert value(Entropy(), weights) == pytest.approx(log(4))


def test_smoothing_outside_0_to_1_raises():
    with pytest.raises(InputError, match="The parameter 'smoothing' of 'entropy' must be at least 0 and less than 1"):
        Entropy(smoothing=1.5)


def test_the_units_of_entropy_are_nats():
    result = Entropy().finish(Entropy().observe(one_lens(build_maps([uniform(4)[None, None]], [WORDS]))))
    assert result.entropy.attrs == result.entropy_sd.attrs == {"units": "nats"}
    assert result.entropy_n.attrs == {}

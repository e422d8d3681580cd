"""Entropy, peak and distance, worked out by hand."""

from math import log

import pytest
import torch

from headscope.core.errors import InputError
from headscope.statistics.distance import Distance
from headscope.statistics.entropy import Entropy
from headscope.statistics.offsets import Offsets
from headscope.statistics.peak import Peak
from tests.batches import build_maps, one_lens

WORDS = ["[CLS]", "noun", "verb", "[SEP]"]


def value(statistic, weights, rows=(WORDS,), **options):
    """The one number of a statistic for a single map."""
    (found,) = statistic.values(
        one_lens(build_maps([torch.as_tensor(weights)[None, None]], list(rows), **options))
    ).values()
    return found.item()


def even(keys):
    return torch.full((keys, keys), 1 / keys)


def test_even_attention_has_the_entropy_of_its_keys():
    assert value(Entropy(), even(4)) == pytest.approx(log(4))
    assert value(Peak(), even(4)) == pytest.approx(1 / 4)


def test_attention_to_one_key_has_no_entropy():
    assert value(Entropy(), torch.eye(4)) == 0
    assert value(Peak(), torch.eye(4)) == 1
    assert value(Distance(), torch.eye(4)) == 0


def test_a_row_that_does_not_sum_to_1_counts_by_its_shares():
    assert value(Entropy(), even(4) * 0.3) == pytest.approx(log(4))
    assert value(Entropy(), torch.eye(4) * 0.3) == pytest.approx(0, abs=1e-6)
    assert value(Peak(), torch.eye(4) * 7) == pytest.approx(1)


def test_a_negative_weight_counts_by_its_size():
    checked = even(4) * torch.tensor([1.0, -1.0, 1.0, -1.0])
    assert value(Entropy(), checked, signed=True) == pytest.approx(log(4))
    assert value(Peak(), -torch.eye(4), signed=True) == 1


def test_under_a_causal_mask_even_attention_is_even_over_what_a_token_sees():
    seen = torch.ones(4, 4).tril()
    found = value(Entropy(), seen / seen.sum(-1, keepdim=True), causal=True)
    assert found == pytest.approx((log(1) + log(2) + log(3) + log(4)) / 4)


def test_smoothing_mixes_in_even_attention():
    share = 0.9 + 0.1 / 4
    wanted = -share * log(share) - 3 * (0.1 / 4) * log(0.1 / 4)
    assert value(Entropy(smoothing=0.1), torch.eye(4)) == pytest.approx(wanted)


def test_the_row_of_cls_can_be_taken_alone():
    weights = torch.eye(4)
    weights[0] = 1 / 4
    assert value(Entropy(rows="cls"), weights) == pytest.approx(log(4))
    assert value(Entropy(), weights) == pytest.approx(log(4) / 4)


def test_without_cls_its_row_has_no_entropy_and_is_not_counted():
    weights = even(3)[None, None]
    result = Entropy(rows="cls").observe(one_lens(build_maps([weights], [["noun", "verb", "noun"]])))
    result = Entropy(rows="cls").finish(result)
    assert result.entropy.isnull().all()
    assert (result.entropy_n == 0).all()


def test_a_row_without_weight_is_left_out():
    weights = even(4)
    weights[1] = 0
    assert value(Entropy(), weights) == pytest.approx(log(4))


def test_a_head_that_looks_at_its_neighbour_has_distance_1():
    back = torch.eye(4).roll(-1, dims=1)
    back[0] = torch.tensor([0.0, 1.0, 0.0, 0.0])  # the first has none behind it, and looks ahead
    assert value(Distance(), back) == 1


def test_even_attention_looks_as_far_as_tokens_stand_apart():
    assert value(Distance(), even(3), [["noun"] * 3]) == pytest.approx((1 + 2 / 3 + 1) / 3)


def test_long_texts_go_in_pieces_and_give_the_same():
    weights = torch.rand(2, 3, 400, 400, generator=torch.Generator().manual_seed(0))
    whole = Entropy().values(one_lens(build_maps([weights], [["noun"] * 400])))["entropy"]
    shares = weights.double() / weights.double().sum(-1, keepdim=True)
    torch.testing.assert_close(whole[0], -(shares * shares.log()).sum(-1).mean(-1), rtol=1e-6, atol=1e-6)


def test_half_precision_maps_are_measured_in_float32():
    weights = even(4).to(torch.bfloat16)
    assert value(Entropy(), weights) == pytest.approx(log(4))


def test_smoothing_must_be_a_fraction():
    with pytest.raises(InputError, match="The parameter 'smoothing' of 'entropy' must be at least 0 and less than 1"):
        Entropy(smoothing=1.5)


def test_entropy_says_that_it_is_in_nats():
    result = Entropy().finish(Entropy().observe(one_lens(build_maps([even(4)[None, None]], [WORDS]))))
    assert result.entropy.attrs == result.entropy_sd.attrs == {"units": "nats"}
    assert result.entropy_n.attrs == {}


def test_a_result_has_readable_names_of_its_quantities():
    result = Offsets().finish(Offsets().observe(one_lens(build_maps([even(4)[None, None]], [WORDS]))))
    assert result.offsets.attrs == {"long_name": "attention weight"}
    assert result.offsets_absolute.attrs == {"long_name": "absolute attention weight"}
    assert result.offsets_sd.attrs == {}

"""Offsets, special tokens and the effective share, worked out by hand."""

from dataclasses import replace

import pytest
import torch

from headscope.core.batch import Batch
from headscope.core.catalog import lenses
from headscope.core.errors import InputError
from headscope.statistics.effective_share import EffectiveShare
from headscope.statistics.offsets import Offsets
from headscope.statistics.special_tokens import SpecialTokens
from tests.batches import build_maps, one_lens

PAIR = ["[CLS]", "noun", "[SEP]", "verb", "[SEP]"]


def result(statistic, weights, row, **options):
    maps = build_maps([torch.as_tensor(weights)[None, None]], [row], **options)
    return statistic.finish(statistic.observe(one_lens(maps))).isel(layer=0, head=0)


def numbered(size):
    """A map whose weights all differ: 1, 2, 3 … by rows."""
    return torch.arange(1.0, size * size + 1).view(size, size)


def test_offsets_are_the_diagonals():
    found = result(Offsets(), numbered(3), ["noun"] * 3).offsets
    assert list(found.offset) == [-2, -1, 0, 1, 2]
    assert found.values.tolist() == [7, (4 + 8) / 2, (1 + 5 + 9) / 3, (2 + 6) / 2, 3]


def test_under_a_causal_mask_no_next_token_is_seen():
    found = result(Offsets(), numbered(3), ["noun"] * 3, causal=True)
    assert found.offsets_n.values.tolist() == [1, 1, 1, 0, 0]
    assert found.offsets.isnull().values.tolist() == [False, False, False, True, True]


def test_a_text_too_short_for_an_offset_has_none():
    found = result(Offsets(reach=3), numbered(2), ["noun"] * 2)
    assert found.offsets_n.values.tolist() == [0, 0, 1, 1, 1, 0, 0]


def test_signed_weights_cancel_and_their_sizes_do_not():
    found = result(Offsets(reach=0), torch.tensor([[2.0, 0.0], [0.0, -2.0]]), ["noun"] * 2, signed=True)
    assert found.offsets.item() == 0
    assert found.offsets_absolute.item() == 2


def test_a_reach_below_0_is_refused():
    with pytest.raises(InputError, match="The parameter 'reach' of 'offsets' must be at least 0, but got -1."):
        Offsets(reach=-1)


def test_weight_on_special_tokens_comes_from_others_and_from_themselves():
    found = result(SpecialTokens(), numbered(5), PAIR).special_tokens
    sums = numbered(5)[:, 2] + numbered(5)[:, 4]
    assert found.sel(role="cls", source="itself").item() == 1
    assert found.sel(role="cls", source="others").item() == pytest.approx((6 + 11 + 16 + 21) / 4)
    assert found.sel(role="sep", source="itself").item() == pytest.approx((sums[2] + sums[4]).item() / 2)
    assert found.sel(role="sep", source="others").item() == pytest.approx((sums[0] + sums[1] + sums[3]).item() / 3)
    assert found.sel(role="mask").isnull().all()


def test_of_two_separators_the_larger_can_be_taken():
    found = result(SpecialTokens(several="max"), numbered(5), PAIR).special_tokens
    assert found.sel(role="sep", source="others").item() == pytest.approx((5 + 10 + 20) / 3)


def test_the_larger_of_signed_weights_is_the_signed_larger():
    weights = torch.tensor([[0.0, -3.0, -1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    found = result(SpecialTokens(several="max"), weights, ["noun", "[SEP]", "[SEP]"], signed=True)
    where = {"role": "sep", "source": "others"}
    assert found.special_tokens.sel(where).item() == -1
    assert found.special_tokens_absolute.sel(where).item() == 3


def test_a_token_that_cannot_see_the_separator_does_not_count():
    found = result(SpecialTokens(), numbered(3), ["noun", "[SEP]", "verb"], causal=True).special_tokens
    assert found.sel(role="sep", source="others").item() == 8  # the first noun sees no separator yet
    assert found.sel(role="cls").isnull().all()


def test_text_without_special_tokens_has_no_weight_on_them():
    for several in ("sum", "max"):
        found = result(SpecialTokens(several=several), numbered(2), ["noun", "verb"])
        assert (found.special_tokens_n == 0).all()


def test_the_effective_share_is_that_of_the_effective_lens():
    raw, effective = (
        build_maps([torch.eye(2)[None, None]], [["noun"] * 2], lens=lens) for lens in ("raw", "effective")
    )
    effective = replace(effective, diagnostics={"share": torch.full((1, 1, 1), 0.25)})
    maps = {("model", "raw"): raw, ("model", "effective"): effective}
    for lens in ("raw", "effective"):
        assert EffectiveShare().values(Batch(raw.examples, maps, lens))["effective_share"].item() == 0.25


def test_the_effective_share_asks_for_the_effective_lens_with_the_same_keys():
    def asked(lens):
        return EffectiveShare().lenses(lenses.make(lens))

    assert asked("effective:keys=paper") == ()
    assert asked("null:keys=padded") == (lenses.make("effective:keys=padded"),)
    assert asked("raw") == asked("norm:merge=true") == (lenses.make("effective"),)

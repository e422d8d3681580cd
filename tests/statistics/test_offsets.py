import pytest
import torch

from headscope.core.errors import InputError
from headscope.statistics.offsets import Offsets
from tests.batches import build_maps, one_lens


def measure(statistic, weights, row, **options):
    maps = build_maps([torch.as_tensor(weights)[None, None]], [row], **options)
    return statistic.finish(statistic.observe(one_lens(maps))).isel(layer=0, head=0)


def numbered(size):
    """A map whose weights all differ: 1, 2, 3 … by rows."""
    return torch.arange(1.0, size * size + 1).view(size, size)


def test_offsets_are_the_diagonals():
    result = measure(Offsets(), numbered(3), ["noun"] * 3).offsets
    assert list(result.offset) == [-2, -1, 0, 1, 2]
    assert result.values.tolist() == [7, (4 + 8) / 2, (1 + 5 + 9) / 3, (2 + 6) / 2, 3]


def test_a_causal_model_has_no_value_for_the_next_token():
    result = measure(Offsets(), numbered(3), ["noun"] * 3, causal=True)
    assert result.offsets_n.values.tolist() == [1, 1, 1, 0, 0]
    assert result.offsets.isnull().values.tolist() == [False, False, False, True, True]


def test_a_text_shorter_than_an_offset_has_no_value():
    result = measure(Offsets(reach=3), numbered(2), ["noun"] * 2)
    assert result.offsets_n.values.tolist() == [0, 0, 1, 1, 1, 0, 0]


def test_signed_weights_cancel_but_absolute_weights_do_not():
    result = measure(Offsets(reach=0), torch.tensor([[2.0, 0.0], [0.0, -2.0]]), ["noun"] * 2, signed=True)
    assert result.offsets.item() == 0
    assert result.offsets_absolute.item() == 2


def test_a_negative_reach_raises():
    with pytest.raises(InputError, match="The parameter 'reach' of 'offsets' must be at least 0, but got -1."):
        Offsets(reach=-1)


def test_the_variables_have_readable_names():
    result = Offsets().finish(
        Offsets().observe(one_lens(build_maps([torch.full((1, 1, 4, 4), 1 / 4)], [["noun"] * 4])))
    )
    assert result.offsets.attrs == {"long_name": "attention weight"}
    assert result.offsets_absolute.attrs == {"long_name": "absolute attention weight"}
    assert result.offsets_sd.attrs == {}


def test_clark_divides_by_the_number_of_all_tokens():
    result = measure(Offsets(reach=1, rows="clark"), numbered(3), ["noun"] * 3).offsets
    assert result.values.tolist() == [(4 + 8) / 3, (1 + 5 + 9) / 3, (2 + 6) / 3]

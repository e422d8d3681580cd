import pytest
import torch

from headscope.core.catalog import statistics
from headscope.core.errors import InputError
from headscope.statistics.special_tokens import SpecialTokens
from tests.batches import build_maps, one_lens

PAIR = ["[CLS]", "noun", "[SEP]", "verb", "[SEP]"]


def measure(statistic, weights, row, **options):
    maps = build_maps([torch.as_tensor(weights)[None, None]], [row], **options)
    return statistic.finish(statistic.observe(one_lens(maps))).isel(layer=0, head=0)


def numbered(size):
    """A map whose weights all differ: 1, 2, 3 … by rows."""
    return torch.arange(1.0, size * size + 1).view(size, size)


def test_weight_from_other_roles_and_from_the_same_role_is_separate():
    result = measure(SpecialTokens(), numbered(5), PAIR).special_tokens
    sums = numbered(5)[:, 2] + numbered(5)[:, 4]
    assert result.sel(role="cls", source="itself").item() == 1
    assert result.sel(role="cls", source="others").item() == pytest.approx((6 + 11 + 16 + 21) / 4)
    assert result.sel(role="sep", source="itself").item() == pytest.approx((sums[2] + sums[4]).item() / 2)
    assert result.sel(role="sep", source="others").item() == pytest.approx((sums[0] + sums[1] + sums[3]).item() / 3)
    assert result.sel(role="mask").isnull().all()


def test_max_takes_the_larger_weight_of_two_separators():
    result = measure(SpecialTokens(reduce="max"), numbered(5), PAIR).special_tokens
    assert result.sel(role="sep", source="others").item() == pytest.approx((5 + 10 + 20) / 3)


def test_the_maximum_of_signed_weights_is_signed():
    weights = torch.tensor([[0.0, -3.0, -1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    result = measure(SpecialTokens(reduce="max"), weights, ["noun", "[SEP]", "[SEP]"], signed=True)
    cell = {"role": "sep", "source": "others"}
    assert result.special_tokens.sel(cell).item() == -1
    assert result.special_tokens_absolute.sel(cell).item() == 3


def test_rows_that_do_not_see_the_separator_are_left_out():
    result = measure(SpecialTokens(), numbered(3), ["noun", "[SEP]", "verb"], causal=True).special_tokens
    assert result.sel(role="sep", source="others").item() == 8  # the first noun sees no separator yet
    assert result.sel(role="cls").isnull().all()


def test_text_without_special_tokens_has_no_value():
    for several in ("sum", "max"):
        result = measure(SpecialTokens(reduce=several), numbered(2), ["noun", "verb"])
        assert (result.special_tokens_n == 0).all()


def test_every_way_to_reduce_two_separators_is_measured_at_once():
    every = measure(SpecialTokens(reduce="all"), numbered(5), PAIR)
    assert every.several.values.tolist() == ["max", "mean", "sum"]
    for several in ("max", "mean", "sum"):
        alone = measure(SpecialTokens(reduce=several), numbered(5), PAIR)
        for name in ("special_tokens", "special_tokens_absolute"):
            assert every[name].sel(several=several).equals(alone[name].assign_coords(several=several))


def test_roles_and_the_source_can_be_selected():
    whole = measure(SpecialTokens(), numbered(5), PAIR).special_tokens
    some = measure(statistics.make("special_tokens:roles=sep+cls,source=others"), numbered(5), PAIR).special_tokens
    assert some.equals(whole.sel(role=["sep", "cls"], source=["others"]))
    with pytest.raises(InputError, match="No role of special tokens is called 'spe'. Did you mean 'sep'"):
        SpecialTokens(roles=("spe",))
    with pytest.raises(InputError, match="There are no roles: the list is empty. Name at least one, such as 'sep'"):
        SpecialTokens(roles=())


def test_clark_counts_the_row_of_cls_itself():
    result = measure(SpecialTokens(source="clark"), numbered(5), PAIR).special_tokens
    assert result.sel(role="cls", source="clark").item() == pytest.approx((1 + 6 + 11 + 16 + 21) / 5)
    assert result.sel(role="mask", source="clark").item() == 0

"""Attention to types of tokens, worked out by hand."""

import pytest
import torch

from headscope.core.catalog import statistics
from headscope.core.errors import InputError
from headscope.statistics.token_types import TokenTypes
from tests.batches import build_maps, one_lens

ROW = ["[CLS]", "noun", "noun", "verb", "[SEP]"]
WEIGHTS = torch.tensor([[1.0, 2.0, -4.0, 5.0, 6.0], *[[0.0, 2.0, 2.0, 0.0, 0.0]] * 4])


def found(statistic, name="token_types"):
    maps = build_maps([WEIGHTS[None, None]], [ROW], signed=True)
    return statistic.finish(statistic.observe(one_lens(maps)))[name].isel(layer=0, head=0)


def test_from_cls_each_type_gets_its_largest_weight():
    values = found(TokenTypes())
    assert list(values.type.values) == ["noun", "pronoun", "verb", "punctuation", "cls", "sep"]
    assert values.sel(type=["noun", "verb", "cls", "sep"]).values.tolist() == [2, 5, 1, 6]


def test_the_largest_of_sizes_may_be_another_token():
    assert found(TokenTypes(), "token_types_absolute").sel(type="noun").item() == 4


def test_a_type_that_is_absent_is_skipped_and_not_0():
    assert found(TokenTypes()).sel(type=["pronoun", "punctuation"]).isnull().all()
    assert found(TokenTypes(), "token_types_n").values.tolist() == [1, 0, 1, 0, 1, 1]


def test_several_tokens_of_a_type_can_be_summed_or_averaged():
    assert found(TokenTypes(several="sum")).sel(type="noun").item() == -2
    assert found(TokenTypes(several="mean")).sel(type="noun").item() == -1
    assert found(TokenTypes(several="mean"), "token_types_absolute").sel(type="noun").item() == 3


def test_all_rows_can_ask():
    assert found(TokenTypes(source="all")).sel(type="noun").item() == 2
    assert found(TokenTypes(source="all")).sel(type="verb").item() == 1


def test_types_are_named_in_a_spec():
    assert statistics.make("token-types:types=noun+adjective").types == ("noun", "adjective")
    with pytest.raises(InputError, match="No type of token is called 'nouns'. Did you mean 'noun'"):
        TokenTypes(types=("nouns",))

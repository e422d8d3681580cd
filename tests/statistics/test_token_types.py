import pytest
import torch

from headscope.core.catalog import statistics
from headscope.core.errors import InputError
from headscope.core.spec import to_spec
from headscope.statistics.token_types import TokenTypes
from tests.batches import build_maps, one_lens

ROW = ["[CLS]", "noun", "noun", "verb", "[SEP]"]
WEIGHTS = torch.tensor([[1.0, 2.0, -4.0, 5.0, 6.0], *[[0.0, 2.0, 2.0, 0.0, 0.0]] * 4])


def measure(statistic, name="token_types"):
    maps = build_maps([WEIGHTS[None, None]], [ROW], signed=True)
    return statistic.finish(statistic.observe(one_lens(maps)))[name].isel(layer=0, head=0)


def test_each_type_has_the_largest_weight_from_cls():
    values = measure(TokenTypes())
    assert list(values.type.values) == ["noun", "pronoun", "verb", "punctuation", "cls", "sep"]
    assert values.sel(type=["noun", "verb", "cls", "sep"]).values.tolist() == [2, 5, 1, 6]


def test_the_largest_absolute_weight_may_be_of_another_token():
    assert measure(TokenTypes(), "token_types_absolute").sel(type="noun").item() == 4


def test_an_absent_type_has_no_value():
    assert measure(TokenTypes()).sel(type=["pronoun", "punctuation"]).isnull().all()
    assert measure(TokenTypes(), "token_types_n").values.tolist() == [1, 0, 1, 0, 1, 1]


def test_tokens_of_a_type_can_be_summed_or_averaged():
    assert measure(TokenTypes(reduce="sum")).sel(type="noun").item() == -2
    assert measure(TokenTypes(reduce="mean")).sel(type="noun").item() == -1
    assert measure(TokenTypes(reduce="mean"), "token_types_absolute").sel(type="noun").item() == 3


def test_every_way_to_reduce_the_tokens_of_a_type_is_measured_at_once():
    every = measure(TokenTypes(reduce="all"))
    assert every.sel(type="noun", several=["max", "mean", "sum"]).values.tolist() == [2, -1, -2]


def test_all_rows_can_be_the_source():
    assert measure(TokenTypes(source="all")).sel(type="noun").item() == 2
    assert measure(TokenTypes(source="all")).sel(type="verb").item() == 1


def test_types_are_named_in_a_spec():
    assert statistics.make("token-types:types=noun+adjective").types == ("noun", "adjective")
    with pytest.raises(InputError, match="No type of token is called 'nouns'. Did you mean 'noun'"):
        TokenTypes(types=("nouns",))


def test_clark_counts_rows_and_texts_without_the_type_as_nothing():
    values = measure(TokenTypes(source="clark", reduce="sum", types=("pronoun", "verb")))
    assert values.values.tolist() == [0, 1]


def test_the_old_name_of_reduce_is_taken_for_one_release():
    with pytest.warns(DeprecationWarning, match="several= of 'token_types' is now reduce=."):
        assert TokenTypes(several="sum") == TokenTypes(reduce="sum")
    with pytest.warns(DeprecationWarning, match="several= of 'token_types' is now reduce=."):
        assert to_spec(statistics.make("token_types:several=all")) == "token_types:reduce=all"

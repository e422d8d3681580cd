"""Attention to marked words, worked out by hand."""

from dataclasses import replace

import pytest
import torch

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.statistics.marked_words import MarkedWords, mark_tokens
from tests.batches import build_maps, make_tokens, one_lens


def values_of(marked):
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    maps = build_maps([weights[None, None]], [["[CLS]", "noun", "verb", "[SEP]"]])
    maps = replace(maps, examples=(replace(maps.examples[0], columns={"marked": marked}),))
    return {name: table[0, 0, 0].tolist() for name, table in MarkedWords().values(one_lens(maps)).items()}


def test_weights_on_marked_words_come_from_cls_and_from_all_rows():
    values = values_of((1,))
    assert values["marked_words"] == pytest.approx([0.3, (0.3 + 0.2 + 0.0 + 0.25) / 4])
    assert values["marked_words_gain"] == pytest.approx([0.3 - 0.2, (0.75 - (0.2 + 0.3 + 1.0 + 0.25)) / 4])


def test_without_marked_words_there_is_no_value():
    assert all(value != value for value in values_of(())["marked_words"])


def test_without_the_column_there_is_an_error():
    with pytest.raises(InputError, match="Example 'a' has no column 'marked', which lists the numbers"):
        mark_tokens([Example("a", "noun")], make_tokens([["noun"]]))

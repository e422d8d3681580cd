"""Maps between words."""

from dataclasses import replace

import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.maps.factored import Factored
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.maps.words import to_words
from tests.batches import build_maps
from tests.models import text, tiny
from tests.oracles.word_maps import word_map, word_mask

NUMBERS = [[-1, 0, 0, 1, 2, 2, 2, -1, 3, -1], [-1, 0, 1, 1, -1, 2, -1], [-1, 0, 0, 0, -1]]


def split_maps(kind="bert", lens="effective", **options):
    """Three texts whose tokens are made the pieces of a few words."""
    trace = capture(tiny(kind), [text(8), text(5), text(3)], **options)
    width = trace.keys.real.shape[1]
    word = torch.full((3, width), -1)
    for row, numbers in enumerate(NUMBERS):
        there = trace.keys.real[row].nonzero()[:, 0]
        word[row, there] = torch.tensor(numbers[: len(there)])
    tokens = replace(trace.keys, word=word)
    return view(replace(trace, queries=tokens, keys=tokens), lens)


@pytest.mark.parametrize("query", ["mean", "first"])
@pytest.mark.parametrize(("kind", "lens"), [("bert", "raw"), ("bert", "effective"), ("llama", "effective")])
def test_word_maps_equal_their_slow_literal_version(kind, lens, query):
    maps = split_maps(kind, lens)
    result = to_words(maps, query)
    for row, numbers in enumerate(NUMBERS):
        size = int(maps.keys.counts[row])
        many = int(result.keys.counts[row])
        for layer in maps.layers:
            expected = word_mask(maps.visible[layer][row, :size, :size], numbers[:size], numbers[:size], query)
            assert torch.equal(result.visible[layer][row, :many, :many], expected)
            assert not result.visible[layer][row, many:].any()
            for head in maps.heads:
                before = maps.layer(layer)[row, head, :size, :size]
                expected = word_map(before, numbers[:size], numbers[:size], query)
                torch.testing.assert_close(result.layer(layer)[row, head, :many, :many], expected, atol=1e-6, rtol=1e-5)


def test_rows_that_sum_to_one_still_do():
    for query in ("mean", "first"):
        result = to_words(split_maps(lens="raw"), query)
        sums = result.weights.sum(-1)
        torch.testing.assert_close(sums, result.queries.real[:, None, None].expand_as(sums).float())


def test_factored_maps_stay_factored():
    maps = split_maps("bert", "effective")
    result = to_words(maps)
    assert any(isinstance(part, Factored) for part in maps.parts)
    for before, after in zip(maps.parts, result.parts, strict=True):
        assert isinstance(before, Factored) == isinstance(after, Factored)


def test_words_are_spelled_from_their_tokens():
    tokens = Tokens(
        [["[CLS]", "un", "##wise", "·cat", "s", "中(1/3)", "中(2/3)", "中(3/3)", "·", "[SEP]"]],
        torch.ones(1, 10, dtype=torch.bool),
        torch.tensor([[True] + [False] * 8 + [True]]),
        torch.zeros(1, 10, dtype=torch.long),
        torch.tensor([[-1, 0, 0, 1, 1, 2, 2, 2, -1, -1]]),
        torch.tensor([[1, 0, 0, 0, 0, 0, 0, 0, 0, 2]]),
    )
    trace = Trace.of([torch.full((1, 1, 10, 10), 0.1)], tokens)
    result = to_words(view(trace, "raw"))
    assert result.keys.text == [["[CLS]", "unwise", "cats", "中", "·", "[SEP]"]]
    assert result.keys.word.tolist() == [[-1, 0, 1, 2, -1, -1]]
    assert result.keys.special.tolist() == [[True, False, False, False, False, True]]
    assert result.keys.roles.tolist() == [[1, 0, 0, 0, 0, 2]]
    assert result.dataset().key_token.values.tolist() == result.keys.text[0]


def test_rows_of_different_widths_are_padded():
    result = to_words(split_maps())
    assert result.keys.counts.tolist() == [7, 6, 3]
    assert result.keys.segment[2].tolist() == [0, 0, 0, -1, -1, -1, -1]
    assert result.weights[2, :, :, 3:].abs().sum() == result.weights[2, ..., 3:].abs().sum() == 0


def test_padding_on_the_left_makes_no_difference():
    draw = torch.Generator().manual_seed(0)
    rows = [["[CLS]", "a", "b", "c", "[SEP]"], ["[CLS]", "d", "[SEP]"]]
    weights = [torch.softmax(torch.randn(2, 1, len(row), len(row), generator=draw), -1) for row in rows]
    result = []
    for left in (False, True):
        maps = build_maps(weights, rows, left=left)
        tokens = replace(maps.keys, word=maps.keys.word.div(2, rounding_mode="floor"))
        result.append(to_words(replace(maps, queries=tokens, keys=tokens)))
    assert result[0].keys.text == result[1].keys.text == [["[CLS]", "ab", "c", "[SEP]"], ["[CLS]", "d", "[SEP]"]]
    assert torch.equal(result[0].weights, result[1].weights)
    assert torch.equal(result[0].visible[0], result[1].visible[0])


def test_queries_and_keys_may_have_different_words():
    trace = capture(tiny("bart"), [("the cat sat", "a dog ran fast")], site="cross")
    result = hs.to_words(hs.view(trace, "raw"))
    assert result.queries.text[0][-1] == "fast"
    assert result.keys.text[0][:2] == ["[CLS]", "the"]
    torch.testing.assert_close(result.weights, view(trace, "raw").weights)  # every word is one token


def test_half_precision_is_summed_in_float32():
    attention = torch.softmax(torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(0)), -1)
    tokens = replace(Tokens.of(list("abcdef")), word=torch.tensor([[0, 0, 0, 0, 0, 0]]))
    result = to_words(view(Trace.of([attention.bfloat16()], tokens), "raw"))
    assert result.weights.dtype == torch.bfloat16
    assert result.weights.float() == pytest.approx(1, abs=4e-3)  # one rounding to bfloat16


def test_tokens_without_a_word_stay_as_they_are():
    trace = Trace.of([torch.full((1, 1, 3, 3), 1 / 3)], ["a", "b", "c"])
    assert to_words(view(trace, "raw")).keys.text == [["a", "b", "c"]]


def test_an_unknown_query_raises():
    with pytest.raises(InputError, match="query must be 'mean' or 'first', but got 'last'"):
        to_words(split_maps(), "last")

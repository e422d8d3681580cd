from dataclasses import replace

import pytest
import torch

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.data.tagging.tag import tag_examples
from headscope.engine.capture import capture
from headscope.maps.token_types import SPECIAL, TAGS, TYPES, check_types, type_masks
from tests.models import tiny

ROW = ["[CLS]", "He", "run", "##s", ".", "[SEP]", "[MASK]", "[E]"]
WORDS = [-1, 0, 1, 1, 2, -1, -1, -1]


def masks(types, tags=("PRON", "VERB", "PUNCT"), **options):
    tokens = replace(Tokens.of(ROW), word=torch.tensor([WORDS]))
    example = Example("one", "He runs.", columns={"tags": tags})
    return {
        name: "".join(map(str, row))
        for name, row in zip(types, type_masks(tokens, [example], types, **options)[0].int().tolist(), strict=True)
    }


def test_words_have_the_type_of_their_tag_and_special_tokens_of_their_role():
    assert masks(["pronoun", "verb", "punctuation", "noun", "cls", "sep", "mask", "other_special"]) == {
        "pronoun": "01000000",
        "verb": "00100000",
        "punctuation": "00001000",
        "noun": "00000000",
        "cls": "10000000",
        "sep": "00000100",
        "mask": "00000010",
        "other_special": "00000001",
    }


def test_the_first_or_all_tokens_of_a_split_word_are_marked():
    assert masks(["verb"], subtokens="all") == {"verb": "00110000"}


def test_proper_nouns_and_auxiliaries_count_on_request():
    tags = ("PROPN", "AUX", "PUNCT")
    assert set(masks(["noun", "verb"], tags).values()) == {"00000000"}
    result = masks(["noun", "verb", "proper_noun"], tags, proper_nouns=True, auxiliaries=True)
    assert result == {"noun": "01000000", "verb": "00100000", "proper_noun": "01000000"}


def test_every_universal_part_of_speech_is_a_type_with_two_names():
    assert len(TAGS) == 17
    assert masks(["adjective", "adj"], ("ADJ", "_", "X")) == {"adjective": "01000000", "adj": "01000000"}
    assert masks(["conjunction"], ("CCONJ", "SCONJ", "X")) == {"conjunction": "01100000"}
    assert not set(TYPES) & set(SPECIAL)


def test_special_types_need_no_tags():
    tokens = Tokens.of(ROW)
    assert type_masks(tokens, [Example("one", "He runs.")], ["sep"]).sum() == 1


def test_the_tags_of_a_pair_may_be_in_a_separate_column():
    tokens = replace(Tokens.of(["cat", "[SEP]", "sat"]), word=torch.tensor([[0, -1, 1]]))
    example = Example("one", "cat", pair="sat", columns={"tags": ("NOUN",), "pair_tags": ("VERB",)})
    assert type_masks(tokens, [example], ["noun", "verb"])[0].int().tolist() == [[1, 0, 0], [0, 0, 1]]


def test_rows_of_a_batch_are_independent():
    trace = capture(tiny("bert"), tag_examples([Example("a", "the cat sat"), Example("b", "it sat on the old mat.")]))
    result = type_masks(trace.keys, trace.examples, ["noun", "verb", "punctuation", "sep"])
    words = [
        [[trace.keys.text[row][place] for place in each.nonzero()[:, 0].tolist()] for each in result[row]]
        for row in range(2)
    ]
    assert words == [[["cat"], ["sat"], [], ["[SEP]"]], [["mat"], ["sat"], ["."], ["[SEP]"]]]


def test_a_pair_is_tagged_on_both_sides():
    trace = capture(tiny("bert"), tag_examples([Example("a", "the cat sat.", pair="the dog ran fast")]))
    (noun, verb) = type_masks(trace.keys, trace.examples, ["noun", "verb"])[0]
    assert [piece for piece, here in zip(trace.keys.text[0], noun.tolist(), strict=True) if here] == ["cat", "dog"]
    assert [piece for piece, here in zip(trace.keys.text[0], verb.tolist(), strict=True) if here] == ["sat", "ran"]


def test_examples_without_tags_raise():
    tokens = replace(Tokens.of(ROW), word=torch.tensor([WORDS]))
    with pytest.raises(
        InputError, match=r"Example 'one' has no tags.*hs.measure.*headscope.data.tagging.tag.tag_examples\(examples\)"
    ):
        type_masks(tokens, [Example("one", "He runs.")], ["noun"])


def test_tags_that_do_not_match_the_words_raise():
    with pytest.raises(InputError, match="Example 'one' has 2 tags, but 3 words. Give one tag for each word"):
        masks(["noun"], ("PRON", "VERB"))
    with pytest.raises(InputError, match="Example 'one' has the tag 'NNS', which is no universal part of speech"):
        masks(["noun"], ("NNS", "VERB", "PUNCT"))


def test_unknown_types_raise():
    with pytest.raises(InputError, match="No type of token is called 'nuon'. Did you mean 'noun'"):
        masks(["nuon"])
    with pytest.raises(InputError, match="There are no types: the list is empty"):
        check_types([])


def test_an_unknown_value_of_subtokens_raises():
    with pytest.raises(InputError, match="subtokens must be 'first' or 'all', but got 'last'"):
        masks(["noun"], subtokens="last")


def test_periods_and_commas_are_found_by_their_spelling():
    row = ["[CLS]", "He", "runs", ",", "!", ".", "[SEP]"]
    marks, others = type_masks(Tokens.of(row), [Example("one", "He runs,!.")], ["period_comma", "other_text"])[0].int()
    assert marks.tolist() == [0, 0, 0, 1, 0, 1, 0]
    assert others.tolist() == [0, 1, 1, 0, 1, 0, 0]


def test_a_word_is_any_part_of_speech_but_punctuation():
    assert masks(["word", "punctuation"], subtokens="all") == {"word": "01110000", "punctuation": "00001000"}

"""Mentions, anaphors, passages and baselines."""

import pytest

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.coreference.anaphors import list_anaphors
from headscope.data.coreference.baselines import BASELINES, find_traits
from headscope.data.coreference.mentions import Mention, add_gap_mentions, list_mentions, read_words
from headscope.data.coreference.passages import drop_singletons, join_sentences
from headscope.data.reading.read import read
from tests.data.coreference.documents import make_document
from tests.oracles import coreference as oracle

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_mentions_and_anaphors_equal_the_oracle(seed):
    example = make_document(seed)
    mentions = [(each.first, each.last, each.head, each.entity, each.kind) for each in list_mentions(example)]
    assert mentions == oracle.read_mentions(example)
    anaphors, questions = list_anaphors(example), oracle.list_questions(example)
    assert len(anaphors) == len(questions)
    for anaphor, (mention, candidates, right) in zip(anaphors, questions, strict=True):
        assert (anaphor.mention.first, anaphor.mention.last, anaphor.mention.head) == mention[:3]
        assert [(each.head, each.first, each.last) for each in anaphor.candidates] == [
            (each[2], each[0], each[1]) for each in candidates
        ]
        assert anaphor.right == tuple(each[2] in right for each in candidates)


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_equal_the_oracle(name):
    picked = []
    for seed in SEEDS:
        example = make_document(seed)
        for anaphor, question in zip(list_anaphors(example), oracle.list_questions(example), strict=True):
            index = BASELINES[name](example, anaphor)
            assert anaphor.candidates[index].head == oracle.answer(example, question, name)
            picked.append(index)
    assert len(picked) > 100
    assert (set(picked) == {0}) == (name == "nearest")


def test_rules_are_tried_in_their_order():
    words = ("the", "dog", "saw", "She", "a", "dog", "Ann", "it", "The", "dog", "her")
    heads = [1, 5, 3, 6, 7, 9, 10]
    spans = [(0, 1), (4, 5), (3, 3), (6, 6), (7, 7), (8, 9), (10, 10)]
    mentions = tuple((first, last, "e", "") for first, last in spans)
    example = Example("0", "", words=words, columns={"mentions": mentions, "mention_heads": heads})
    picked = {
        each.mention.head: each.candidates[BASELINES["rules"](example, each)].head for each in list_anaphors(example)
    }
    assert picked[9] == 1  # the same words, although another dog is nearer
    assert picked[5] == 1  # the same head word
    assert picked[10] == 9  # "her": no contradiction with a dog, which has no gender
    assert picked[7] == 6  # "it" and "Ann": the rules know no gender of a name


@pytest.mark.parametrize(
    ("words", "traits"),
    [
        (("himself",), ("3", "singular", "masculine")),
        (("You",), ("2", "", "")),
        (("Mrs.", "Lee"), ("3", "", "feminine")),
        (("queen",), ("3", "", "feminine")),
        (("Lee",), ("3", "", "")),
    ],
)
def test_traits_come_from_pronouns_titles_and_a_few_nouns(words, traits):
    example = Example("0", "", words=words)
    assert find_traits(example, Mention(0, len(words) - 1, 0, "e", "proper"), words) == traits


def test_a_coordination_has_no_number():
    example = Example("0", "", words=("Ann", "and", "Eve"), columns={"features": ("Number=Sing", "", "Number=Sing")})
    assert find_traits(example, Mention(0, 2, 0, "e", "proper"), example.words) == ("3", "", "")
    assert find_traits(example, Mention(0, 0, 0, "e", "proper"), example.words) == ("3", "singular", "")


def test_passages_hold_whole_sentences_and_shift_their_numbers():
    sentences = [make_document(seed, words=10, mentions=3) for seed in range(3)]
    sentences = [
        Example(each.id, each.text, words=each.words, columns={**each.columns, "document": "d"}) for each in sentences
    ]
    first, second = join_sentences(sentences, 20)
    assert (first.id, first.words) == ("0", sentences[0].words + sentences[1].words)
    assert second.words == sentences[2].words
    alone, joined = [list_mentions(each) for each in sentences], list_mentions(first)
    assert [each.head for each in joined] == [*(each.head for each in alone[0]), *(each.head + 10 for each in alone[1])]
    assert first.columns["heads"][10:] == tuple(
        head if head < 0 else head + 10 for head in sentences[1].columns["heads"]
    )
    assert [each.entity for each in joined[3:]] == [each.entity for each in alone[1]]


def test_passages_end_with_their_document_and_long_sentences_are_alone():
    sentences = [make_document(seed, words=10, mentions=3) for seed in range(3)]  # of three documents
    assert [each.id for each in join_sentences(sentences, 100)] == ["0", "1", "2"]
    assert [each.words for each in join_sentences(sentences, 5)] == [each.words for each in sentences]


def test_singletons_are_counted_in_the_whole_document():
    columns = [{"mentions": ((0, 0, entity, "") for entity in names), "document": "d"} for names in ("ab", "ac")]
    examples = [
        Example(str(number), "", words=("x",), columns={**each, "mentions": tuple(each["mentions"])})
        for number, each in enumerate(columns)
    ]
    assert [each.columns["mentions"] for each in drop_singletons(examples)] == [((0, 0, "a", ""),)] * 2


def test_the_two_candidates_of_a_pronoun_stay_although_one_is_a_singleton():
    examples = read("winogender")[:3]
    assert drop_singletons(examples) == examples


def test_the_pronoun_of_gap_has_both_names_as_candidates_also_behind_it():
    text = "When she met Eve Lee, Ann smiled."
    columns = {
        "Pronoun": "she",
        "Pronoun-offset": 5,
        "A": "Eve Lee",
        "A-offset": 13,
        "A-coref": False,
        "B": "Ann",
        "B-offset": 22,
        "B-coref": True,
        "URL": "http://x",
    }
    example = add_gap_mentions(Example("0", text, columns=columns))
    (anaphor,) = list_anaphors(example)
    assert (anaphor.mention.head, anaphor.mention.kind, example.columns["document"]) == (1, "pronoun", "http://x")
    assert [(each.first, each.last, each.head) for each in anaphor.candidates] == [(3, 4, 3), (6, 6, 6)]
    assert anaphor.right == (False, True)
    neither = add_gap_mentions(Example("0", text, columns={**columns, "B-coref": False}))
    assert list_anaphors(neither) == []


def test_a_pronoun_without_a_space_before_it_is_a_word():
    columns = {
        "Pronoun": "He",
        "Pronoun-offset": 12,
        "A": "Lee",
        "A-offset": 0,
        "A-coref": True,
        "B": "Ben",
        "B-offset": 8,
        "B-coref": False,
    }
    example = add_gap_mentions(Example("0", "Lee met Ben.He ran.", columns=columns))
    assert read_words(example)[-3:] == ("He", "ran", ".")
    assert list_anaphors(example)[0].mention.kind == "pronoun"


def test_gap_of_the_package_has_an_anaphor_wherever_a_name_is_right():
    examples = read("gap:validation")
    anaphors = [list_anaphors(add_gap_mentions(example)) for example in examples]
    assert [len(each) for each in anaphors] == [
        int(each.columns["A-coref"] or each.columns["B-coref"]) for each in examples
    ]
    assert {each.mention.kind for group in anaphors for each in group} == {"pronoun"}


def test_every_pronoun_of_winogender_has_two_candidates_of_which_one_is_right():
    for example in read("winogender"):
        (anaphor,) = list_anaphors(example)
        right = [
            example.words[each.head].lower()
            for each, is_right in zip(anaphor.candidates, anaphor.right, strict=True)
            if is_right
        ]
        assert (anaphor.mention.kind, right) == ("pronoun", [example.columns["referent"]])


ERRORS = {
    "does not say which words refer to what: it has no column 'mentions'": {},
    "has the words 1 to 2, but the words are 0 to 1": {"mentions": ((1, 2, "e", ""),)},
    "does not say which is the head word: it has neither the column 'heads' nor 'mention_heads'": {
        "mentions": ((0, 1, "e", ""),)
    },
    "has 1 mentions, but 2 mention_heads": {"mentions": ((0, 1, "e", ""),), "mention_heads": (0, 1)},
}


@pytest.mark.parametrize(("problem", "columns"), ERRORS.items(), ids=[name[:30] for name in ERRORS])
def test_the_error_for_mentions_that_cannot_be_used_says_what_is_missing(problem, columns):
    with pytest.raises(InputError, match=problem):
        list_mentions(Example("0", "", words=("a", "b"), columns=columns))


def test_the_error_for_gap_without_answers_names_the_columns():
    columns = {f"{name}-offset": 0 for name in ("Pronoun", "A", "B")}
    with pytest.raises(InputError, match="it has no A-coref and B-coref"):
        add_gap_mentions(Example("0", "He", columns=columns))

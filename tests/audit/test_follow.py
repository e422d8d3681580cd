"""Where one cue occurs, and which choice it points to."""

import numpy as np
import pytest

from headscope.audit.cues import cues
from headscope.audit.follow import find_cue_spans, has_cue, point_to_choice
from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.data.reading.read import read
from tests.audit.test_cues import choose


def test_a_cue_points_to_the_one_choice_that_has_it():
    examples = [
        choose("not this", "that", label=0),
        choose("it", "it is NOT", "or", label=0, name="1"),
        choose("not it", "not he", label=0, name="2"),
        choose("it", "he", label=0, name="3"),
    ]
    assert point_to_choice(examples, "not").tolist() == [0, 1, -1, -1]
    assert point_to_choice(examples, "is not").tolist() == [-1, 1, -1, -1]
    assert point_to_choice(examples, "never").tolist() == [-1, -1, -1, -1]
    assert point_to_choice(examples, r"^(not|or)", pattern=True).tolist() == [0, 2, -1, -1]
    with pytest.raises(InputError, match="The cue ' ' has no word"):
        point_to_choice(examples, " ")


def test_following_a_cue_is_its_productivity():
    examples = read("arct:train")
    points = point_to_choice(examples, "not")
    right = points == np.array([example.label for example in examples])
    row = cues(examples, ngrams=(1,)).sel(cue="not")
    assert int((points >= 0).sum()) == int(row["applicability"])
    assert int(right.sum()) == int(row["productive"])


def test_every_cue_is_found_under_its_name():
    examples = [Example("0", "J. Smith can't, e-mail U.S. No. 5 :) 'tis DON’T"), Example("1", "no")]
    labeled = [Example(example.id, example.text, label=number) for number, example in enumerate(examples)]
    for cue in cues(labeled)["cue"].values:
        assert has_cue(examples, cue).any()
        assert any(find_cue_spans(example.text, cue) for example in examples)


def test_a_cue_may_be_written_as_in_a_text():
    assert find_cue_spans("They DON’T. Do not!", "don't") == [(5, 10)]
    assert has_cue([Example("0", "They DON’T."), Example("1", "do n"), Example("2", "")], "don't").tolist() == [
        True,
        False,
        False,
    ]


def test_a_cue_is_marked_however_its_accents_are_written():
    assert find_cue_spans("a Cafe\u0301 or caf\u00e9", "caf\u00e9") == [(2, 7), (11, 15)]
    assert find_cue_spans("a caf\u00e9", "cafe\u0301") == [(2, 6)]


def test_a_cue_is_looked_for_in_the_parts_that_are_named():
    examples = [Example("0", "yes", pair="no"), Example("1", "no")]
    assert has_cue(examples, "no").tolist() == [True, True]
    assert has_cue(examples, "no", parts="pair").tolist() == [True, False]
    assert has_cue([choose("a", "b", label=None)], "b").tolist() == [True]


def test_only_a_choice_can_be_pointed_to():
    with pytest.raises(InputError, match="example '0' has none"):
        point_to_choice([Example("0", "no")], "no")

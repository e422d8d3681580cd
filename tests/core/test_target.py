"""Targets: which prediction is explained."""

import pytest

from headscope.core.errors import InputError, UnknownName
from headscope.core.target import PredictionTarget, parse_target

SPECS = (
    "predicted",
    "label",
    "class=positive",
    "class=1",
    "class=very good:score=logit",
    "mask",
    "mask:word=his",
    "mask:column=verb",
    "next",
    "next:word=mat,score=logit",
    "predicted:score=logit",
)


@pytest.mark.parametrize("spec", SPECS)
def test_a_target_rebuilds_from_its_spec(spec):
    assert parse_target(spec).spec == spec
    assert parse_target(parse_target(spec).spec) == parse_target(spec)


def test_a_function_is_a_target():
    assert parse_target(len).spec == "function len"
    assert parse_target(PredictionTarget("label")).spec == "label"


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("lable", "No target is called 'lable'. Did you mean 'label'?"),
        ("class", "The target 'class' names no class. Write class=NAME or class=INDEX."),
        ("label:word=his", "No parameter of the target 'label' is called 'word'."),
        ("mask:word=his,column=verb", "has a word and a column of words. Give one of them."),
        ("predicted:score=odds", "The score of a target must be probability or logit, but got 'odds'."),
        (3, "target must be 'predicted', 'label', 'class=NAME', 'mask:word=his', 'next:word=mat' or 'loss', or"),
    ],
)
def test_a_wrong_target_is_refused_in_a_sentence(target, sentence):
    with pytest.raises(InputError) as error:
        parse_target(target)
    assert sentence in str(error.value)


def test_an_unknown_target_is_an_unknown_name():
    with pytest.raises(UnknownName):
        parse_target("predict")

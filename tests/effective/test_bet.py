"""What the bet gives is what the careful way gives, layer by layer."""

from dataclasses import replace

import pytest
import torch

from headscope.effective.bet import effective_on_a_bet
from headscope.engine.capture import capture
from tests.effective.effective_traces import LONG, MIXED, NOT_ALIKE, SHORT, TROUBLED, assert_same, changed_values
from tests.models import tiny


@pytest.mark.parametrize("texts", [LONG, SHORT, MIXED, [*SHORT, *LONG]], ids=["long", "short", "mixed", "both"])
@pytest.mark.parametrize("keep", [(), ("values", "pads")], ids=["plain", "with pads"])
def test_a_bet_that_is_won_gives_what_the_careful_way_gives(texts, keep):
    trace = capture(tiny("bert"), texts, keep=keep)
    assert_same(effective_on_a_bet(trace), trace)


@pytest.mark.parametrize("texts", [LONG, MIXED], ids=["long", "mixed"])
def test_values_of_poor_condition_are_taken_the_exact_way(texts):
    trace = changed_values(capture(tiny("bert"), texts), lambda each: each * torch.logspace(0, -3, 8))
    assert_same(effective_on_a_bet(trace), trace)


LOST = {name: trace for name, trace in TROUBLED.items() if not name.startswith("mixed")}


@pytest.mark.parametrize("name", [name for name in TROUBLED if name not in LOST])
def test_texts_of_mixed_lengths_go_by_two_roads(name):
    assert_same(effective_on_a_bet(TROUBLED[name]), TROUBLED[name])


@pytest.mark.parametrize("trace", [*NOT_ALIKE.values(), *LOST.values()], ids=[*NOT_ALIKE, *LOST])
def test_a_bet_that_cannot_be_won_is_left_to_the_careful_way(trace):
    assert list(effective_on_a_bet(trace)) == [None] * len(trace.layers)


def test_only_the_layer_that_loses_goes_the_careful_way():
    trace = capture(tiny("bert"), LONG)
    lost = replace(trace, values=[0 * trace.values[0], *trace.values[1:]])
    assert [each is None for each in effective_on_a_bet(lost)] == [True, False]

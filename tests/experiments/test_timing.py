"""Rivals take turns, and only what they do is on the clock."""

from contextlib import contextmanager
from functools import partial
from itertools import count

from headscope.experiments.timing import Rival, race


def test_rivals_take_turns_and_each_comes_first_once():
    order = []
    rivals = {name: partial(order.append, name) for name in "abc"}
    spent = race(rivals, turns=3)
    assert "".join(order) == "abc" + "abc" + "bca" + "cab"  # the first turn warms up
    assert {name: len(each) for name, each in spent.items()} == {"a": 3, "b": 3, "c": 3}


def test_a_slow_rival_has_fewer_turns():
    order = []
    rivals = {"a": partial(order.append, "a"), "slow": Rival(partial(order.append, "slow"), most=2)}
    assert {name: len(each) for name, each in race(rivals, turns=5).items()} == {"a": 5, "slow": 2}
    assert order.count("slow") == 3  # it warms up once


def test_short_runs_are_repeated_until_the_time_is_spent():
    ticks = count(0.0)
    assert len(race({"a": lambda: None}, turns=1, seconds=20.0, clock=lambda: next(ticks))["a"]) > 5


def test_what_surrounds_a_rival_and_its_first_batches_are_off_the_clock():
    order = []

    @contextmanager
    def within():
        order.append("set up")
        yield
        order.append("torn down")

    rival = Rival(partial(order.append, "batch"), within, settling=2)
    assert len(race({"in place": rival}, turns=1)["in place"]) == 1
    assert order == 2 * ["set up", "batch", "batch", "batch", "torn down"]
    now = count(0.0)
    timed = race({"in place": Rival(lambda: next(now), settling=3)}, turns=1, clock=lambda: next(now))
    assert timed["in place"] == [2]  # the clock, the batch, the clock

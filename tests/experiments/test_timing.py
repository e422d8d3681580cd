"""Variants take turns, and only their own work is timed."""

from contextlib import contextmanager
from functools import partial
from itertools import count

from headscope.experiments.timing import Variant, time_interleaved


def test_variants_take_turns_and_each_comes_first_once():
    order = []
    variants = {name: partial(order.append, name) for name in "abc"}
    spent = time_interleaved(variants, turns=3)
    assert "".join(order) == "abc" + "abc" + "bca" + "cab"  # the first turn warms up
    assert {name: len(each) for name, each in spent.items()} == {"a": 3, "b": 3, "c": 3}


def test_a_slow_variant_has_fewer_turns():
    order = []
    variants = {"a": partial(order.append, "a"), "slow": Variant(partial(order.append, "slow"), max_turns=2)}
    assert {name: len(each) for name, each in time_interleaved(variants, turns=5).items()} == {"a": 5, "slow": 2}
    assert order.count("slow") == 3  # it warms up once


def test_short_runs_are_repeated_until_the_time_is_spent():
    ticks = count(0.0)
    assert len(time_interleaved({"a": lambda: None}, turns=1, seconds=20.0, clock=lambda: next(ticks))["a"]) > 5


def test_the_context_and_the_warm_up_of_a_variant_are_not_timed():
    order = []

    @contextmanager
    def within():
        order.append("set up")
        yield
        order.append("torn down")

    variant = Variant(partial(order.append, "batch"), within, warmup=2)
    assert len(time_interleaved({"in place": variant}, turns=1)["in place"]) == 1
    assert order == 2 * ["set up", "batch", "batch", "batch", "torn down"]
    now = count(0.0)
    timed = time_interleaved({"in place": Variant(lambda: next(now), warmup=3)}, turns=1, clock=lambda: next(now))
    assert timed["in place"] == [2]  # the clock, the batch, the clock

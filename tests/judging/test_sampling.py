"""Rows at random, and keys of all sizes of raw attention, each with the number of keys that it stands for."""

import numpy as np
import pytest

from headscope.engine.capture import capture
from headscope.judging.sampling import SamplePlan, cut_strata, draw_keys, draw_rows, tabulate_edges
from tests.models import text, tiny


@pytest.mark.parametrize("count", [1, 2, 5, 8, 9, 31, 512])
def test_strata_hold_every_key_once_and_the_largest_alone(count):
    sizes = cut_strata(count, 8)
    assert sum(sizes) == count
    assert min(sizes) >= 1
    assert len(sizes) == min(count, 8)
    assert sizes[0] == 1
    assert sizes == sorted(sizes)


def test_one_key_of_each_stratum_is_drawn_and_all_are_as_likely():
    weights = np.array([0.05, 0.5, 0.1, 0.15, 0.2])  # strata: 0.5 | 0.2 | 0.15, 0.1, 0.05
    drawn = [draw_keys(weights, 3, np.random.default_rng(seed)) for seed in range(600)]
    assert {tuple(sizes) for _, sizes in drawn} == {(1, 1, 3)}
    assert {tuple(keys[:2]) for keys, _ in drawn} == {(1, 4)}
    counts = np.bincount([keys[2] for keys, _ in drawn], minlength=5)
    assert counts[[1, 4]].sum() == 0
    assert (counts[[0, 2, 3]] > 150).all()


def test_weighted_by_its_stratum_a_drawn_sum_is_that_of_all_keys_on_average():
    weights = np.array([0.05, 0.5, 0.1, 0.15, 0.2])
    effects = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    third = [0, 2, 3]  # the keys of the last stratum, each drawn with probability 1/3
    means = [effects[1] + effects[4] + 3 * effects[key] for key in third]
    assert np.mean(means) == pytest.approx(effects.sum())
    drawn = {draw_keys(weights, 3, np.random.default_rng(seed))[0][2] for seed in range(50)}
    assert drawn == set(third)


def sample(trace, **changes):
    settings = {"rows": 3, "keys": 4, "min_keys": 3, "seed": 0, "merged": False, "layers": trace.layers, **changes}
    return draw_rows(trace, SamplePlan(**settings), {})


def test_edges_are_visible_ones_between_real_tokens():
    trace = capture(tiny("llama"), [text(4, 0), text(11, 1)])
    for example, rows in enumerate(sample(trace)):
        assert len(rows) == 3 * len(trace.layers)
        for row in rows:
            place = trace.layers.index(row.layer)
            assert trace.visible[place][example][row.query][row.keys].all()
            assert trace.keys.real[example][row.keys].all()
            assert len(set(row.keys.tolist())) == len(row.keys) >= 3
            assert row.sizes.sum() == int(trace.visible[place][example][row.query].sum())


def test_what_is_drawn_depends_neither_on_the_batch_nor_on_the_layers_that_are_judged():
    texts = [text(4, 0), text(11, 1), text(7, 2)]
    trace = capture(tiny("bert"), texts)
    both, second = sample(trace), sample(trace, layers=trace.layers[1:])
    assert [str(row) for rows in both for row in rows if row.layer == trace.layers[1]] == [
        str(row) for rows in second for row in rows
    ]
    assert str(sample(trace, seed=1)) != str(both)


def test_rows_with_too_few_keys_are_not_sampled():
    trace = capture(tiny("bert"), [text(1, 0), text(9, 1)])  # three tokens, with both ends
    short, long = sample(trace, min_keys=4)
    assert not short
    assert long


def test_the_edges_of_shorter_samples_leave_places_empty():
    trace = capture(tiny("bert"), [text(1, 0), text(9, 1)])
    for edges in tabulate_edges(sample(trace)).values():
        assert edges.present.sum(0).tolist() == [9, 12]
        assert (edges.size[edges.present] >= 1).all()

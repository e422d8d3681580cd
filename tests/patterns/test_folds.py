import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope.patterns.labels.labelled import Source
from headscope.patterns.train.folds import folds, left


def source(place, head, text):
    return Source(f"m{place}", "random", "raw", "made", "", 0, head, "texts", str(text), ("a", "b"), (0, 0))


def drawn(many, heads, texts, seed=0):
    """Maps of random heads and texts, and random labels."""
    random = np.random.default_rng(seed)
    sources = [source(each, int(random.integers(heads)), int(random.integers(texts))) for each in range(many)]
    return sources, random.choice(["vertical", "block"], many).tolist()


CASES = {"few share": (200, 100, 100), "texts of one map each": (200, 30, 100_000), "dense": (300, 40, 15)}


@pytest.mark.parametrize("case", CASES)
def test_no_test_map_shares_its_head_or_its_text_with_a_training_map(case):
    sources, labels = drawn(*CASES[case])
    for fold in folds(sources, labels, 5):
        for side in ("group", "text"):
            tested, trained = ({getattr(sources[each], side) for each in part} for part in (fold.test, fold.train))
            assert not tested & trained


@pytest.mark.parametrize("case", CASES)
def test_every_map_is_tested_once(case):
    sources, labels = drawn(*CASES[case])
    tested = np.concatenate([fold.test for fold in folds(sources, labels, 5)])
    assert sorted(tested) == list(range(len(sources)))


def test_nothing_is_dropped_where_maps_hang_together_in_small_groups():
    sources = [source(place, place // 4, place // 4) for place in range(100)]
    found = folds(sources, ["block"] * 100, 5)
    assert len(found) == 5
    assert all(len(fold.test) + len(fold.train) == 100 for fold in found)


def test_texts_that_many_heads_share_are_tested_in_parts_so_that_enough_is_left():
    sources, labels = drawn(*CASES["dense"])
    found = folds(sources, labels, 5)
    assert len(found) > 5
    assert left(found) > 0.5 * len(sources)


def test_classes_are_spread_over_folds():
    sources = [source(place, place, place) for place in range(100)]
    labels = ["block" if place < 20 else "vertical" for place in range(100)]
    counts = [sum(labels[each] == "block" for each in fold.test) for fold in folds(sources, labels, 5)]
    assert counts == [4] * 5


def test_the_same_seed_gives_the_same_folds():
    sources, labels = drawn(*CASES["dense"])
    one, other = (folds(sources, labels, 5, seed=3) for _ in range(2))
    assert all(np.array_equal(a.test, b.test) for a, b in zip(one, other, strict=True))


def test_too_few_heads_or_texts_are_said():
    with pytest.raises(InputError, match="5 folds need maps of 5 heads and 5 texts at least, but these are of 3 heads"):
        folds([source(place, place % 3, place) for place in range(30)], ["block"] * 30, 5)
    with pytest.raises(InputError, match="cannot be split so that test and training share no head and no text"):
        folds([source(0, 0, 0), source(1, 0, 1), source(2, 1, 0)], ["block"] * 3, 2)

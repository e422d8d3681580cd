import numpy as np
import pytest

from headscope.core.errors import InputError
from headscope_patterns.labels.labelled_maps import Source
from headscope_patterns.train.folds import add_tests, mean_training_size, split_folds


def make_source(index, head, text):
    return Source(f"m{index}", "random", "raw", "synthetic", "", 0, head, "texts", str(text), ("a", "b"), (0, 0))


def make_sources(count, heads, texts, seed=0):
    """Return sources with random heads and texts, and random labels."""
    random = np.random.default_rng(seed)
    sources = [make_source(i, int(random.integers(heads)), int(random.integers(texts))) for i in range(count)]
    return sources, random.choice(["vertical", "block"], count).tolist()


CASES = {"few shared": (200, 100, 100), "one map per text": (200, 30, 100_000), "dense": (300, 40, 15)}


@pytest.mark.parametrize("case", CASES)
def test_no_test_map_shares_its_head_or_its_text_with_a_training_map(case):
    sources, labels = make_sources(*CASES[case])
    for fold in split_folds(sources, labels, 5):
        for group in ("head_group", "text_group"):
            test, train = ({getattr(sources[index], group) for index in part} for part in (fold.test, fold.train))
            assert not test & train


@pytest.mark.parametrize("case", CASES)
def test_every_map_is_tested_once(case):
    sources, labels = make_sources(*CASES[case])
    tested = np.concatenate([fold.test for fold in split_folds(sources, labels, 5)])
    assert sorted(tested) == list(range(len(sources)))


def test_no_map_is_dropped_where_connected_groups_are_small():
    sources = [make_source(i, i // 4, i // 4) for i in range(100)]
    folds = split_folds(sources, ["block"] * 100, 5)
    assert len(folds) == 5
    assert all(len(fold.test) + len(fold.train) == 100 for fold in folds)


def test_folds_are_split_further_where_many_heads_share_texts():
    sources, labels = make_sources(*CASES["dense"])
    folds = split_folds(sources, labels, 5)
    assert len(folds) > 5
    assert mean_training_size(folds) > 0.5 * len(sources)


def test_folds_are_stratified_by_class():
    sources = [make_source(i, i, i) for i in range(100)]
    labels = ["block" if i < 20 else "vertical" for i in range(100)]
    counts = [sum(labels[index] == "block" for index in fold.test) for fold in split_folds(sources, labels, 5)]
    assert counts == [4] * 5


def test_the_same_seed_gives_the_same_folds():
    sources, labels = make_sources(*CASES["dense"])
    first, second = (split_folds(sources, labels, 5, seed=3) for _ in range(2))
    assert all(np.array_equal(a.test, b.test) for a, b in zip(first, second, strict=True))


def test_too_few_heads_or_texts_raise():
    with pytest.raises(InputError, match="5 folds need maps of at least 5 heads and 5 texts, but these are of 3 heads"):
        split_folds([make_source(i, i % 3, i) for i in range(30)], ["block"] * 30, 5)
    with pytest.raises(InputError, match="cannot be split so that test and training share no head and no text"):
        split_folds([make_source(0, 0, 0), make_source(1, 0, 1), make_source(2, 1, 0)], ["block"] * 3, 2)


@pytest.mark.parametrize("case", CASES)
def test_added_test_maps_are_tested_once_without_their_head_and_text(case):
    sources, labels = make_sources(*CASES[case])
    trained = np.arange(len(sources) - 40)
    folds = split_folds([sources[index] for index in trained], [labels[index] for index in trained], 5)
    longer = add_tests(folds, sources, np.arange(len(sources) - 40, len(sources)))
    assert sorted(np.concatenate([fold.test for fold in longer])) == list(range(len(sources)))
    assert all(np.array_equal(old.train, new.train) for old, new in zip(folds, longer, strict=False))
    for fold in longer:
        assert set(fold.train) <= set(trained)
        for group in ("head_group", "text_group"):
            test, train = ({getattr(sources[index], group) for index in part} for part in (fold.test, fold.train))
            assert not test & train
    assert len(longer) <= len(folds) + 1


def test_maps_to_train_on_that_all_share_a_head_or_text_with_test_maps_are_refused():
    sources = [make_source(index, index % 5, index) for index in range(20)]
    folds = split_folds(sources, ["vertical", "block"] * 10, 5)
    tests = [make_source(20 + head, head, (head + 1) % 5) for head in range(5)]
    with pytest.raises(InputError, match="more heads and more texts"):
        add_tests(folds, [*sources, *tests], np.arange(20, 25))

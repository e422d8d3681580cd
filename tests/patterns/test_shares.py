import numpy as np
import pytest

from headscope.patterns import CLASSES
from headscope.patterns.shares import PRIOR, Errors, append_unsure, correct_shares, draw_rates, read_errors

CONFUSION = np.array([[45, 0, 3, 1, 1], [0, 30, 2, 0, 8], [6, 3, 60, 1, 5], [4, 0, 0, 20, 6], [5, 3, 1, 9, 80]])
OTHER = np.array([[30, 0, 0, 0, 20], [0, 9, 0, 0, 1], [0, 0, 8, 0, 2], [1, 0, 0, 9, 0], [0, 0, 0, 0, 40]])
TRUE = np.array([0.4, 0.1, 0.2, 0.1, 0.2])
SURE = 100


def make_errors(tables, heads=60, seed=0):
    """Return errors of labelled maps of lenses with these confusion matrices, at random heads and texts."""
    random, columns = np.random.default_rng(seed), []
    for lens, table in tables.items():
        label, predicted = (index.repeat(table.ravel()) for index in np.indices(table.shape).reshape(2, -1))
        columns.append((np.full(len(label), lens), label, predicted))
    lens, label, predicted = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    head, text = random.integers(0, heads, (2, len(label)))
    return Errors(lens, head, text, label, predicted, next(iter(tables.values())).shape[1])


def count(true, table):
    """Return the shares that a classifier counts."""
    return true @ (table / table.sum(-1, keepdims=True))


def correct(counted, errors, lenses=("raw",), heads=72, covariance=0.0):
    """Correct shares that are the same in every head."""
    counted = np.atleast_2d(counted)
    size = counted.size
    matrix = (covariance * np.eye(size)).reshape(counted.shape * 2)
    return correct_shares(np.repeat(counted[None], heads, axis=0), matrix, lenses, errors)


def test_true_shares_are_recovered_from_counted_ones():
    found = correct(count(TRUE, CONFUSION), make_errors({"raw": SURE * CONFUSION}, heads=10**6), heads=10**4)
    assert found.share[0] == pytest.approx(TRUE, abs=1e-3)
    low, high = found.interval()
    assert ((low <= found.share) & (found.share <= high)).all()
    assert (high - low).max() < 0.05  # the errors are known nearly exactly, and all heads are alike


def test_every_lens_is_corrected_by_the_errors_on_its_own_maps():
    errors = make_errors({"raw": SURE * CONFUSION, "effective": SURE * OTHER})
    counted = np.stack([count(TRUE, CONFUSION), count(TRUE, OTHER)])
    found = correct(counted, errors, ("raw", "effective"))
    assert found.share == pytest.approx(np.stack([TRUE, TRUE]), abs=2e-3)
    np.testing.assert_array_equal(errors.count("effective"), SURE * OTHER)
    np.testing.assert_array_equal(errors.count("norm"), SURE * (CONFUSION + OTHER))  # no map of it was labelled


def test_rates_are_the_counts_and_one_map_by_the_rates_of_all_lenses():
    errors = make_errors({"raw": CONFUSION, "paper": np.diag([7, 0, 3, 2, 9])})
    rates, _ = draw_rates(errors, ["paper"], np.random.default_rng(0))
    pooled = CONFUSION + np.diag([7, 0, 3, 2, 9]) + 0.2
    for label in range(5):
        prior = PRIOR * pooled[label] / pooled[label].sum()
        expected = np.diag([7, 0, 3, 2, 9])[label] + prior
        assert rates[0, label] == pytest.approx(expected / expected.sum())
    assert rates[0, 1] == pytest.approx(pooled[1] / pooled[1].sum())  # a class without maps


def test_draws_of_rates_are_sums_of_the_weights_of_heads_and_of_texts():
    errors = make_errors({"raw": CONFUSION, "paper": OTHER}, heads=30)
    _, drawn = draw_rates(errors, ["raw", "paper"], np.random.default_rng(3))
    random = np.random.default_rng(3)
    for by, group in enumerate((errors.head, errors.text)):
        weights = random.standard_exponential((len(set(group.tolist())), 500))
        names = sorted(set(group.tolist()))
        table = np.zeros((2, 5, 5))
        for lens, name, label, predicted in zip(errors.lens, group, errors.label, errors.predicted, strict=True):
            table[["raw", "paper"].index(lens), label, predicted] += weights[names.index(name), 7]
        table += random.gamma(errors.prior()[..., None], size=(2, 5, 5, 500))[..., 7]
        np.testing.assert_allclose(drawn[by, ..., 7], table / table.sum(-1, keepdims=True))


def test_intervals_are_wider_where_errors_come_in_a_few_heads():
    counted = count(TRUE, CONFUSION)
    many = make_errors({"raw": CONFUSION}, heads=10**6)
    one_head_per_class = Errors(many.lens, many.cell, many.text, many.label, many.predicted, 5)
    widths = [np.subtract(*correct(counted, errors).interval()[::-1]) for errors in (many, one_head_per_class)]
    assert (widths[1] > widths[0]).all()


def test_intervals_cover_heads_and_texts():
    random, errors = np.random.default_rng(2), make_errors({"raw": SURE * CONFUSION})
    counted = count(TRUE, CONFUSION)
    width = np.subtract(*correct(counted, errors).interval()[::-1])
    assert (np.subtract(*correct(counted, errors, covariance=1e-3).interval()[::-1]) > width).all()
    heads = random.dirichlet(5 * counted, size=(72, 1))
    found = correct_shares(heads, np.zeros((1, 5, 1, 5)), ["raw"], errors)
    assert (np.subtract(*found.interval()[::-1]) > width).all()
    spread = heads[:, 0].std(0) / np.sqrt(72)
    assert found.drawn_counts[:, 0].std(0) == pytest.approx(spread, rel=0.2)


def test_intervals_have_about_their_nominal_coverage():
    random, covered = np.random.default_rng(1), []
    rates = CONFUSION / CONFUSION.sum(-1, keepdims=True)
    for seed in range(40):
        table = np.stack([random.multinomial(n, row) for n, row in zip(CONFUSION.sum(-1), rates, strict=True)])
        heads = random.dirichlet(3 * TRUE, size=72) @ rates
        found = correct_shares(
            heads[:, None], np.zeros((1, 5, 1, 5)), ["raw"], make_errors({"raw": table}, heads=10**6, seed=seed)
        )
        low, high = found.interval()
        covered.append(((low[0] <= TRUE) & (high[0] >= TRUE)).mean())
    assert 0.88 < np.mean(covered) <= 1


def test_shares_stay_on_the_simplex_where_no_shares_explain_the_counts():
    found = correct([1.0, 0, 0, 0, 0], make_errors({"raw": CONFUSION}))
    low, high = found.interval()
    assert found.share.sum() == pytest.approx(1)
    assert found.share[0, 0] > 0.99
    assert (low >= 0).all()
    assert (high <= 1 + 1e-9).all()


def test_the_interval_of_a_class_that_was_not_seen_does_not_end_at_zero():
    found = correct([1.0, 0, 0, 0, 0], make_errors({"raw": SURE * CONFUSION}))
    assert (found.interval()[1][0, 1:] > 0.005).all()
    assert (np.percentile(found.drawn_counts, 97.5, axis=0)[0, 1:] > 0.005).all()


def test_unsure_maps_are_attributed_to_the_true_classes():
    table = np.pad(np.diag([80, 60, 50, 40, 90]), ((0, 0), (0, 1)))
    table[:, 5] = 20
    errors = make_errors({"raw": SURE * table})
    found = correct(count(TRUE, table), errors)
    assert found.share[0] == pytest.approx(TRUE, abs=1e-3)
    assert append_unsure(found.share, "both").shape == (1, 6)
    assert np.isnan(append_unsure(found.share, "both")[:, 5]).all()


def test_heads_without_maps_are_left_out():
    errors, heads = make_errors({"raw": CONFUSION}), np.repeat(count(TRUE, CONFUSION)[None, None], 5, axis=0)
    some = heads.copy()
    some[3:] = np.nan
    zero = np.zeros((1, 5, 1, 5))
    np.testing.assert_allclose(
        correct_shares(some, zero, ["raw"], errors).share, correct_shares(heads, zero, ["raw"], errors).share
    )


def test_shares_without_counts_are_nan():
    missing = np.full((4, 1, 5), np.nan)
    found = correct_shares(missing, np.full((1, 5, 1, 5), np.nan), ["raw"], make_errors({"raw": CONFUSION}))
    assert all(np.isnan(values).all() for values in (found.counted, found.share, *found.interval()))


@pytest.mark.parametrize("classifier", ["cnn", "rules", "both"])
def test_the_bundled_errors_are_of_maps_sampled_at_random(classifier):
    errors = read_errors(classifier)
    assert {"raw", "effective"} <= set(errors.lens.tolist())
    assert len(errors.lens) >= 1000
    assert errors.label.max() < len(CLASSES)
    assert errors.predictions == len(CLASSES) + (classifier == "both")

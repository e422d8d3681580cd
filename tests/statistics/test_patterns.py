from dataclasses import replace

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError
from headscope.maps.per_example import make_state
from headscope.patterns import CLASSES
from headscope.patterns.shares import read_errors
from headscope.results.tables import means_table
from headscope.statistics.patterns import Patterns
from tests.batches import build_maps, capture_tiny, one_lens

TEXTS = ["The cat sat on the mat because it was tired of the dog.", "Nobody answered when she called them."]


def make_batch(*weights):
    """Return examples of one layer and one head."""
    rows = [["[CLS]", *["noun"] * (len(table) - 2), "[SEP]"] for table in weights]
    return one_lens(build_maps([table[None, None] for table in weights], rows))


def predict(batch, **options):
    one_hot = Patterns(**options).values(batch)["patterns"][:, 0, 0]  # example pattern
    return [(*CLASSES, "unsure")[int(row.argmax())] for row in one_hot]


def test_unambiguous_maps_of_any_length_are_classified_in_one_batch():
    column = torch.zeros(24, 24)
    column[:, 0] = 1
    batch = make_batch(column, torch.eye(40), (column[:20, :20] + torch.eye(20)) / 2, torch.full((30, 30), 1 / 30))
    expected = ["vertical", "diagonal", "vertical_diagonal", "block"]
    assert predict(batch) == predict(batch, classifier="rules") == predict(batch, classifier="both") == expected


def test_only_absolute_weights_count():
    signs = 1 - 2 * (torch.arange(900).view(30, 30) % 2)
    assert predict(make_batch(-torch.eye(30))) == predict(make_batch(torch.eye(30))) == ["diagonal"]
    assert predict(make_batch(signs / 30)) == ["block"]


def test_maps_of_fewer_than_four_tokens_and_maps_without_weight_have_no_pattern():
    values = Patterns().values(make_batch(torch.eye(3), torch.zeros(8, 8), torch.eye(12)))["patterns"]
    assert values[:2].isnan().all()
    assert values[2].sum() == 1


def test_cross_attention_has_no_pattern():
    batch = capture_tiny("t5", "cross", ["raw"], "raw")
    values = Patterns().values(batch)["patterns"]
    assert values.shape == (len(batch.examples), len(batch.focus.layers), len(batch.focus.heads), 5)
    assert values.isnan().all()


def make_class_state(shares, examples=200, classifier="cnn"):
    """Return the state of one layer and two heads, whose examples are of each class in these shares."""
    counts = np.rint(np.array(shares) * examples).astype(int)
    one_hot = np.eye(len(shares))[np.repeat(np.arange(len(shares)), counts)]
    values = np.repeat(one_hot[:, None, None], 2, axis=2)
    names = (*CLASSES, "unsure")[: len(shares)]
    ids = [f"{index:04d}" for index in range(len(values))]
    labels = {"layer": [0], "head": [0, 1], "pattern": names}
    return make_state(Patterns(classifier), {"patterns": values}, ids, labels)


@pytest.mark.parametrize("classifier", ["cnn", "rules"])
def test_shares_over_heads_are_corrected_for_errors_of_the_classifier(classifier):
    true = np.array([0.4, 0.2, 0.2, 0.1, 0.1])
    errors = read_errors(classifier)
    table = errors.count("effective") + errors.prior()
    counted = true @ (table / table.sum(-1, keepdims=True))
    data = Patterns(classifier).finish(replace(make_class_state(counted, 2000, classifier), lens="effective"))
    assert data["patterns_share"].values == pytest.approx(true, abs=0.02)
    assert (data["patterns_share_low"] <= true).all()
    assert (data["patterns_share_high"] >= true).all()
    np.testing.assert_allclose(data["patterns_layer_share"].isel(layer=0), data["patterns_share"], atol=1e-9)
    assert data["patterns_share"].sum() == pytest.approx(1)


def test_unsure_is_counted_but_has_no_true_share():
    data = Patterns("both").finish(make_class_state([0.3, 0.1, 0.1, 0.1, 0.1, 0.3], classifier="both"))
    assert float(data["patterns"].sel(pattern="unsure").mean()) == pytest.approx(0.3)
    assert np.isnan(data["patterns_share"].sel(pattern="unsure"))
    assert float(data["patterns_share"].sum()) == pytest.approx(1)


def test_patterns_are_measured_saved_and_compared(minilm, tmp_path):
    data = hs.measure(minilm, TEXTS, lens=["raw", "effective"], statistics=["patterns"], rows=True)
    assert data["patterns"].dims == ("lens", "site", "layer", "head", "pattern")
    assert (data["patterns"].sum("pattern") == 1).all()
    assert data["patterns_layer_share"].sizes["layer"] == 6
    assert data["patterns_share"].sum("pattern").values == pytest.approx(1)
    assert hs.open_result(hs.save(data, tmp_path / "a.nc")).identical(data)
    rows = means_table(data)
    assert set(rows["variable"]) == {"patterns", "patterns_share", "patterns_layer_share"}
    comparison = hs.compare(data.sel(lens="raw"), data.sel(lens="effective"))
    assert "patterns" in comparison
    assert "patterns_share" not in comparison


def test_an_unknown_classifier_raises():
    with pytest.raises(InputError, match="No classifier of patterns is called 'cnm'. Name 'cnn', 'rules' or 'both'"):
        Patterns("cnm")

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.core.errors import InputError
from headscope.maps.per_example import make_state
from headscope.patterns.classes import CLASSES
from headscope.patterns.shares import errors_of
from headscope.results.tables import means_table
from headscope.statistics.patterns import Patterns
from tests.batches import maps_of, one, seen_in

TEXTS = ["The cat sat on the mat because it was tired of the dog.", "Nobody answered when she called them."]


def batch_of(*weights):
    """Examples of one layer and one head."""
    rows = [["[CLS]", *["noun"] * (len(each) - 2), "[SEP]"] for each in weights]
    return one(maps_of([each[None, None] for each in weights], rows))


def said(batch, **options):
    found = Patterns(**options).values(batch)["patterns"][:, 0, 0]  # example pattern
    return [(*CLASSES, "unsure")[int(each.argmax())] for each in found]


def test_plain_maps_of_any_length_are_told_apart_in_one_batch():
    column = torch.zeros(24, 24)
    column[:, 0] = 1
    batch = batch_of(column, torch.eye(40), (column[:20, :20] + torch.eye(20)) / 2, torch.full((30, 30), 1 / 30))
    wanted = ["vertical", "diagonal", "vertical_diagonal", "block"]
    assert said(batch) == said(batch, classifier="rules") == said(batch, classifier="both") == wanted


def test_only_sizes_count():
    signs = 1 - 2 * (torch.arange(900).view(30, 30) % 2)
    assert said(batch_of(-torch.eye(30))) == said(batch_of(torch.eye(30))) == ["diagonal"]
    assert said(batch_of(signs / 30)) == ["block"]


def test_maps_of_fewer_than_four_tokens_and_maps_without_weight_have_no_pattern():
    found = Patterns().values(batch_of(torch.eye(3), torch.zeros(8, 8), torch.eye(12)))["patterns"]
    assert found[:2].isnan().all()
    assert found[2].sum() == 1


def test_cross_attention_has_no_pattern():
    batch = seen_in("t5", "cross", ["raw"], "raw")
    found = Patterns().values(batch)["patterns"]
    assert found.shape == (len(batch.examples), len(batch.focus.layers), len(batch.focus.heads), 5)
    assert found.isnan().all()


def state(shares, examples=200, classifier="cnn"):
    """One layer and two heads, whose examples are of each class in these shares."""
    counts = np.rint(np.array(shares) * examples).astype(int)
    one_hot = np.eye(len(shares))[np.repeat(np.arange(len(shares)), counts)]
    values = np.repeat(one_hot[:, None, None], 2, axis=2)
    names = (*CLASSES, "unsure")[: len(shares)]
    ids = [f"{each:04d}" for each in range(len(values))]
    labels = {"layer": [0], "head": [0, 1], "pattern": names}
    return make_state(Patterns(classifier), {"patterns": values}, ids, labels)


@pytest.mark.parametrize("classifier", ["cnn", "rules"])
def test_shares_over_heads_have_the_classifiers_errors_taken_out(classifier):
    true = np.array([0.4, 0.2, 0.2, 0.1, 0.1])
    errors = errors_of(classifier) + 0.2
    counted = true @ (errors / errors.sum(-1, keepdims=True))
    found = Patterns(classifier).finish(state(counted, 2000, classifier))
    assert found["patterns_share"].values == pytest.approx(true, abs=0.02)
    assert (found["patterns_share_low"] <= true).all()
    assert (found["patterns_share_high"] >= true).all()
    np.testing.assert_allclose(found["patterns_layer_share"].isel(layer=0), found["patterns_share"], atol=1e-9)
    assert found["patterns_share"].sum() == pytest.approx(1)


def test_unsure_is_a_class_that_is_counted_and_has_no_true_share():
    found = Patterns("both").finish(state([0.3, 0.1, 0.1, 0.1, 0.1, 0.3], classifier="both"))
    assert float(found["patterns"].sel(pattern="unsure").mean()) == pytest.approx(0.3)
    assert np.isnan(found["patterns_share"].sel(pattern="unsure"))
    assert float(found["patterns_share"].sum()) == pytest.approx(1)


def test_patterns_are_measured_saved_and_compared(minilm, tmp_path):
    data = hs.measure(minilm, TEXTS, lens=["raw", "effective"], statistics=["patterns"], rows=True)
    assert data["patterns"].dims == ("lens", "site", "layer", "head", "pattern")
    assert (data["patterns"].sum("pattern") == 1).all()
    assert data["patterns_layer_share"].sizes["layer"] == 6
    assert data["patterns_share"].sum("pattern").values == pytest.approx(1)
    assert hs.open_result(hs.save(data, tmp_path / "a.nc")).identical(data)
    rows = means_table(data)
    assert set(rows["variable"]) == {"patterns", "patterns_share", "patterns_layer_share"}
    apart = hs.compare(data.sel(lens="raw"), data.sel(lens="effective"))
    assert "patterns" in apart
    assert "patterns_share" not in apart


def test_an_unknown_classifier_is_said():
    with pytest.raises(InputError, match="No classifier of patterns is called 'cnm'. Name 'cnn', 'rules' or 'both'"):
        Patterns("cnm")

"""Intervals of attention weights."""

import sys

import numpy as np
import pytest
import torch

from headscope.core.errors import InputError, MissingExtra, NotCaptured
from headscope.core.lens import view
from headscope.core.provenance import read_provenance
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.engine.identifiability import identifiability
from headscope.results.store import open_result, save
from tests.models import text, tiny

KEYS, VALUE = 9, 4


def trace(visible="all", tokens=None):
    random = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 3, KEYS, KEYS, generator=random)
    if visible == "causal":
        scores = scores.masked_fill(~torch.ones(KEYS, KEYS).bool().tril(), -torch.inf)
    rows = tokens or [[f"t{key}" for key in range(KEYS)], ["a", "b", "c", "d", "e", "f"]]
    real = torch.arange(KEYS) < torch.tensor([[len(row)] for row in rows])
    attention = scores.masked_fill(~real[:, None, None], -torch.inf).softmax(-1)
    values = torch.randn(2, 3, KEYS, VALUE, generator=random)
    return Trace.of([attention] * 2, rows, values=[values] * 2, visible=visible)


def test_each_weight_is_in_its_interval_and_the_rows_at_its_ends_have_the_same_output():
    captured = trace()
    data = identifiability(captured, 1, 2, 5)
    values = captured.values[1][0, 2].double().numpy()
    assert data.sizes == {"key": KEYS, "other": KEYS}
    assert (data["least"] <= data["raw"] + 1e-9).all()
    assert (data["greatest"] >= data["raw"] - 1e-9).all()
    for name in ("least_row", "greatest_row"):
        assert np.allclose(data[name].values @ values, data["raw"].values @ values, atol=1e-8)


def test_raw_and_effective_weights_are_those_of_the_lenses():
    captured = trace()
    data = identifiability(captured, 1, 2, 5)
    for name, lens in (("raw", "raw"), ("effective", "effective")):
        expected = view(captured, lens).dataset()["weights"].isel(lens=0).sel(layer=1, head=2).isel(query=5)
        assert np.allclose(data[name], expected, atol=1e-6)  # the lens works in float32


def test_the_result_has_provenance_and_survives_a_file(tmp_path):
    data = identifiability(trace(), -1, 2, -1, example=1)
    facts = read_provenance(data)
    assert {name: facts[name] for name in ("layer", "head", "query", "query_token", "n", "rank")} == {
        "layer": 1,
        "head": 2,
        "query": 5,
        "query_token": "f",
        "n": 6,
        "rank": VALUE,
    }
    assert data["key_token"].values.tolist() == list("abcdef")
    assert open_result(save(data, tmp_path / "a.nc")).identical(data)


def test_only_visible_keys_have_an_interval():
    data = identifiability(trace("causal"), 0, 0, 6)
    assert data["key"].values.tolist() == list(range(7))
    first = identifiability(trace("causal"), 0, 0, 0)
    assert first["least"].values.tolist() == first["greatest"].values.tolist() == [1.0]


def test_a_trace_without_values_is_an_error():
    bare = Trace.of([torch.full((1, 1, 2, 2), 0.5)], ["a", "b"])
    with pytest.raises(
        NotCaptured, match=r"needs 'values', but this trace holds 'attention'. Capture again with keep="
    ):
        identifiability(bare, 0, 0, 0)


@pytest.mark.parametrize(
    ("labels", "options", "sentence"),
    [
        ((2, 0, 0), {}, r"There is no layer 2"),
        ((0, 3, 0), {}, r"There is no head 3"),
        ((0, 0, 9), {}, r"There is no query 9: this example has 9 query tokens, 0 to 8\."),
        ((0, 0, 6), {"example": 1}, r"There is no query 6: this example has 6 query tokens, 0 to 5\."),
        ((0, 0, 0), {"example": 2}, r"There is no example 2: this trace holds 2\."),
    ],
)
def test_labels_out_of_range_are_an_error(labels, options, sentence):
    with pytest.raises(InputError, match=sentence):
        identifiability(trace(), *labels, **options)


def test_a_query_that_sees_no_key_is_an_error():
    mask = torch.ones(1, 2, 2, dtype=torch.bool).tril(-1)
    attention = mask[:, None].float()
    captured = Trace.of([attention], ["a", "b"], values=[torch.ones(1, 1, 2, 2)], visible=mask)
    with pytest.raises(InputError, match=r"Query 0 of example 0 sees no key in layer 0. Give another query."):
        identifiability(captured, 0, 0, 0)


@pytest.mark.parametrize(("layer", "head"), [(2, 3), (0, 1), (-1, -1), (-2, 1)])
def test_layers_and_heads_of_a_partial_capture_are_found_by_label(layer, head):
    model, words = tiny("albert"), text(9)
    whole, part = capture(model, words), capture(model, words, layers=[2, 0], heads=[3, 1])
    labels = {-1: 0, -2: 2}.get(layer, layer), {-1: 1}.get(head, head)
    result, expected = identifiability(part, layer, head, 4), identifiability(whole, *labels, 4)
    np.testing.assert_allclose(result.least, expected.least, atol=1e-6)
    np.testing.assert_allclose(result.greatest, expected.greatest, atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "head", "sentence"),
    [
        (1, 3, r"There is no layer 1 here, only layers 2 and 0\."),
        (2, 0, r"There is no head 0 here, only heads 3 and 1\."),
    ],
)
def test_an_uncaptured_layer_or_head_is_an_error_that_names_the_captured_ones(layer, head, sentence):
    trace = capture(tiny("albert"), text(9), layers=[2, 0], heads=[3, 1])
    with pytest.raises(InputError, match=sentence):
        identifiability(trace, layer, head, 4)


def test_without_numba_the_sentence_has_the_pip_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    sentence = r"hs\.identifiability needs the package numba, .* pip install 'headscope\[compiled\]'"
    with pytest.raises(MissingExtra, match=sentence):
        identifiability(trace(), 0, 0, 0)

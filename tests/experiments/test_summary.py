"""Summaries of single values by example and head, and what the published code averages."""

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.experiments.summary import (
    average,
    summarise_distance_by_tokens,
    summarise_sink,
    summarise_types,
)
from headscope_studies.effective_attention.published import average_all_rows
from tests.models import tiny
from tests.study_data import place

TYPES = ["noun", "pronoun", "verb", "punctuation", "cls", "sep"]


def make_types(weights):
    """One head that gives each type this weight, in 30 examples; every way of reducing tokens is the same."""
    table = np.broadcast_to(np.array(weights)[:, None], (30, 2, 1, len(TYPES), 3))
    dims = ("example", "lens", "head", "type", "several")
    coords = {"lens": ["raw", "effective"], "type": TYPES, "several": ["max", "mean", "sum"]}
    names = ("token_types_rows", "token_types_absolute_rows")
    return xr.Dataset(dict.fromkeys(names, (dims, table)), coords=coords)


def test_a_mean_of_no_layers_is_nan_and_keeps_the_other_axes():
    values = xr.DataArray(np.arange(6.0).reshape(3, 1, 2), dims=("example", "layer", "head"), coords={"head": [4, 5]})
    empty = average(values.isel(layer=slice(None, -1)), "layer")
    assert empty.dims == ("example", "head")
    assert empty["head"].values.tolist() == [4, 5]
    assert np.isnan(empty).all()
    assert average(values, "layer", "head").values.tolist() == [0.5, 2.5, 4.5]


@pytest.mark.parametrize(
    ("weights", "margin"),
    [
        ([0.1, 0.2, 0.3, 0.1, 0.1, 0.5], 0.3),  # the first: the second of the others is 0.2
        ([0.1, 0.6, 0.3, 0.1, 0.1, 0.5], 0.2),  # the second
        ([0.1, 0.6, 0.7, 0.1, 0.1, 0.5], -0.1),  # the third
        ([0.8, 0.6, 0.7, 0.1, 0.1, 0.5], -0.2),  # the fourth
        ([0.1, 0.2, 0.3, 0.1, 0.1, -0.5], 0.3),  # sizes count, as in the published figure
        ([np.nan, np.nan, 0.3, np.nan, np.nan, 0.5], 0.5),  # absent types count as 0
        ([0.1, 0.2, 0.3, 0.1, 0.1, np.nan], np.nan),
    ],
)
def test_the_margin_of_sep_is_positive_where_it_is_among_the_two_largest_types(weights, margin):
    result = summarise_types(make_types(weights))
    for end in ("", "_low", "_high"):
        np.testing.assert_allclose(result[f"sep_margin{end}"], [margin, margin], atol=1e-12)


def test_published_weights_of_types_are_those_of_the_means_of_heads():
    rows = make_types([0.1, 0.2, 0.3, 0.1, 0.1, 0.5])
    heads = xr.concat([rows, -rows], "head")
    result = summarise_types(heads).sel(lens="raw")
    np.testing.assert_allclose(result["published_type_weight"], [0.1, 0.2, 0.3, 0.1, 0.1, 0.5])
    np.testing.assert_allclose(result["type_weight"].sel(several="max", size="signed"), 0, atol=1e-12)


def test_the_sink_is_averaged_over_heads_and_counted_once_for_each_layer():
    table = np.full((3, 2, 2, 2, 2), np.nan)  # example lens layer head kind
    table[:2, :, :, :, 0], table[2, :, :, :, 1] = 0.5, 0.2
    table[:2, 1, :, 1, 0] = 0.1
    dims = ("example", "lens", "layer", "head", "kind")
    coords = {"lens": ["raw", "effective"], "layer": [0, 1], "kind": ["cls", "word"]}
    result = summarise_sink(xr.Dataset({"sink_rows": (dims, table)}, coords=coords))
    np.testing.assert_allclose(result["sink_kind"], [[2 / 3, 1 / 3]] * 2)
    np.testing.assert_allclose(result["sink_weight"].sel(lens="raw"), [0.4, 0.4])
    np.testing.assert_allclose(result["sink_mean"], [0.4, (0.3 + 0.3 + 0.2) / 3])
    np.testing.assert_allclose(result["sink_mean_change"], [0, -0.4 / 3])


def test_changes_by_length_are_at_the_middle_of_ranges_of_eight_tokens():
    tokens, dims = np.array([1, 8, 9, 20]), ("example", "lens", "layer", "head")
    table = np.array([0.1, 0.3, 0.5, 0.7])[:, None, None, None]
    rows = xr.Dataset({"relative_change_rows": (dims, table)}, coords={"lens": ["effective"]})
    result = summarise_distance_by_tokens(rows, tokens, 28).sel(lens="effective")
    assert result["tokens"].values.tolist() == [4.5, 12.5, 20.5, 28.5]
    assert result["count_by_tokens"].values.tolist() == [2, 1, 1, 0]
    np.testing.assert_allclose(result["distance_by_tokens"], [0.2, 0.5, 0.7, np.nan])


def test_published_averages_count_rows_of_padding():
    model, width = tiny("bert"), 24
    examples = hs.read(str(place() / "dev.jsonl"))[:3]
    published = average_all_rows(model, examples, width)
    assert published.sizes == {"example": 3, "lens": 2, "token": 2}
    network = type(model.network)(model.network.config).eval()
    network.load_state_dict(model.network.state_dict())
    network.set_attn_implementation("eager")
    for example in examples:
        ids = model.tokenizer(
            example.text, example.pair, padding="max_length", max_length=width, truncation=True, return_tensors="pt"
        )
        with torch.no_grad():
            layers = network(**ids, output_attentions=True).attentions
        tokens = ids["input_ids"][0].tolist()
        for name, mark in (("cls", model.tokenizer.cls_token_id), ("sep", model.tokenizer.sep_token_id)):
            keys = [at for at, token in enumerate(tokens) if token == mark]
            heads = [head for layer in layers for head in layer[0]]
            expected = np.mean([max(float(head[:, key].mean()) for key in keys) for head in heads])
            ours = published.sel(example=example.id, lens="raw", token=name)
            assert float(ours) == pytest.approx(expected, rel=1e-5)

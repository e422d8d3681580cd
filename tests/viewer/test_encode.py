"""Weights as bytes for the browser."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headscope.viewer.encode import (
    THUMB_BYTES,
    THUMB_STEPS,
    decode_thumbnail,
    decode_weights,
    encode_thumbnail,
    encode_weights,
    find_scale,
    shrink,
    thumb_side,
)

finite = st.floats(-1e6, 1e6, width=32)


@given(arrays(np.float32, (3, 4), elements=finite))
def test_one_byte_with_a_sign_is_off_by_at_most_a_step_of_the_largest(weights):
    scale = find_scale(weights)
    back = decode_weights(encode_weights(weights, "sqrt8", scale, signed=True), "sqrt8", scale, signed=True)
    assert np.abs(back - weights.ravel()).max() <= scale / 127 * 1.001


@given(arrays(np.float32, (3, 4), elements=st.floats(0, 1e6, width=32)))
def test_one_byte_is_off_by_at_most_a_step_of_the_largest(weights):
    scale = find_scale(weights)
    back = decode_weights(encode_weights(weights, "sqrt8", scale, signed=False), "sqrt8", scale, signed=False)
    assert np.abs(back - weights.ravel()).max() <= scale / 255 * 1.001


def test_attention_in_one_byte_is_off_by_less_than_four_thousandths():
    weights = np.linspace(0, 1, 10_001, dtype=np.float32)
    back = decode_weights(encode_weights(weights, "sqrt8", 1.0, signed=False), "sqrt8", 1.0, signed=False)
    assert np.abs(back - weights).max() < 0.004


@pytest.mark.parametrize(("codec", "tolerance"), [("float16", 5e-4), ("float32", 1e-7)])
def test_floats_keep_their_relative_precision(codec, tolerance):
    weights = np.array([[0.1, -0.7], [1e-3, 1.0]])
    back = decode_weights(encode_weights(weights, codec, None, signed=True), codec, None, signed=True)
    np.testing.assert_allclose(back, weights.ravel(), rtol=tolerance)


def test_small_weights_keep_a_color():
    assert encode_weights(np.array([1e-3]), "sqrt8", 1.0, signed=False)[0] == 8  # linear codes would say 0


def test_what_is_not_a_number_is_zero_in_one_byte_and_stays_in_floats():
    weights = np.array([np.nan, 0.5])
    assert encode_weights(weights, "sqrt8", 0.5, signed=False) == b"\x00\xff"
    assert np.isnan(
        decode_weights(encode_weights(weights, "float16", None, signed=False), "float16", None, signed=False)[0]
    )


def test_the_scale_of_a_map_without_numbers_is_none():
    assert find_scale(np.full((2, 2), np.nan)) is None
    assert find_scale(np.zeros((2, 2))) == 0


def test_a_thumbnail_keeps_the_weight_of_largest_size_with_its_sign():
    weights = np.zeros((1, 100, 100), np.float32)
    weights[0, 37, 81] = -0.9
    small = shrink(weights, 10)
    assert small.shape == (1, 10, 10)
    assert small[0, 3, 8] == np.float32(-0.9)
    assert np.count_nonzero(small) == 1


@pytest.mark.parametrize("maps", [1, 72, 144, 1024, 4096])
def test_all_thumbnails_fit_what_is_sent_first(maps):
    assert maps * thumb_side(maps, 2048) ** 2 <= THUMB_BYTES


@pytest.mark.parametrize("signed", [False, True])
def test_a_thumbnail_tells_what_is_masked_from_zero_and_from_any_weight(signed):
    roots = np.linspace(-1 if signed else 0, 1, 1001)
    weights = np.sign(roots) * roots**2
    for seen in (True, False):
        visible = np.full(weights.shape, seen)
        shares = decode_thumbnail(encode_thumbnail(weights, 1.0, signed=signed, visible=visible), signed=signed)
        assert np.isnan(shares).all() != seen
        assert np.isnan(shares).any() != seen


@pytest.mark.parametrize("signed", [False, True])
def test_a_thumbnail_keeps_its_ends_and_is_half_a_step_off_at_most(signed):
    roots = np.linspace(-1 if signed else 0, 1, 1001)
    weights = np.sign(roots) * roots**2
    found = decode_weights(encode_thumbnail(weights, 1.0, signed=signed), "sqrt8", 1.0, signed=signed)
    assert (found[0], found[-1]) == (weights[0], 1)
    assert len(np.unique(found)) == (2 if signed else 1) * THUMB_STEPS[signed] + 1
    half_step = 0.5 / THUMB_STEPS[signed] + 1 / (127 if signed else 255)
    assert np.abs(np.sign(found) * np.sqrt(np.abs(found)) - roots).max() <= half_step

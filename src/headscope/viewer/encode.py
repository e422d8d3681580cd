"""Weights as bytes for the browser: one byte after a square root, or float16, and thumbnails."""

from functools import cache
from typing import Any, Literal

import numpy as np

from headscope.figures.head_grid import max_pool

Array = np.ndarray[Any, np.dtype[Any]]
Codec = Literal["sqrt8", "float16", "float32"]
CODECS: tuple[Codec, ...] = ("sqrt8", "float16", "float32")

THUMB_SIDE = 64
"""Pixels of a thumbnail's side at most."""

THUMB_BYTES = 340_000
"""Bytes of all thumbnails of a lens at most: they are sent before anything is drawn."""

THUMB_STEPS = {False: 63, True: 31}
"""Steps of a thumbnail's weights from 0 to the largest, without and with a sign: more cannot be seen, only sent."""

MASKED = {False: 1, True: 128}
"""The byte of a thumbnail's pixel that covers no visible cell, without and with a sign: no weight has it."""


def encode_weights(weights: Array, codec: Codec, scale: float | None, *, signed: bool) -> bytes:
    """Return the weights of a map, or of several with one scale, as bytes.

    `sqrt8` is |weight| = scale · (code / 255)², or with a sign scale · (code / 127)²: small weights keep their color.
    Its largest error is scale / 255 or scale / 127. What is not a number is 0 there.

    >>> encode_weights(np.array([0.0, 0.25, 1.0]), "sqrt8", 1.0, signed=False)
    b'\\x00\\x80\\xff'
    """
    if codec != "sqrt8":
        kind = "<f2" if codec == "float16" else "<f4"
        return bytes(np.ascontiguousarray(weights, dtype=kind).tobytes())
    levels = 127 if signed else 255
    share = np.asarray(weights, np.float32) / np.float32(scale or 1.0)
    roots = np.sqrt(np.minimum(np.abs(share), 1, dtype=np.float32))
    codes = np.rint(np.nan_to_num(np.copysign(roots, share) if signed else roots) * levels)
    return bytes(codes.astype(np.int8 if signed else np.uint8).tobytes())


def decode_weights(content: bytes, codec: Codec, scale: float | None, *, signed: bool) -> Array:
    """Return the weights behind some bytes, as the browser reads them: the inverse of `encode_weights`.

    >>> decode_weights(bytes([0, 128, 255]), "sqrt8", 1.0, signed=False).round(3)
    array([0.   , 0.252, 1.   ])
    """
    if codec != "sqrt8":
        return np.frombuffer(content, "<f2" if codec == "float16" else "<f4").astype(float)
    codes = np.frombuffer(content, np.int8 if signed else np.uint8).astype(float)
    shares: Array = np.sign(codes) * (codes / (127 if signed else 255)) ** 2
    return shares * (scale or 1.0)


def encode_thumbnail(weights: Array, scale: float | None, *, signed: bool, visible: Array | None = None) -> bytes:
    """Return the weights of a small picture as `sqrt8`, rounded to fewer codes, which pack better.

    >>> list(encode_thumbnail(np.array([0.0, 0.25, 0.26, 1.0]), 1.0, signed=False))
    [0, 130, 130, 255]
    >>> list(encode_thumbnail(np.array([0.5, 0.0]), 0.5, signed=False, visible=np.array([True, False])))
    [255, 1]
    """
    codes = encode_weights(weights, "sqrt8", scale, signed=signed).translate(_rounded_codes(signed))
    if visible is None:
        return codes
    shown = np.where(visible.ravel(), np.frombuffer(codes, np.uint8), np.uint8(MASKED[signed]))
    return bytes(shown.tobytes())


def decode_thumbnail(content: bytes, *, signed: bool) -> Array:
    """Return the shares of the largest weight behind the bytes of thumbnails; NaN where nothing is visible.

    >>> decode_thumbnail(bytes([255, 1]), signed=False)
    array([ 1., nan])
    """
    shares = decode_weights(content, "sqrt8", 1.0, signed=signed)
    return np.where(np.frombuffer(content, np.uint8) == MASKED[signed], np.nan, shares)


@cache
def _rounded_codes(signed: bool) -> bytes:
    """Return the rounded code of every byte."""
    steps, levels = THUMB_STEPS[signed], 127 if signed else 255
    codes = np.arange(256, dtype=np.uint8).view(np.int8 if signed else np.uint8).astype(float)
    rounded = np.rint(np.rint(np.clip(codes / levels, -1, 1) * steps) / steps * levels)
    return bytes(rounded.astype(np.int8 if signed else np.uint8).tobytes())


def find_scale(weights: Array) -> float | None:
    """Return the largest absolute weight as float32; None where no weight is a number.

    >>> find_scale(np.array([0.5, -0.75])), find_scale(np.array([np.nan]))
    (0.75, None)
    """
    sizes = np.abs(weights)
    largest = np.nanmax(sizes) if np.isfinite(sizes).any() else np.nan
    return None if np.isnan(largest) else float(np.float32(largest))


def thumb_side(maps: int, tokens: int) -> int:
    """Return the pixels of a thumbnail's side, for a number of maps with this number of tokens.

    >>> thumb_side(72, 70), thumb_side(72, 20), thumb_side(1024, 2048)
    (64, 20, 18)
    """
    return max(1, min(THUMB_SIDE, tokens, int((THUMB_BYTES / max(maps, 1)) ** 0.5)))


def shrink(weights: Array, side: int) -> Array:
    """Shrink maps to at most `side` pixels a side, each the weight of largest absolute value that it covers."""
    return max_pool(weights, side)

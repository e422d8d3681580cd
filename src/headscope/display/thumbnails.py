"""Thumbnails of maps, as HTML."""

import html
import io
from typing import Any

import numpy as np
from matplotlib.image import imsave

from headscope.core.maps import Maps
from headscope.display.show import embed_png
from headscope.figures.head_grid import max_pool
from headscope.plotting import selection
from headscope.plotting.scales import Cells, weight_scale

WIDTH, SIDE, GAP = 480, 32, 2  # pixels: of the picture at most, of a thumbnail at most, and between thumbnails
COLOURS = 24
"""Shades of red, green and blue, so that a picture takes little of a saved notebook."""
MAX_WEIGHTS = 30_000_000
"""Weights that a thumbnail may cost to compute; of longer texts some layers are shown, or none."""


def picture_heads(maps: Maps) -> str:
    """Return every head of the first example as an HTML image with a note, or nothing for very long texts."""
    first = maps.sel(example=0)
    count = min(len(first.layers), MAX_WEIGHTS // (len(first.heads) * first.queries.real[0].numel() ** 2))
    if not count:
        return ""
    data = selection.select_lens(first.sel(layer=first.layers[:count]).dataset(), None)
    weights = selection.visible_weights(data.transpose("head", "layer", "query", "key", ...))
    layers = f"Layers {selection.format_range(first.layers[:count])}"
    if len(first.heads) == 1:
        where = ", ".join(filter(None, (f"{layers} across", first.averaged.get("head"))))
    else:
        weights = weights.swapaxes(0, 1)
        where = f"{layers} down, heads {selection.format_range(first.heads)} across"
    content, width = tile_maps(weights, signed=first.signed)
    colours = "blue: positive, orange: negative" if first.signed else "darker: more weight"
    example = f" Example {first.examples[0].id}, the first of {len(maps.examples)}." if len(maps.examples) > 1 else ""
    note = f"{where}; of each map queries down, keys across; {colours}.{example}"
    return f"{embed_png(content, width, note)}<div>{html.escape(note)}</div>"


def tile_maps(weights: Cells, *, signed: bool) -> tuple[bytes, int]:
    """Return a PNG with the thumbnails of `row column query key`, and its width in pixels."""
    rows, columns = weights.shape[:2]
    side = max(3, min(SIDE, WIDTH // columns - GAP))
    small = max_pool(weights, side)
    zoom = max(1, side // max(small.shape[-2:]))
    colours = weight_scale(weights, signed=signed).rgba(small)
    colours[np.isnan(small)] = (0.93, 0.93, 0.93, 1.0)  # masked
    colours = colours.repeat(zoom, 2).repeat(zoom, 3)
    edge = ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0))
    framed = np.pad(colours, edge, constant_values=0.8)
    spaced = np.pad(framed, ((0, 0), (0, 0), (0, GAP), (0, GAP), (0, 0)), constant_values=1.0)
    image = spaced.transpose(0, 2, 1, 3, 4).reshape(rows * spaced.shape[2], columns * spaced.shape[3], 4)
    few = np.round(image[..., :3] * COLOURS) / COLOURS
    pixels: np.ndarray[Any, np.dtype[np.uint8]] = (255 * few).round().astype(np.uint8)
    buffer = io.BytesIO()
    imsave(buffer, pixels, format="png")
    return buffer.getvalue(), pixels.shape[1]

"""Pages of tiny models, and the weights that they must show."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from transformers import ViTImageProcessorPil

import headscope as hs
from headscope.core.maps import Maps
from headscope.plotting.scales import find_quantile
from headscope.viewer.page import write_viewer_page
from headscope.viewer.source import make_source
from tests.models import network, tiny
from tests.viewer.pages import Spot

TEXT = "the cat sat on a mat and then it slept because was tired while dog ran fast"  # no word twice
PAIR = "old man sang"
LENSES = ("raw", "effective", "norm", "rollout")
CELL = re.compile("“(.+)” → “(.+)”")


@dataclass(frozen=True)
class Known:
    """A page, and the maps in it by lens."""

    path: Path
    maps: Mapping[str, Maps]

    def weights(self, lens: str, layer: int, head: int = 0) -> Any:
        """Return the weights of a head, as Python computed them; NaN where a query cannot see a key."""
        maps = self.maps[lens]
        weights = maps.layer(layer)[0, head].detach().double().numpy()
        return np.where(maps.visible[maps.layers.index(layer)][0].numpy(), weights, np.nan)

    def limit(self, lens: str, layer: int, head: int = 0) -> float:
        """Return where the colors of a head end in Python's figures."""
        return find_quantile(self.weights(lens, layer, head))[1]

    @property
    def tokens(self) -> list[str]:
        """The tokens that attend."""
        return list(next(iter(self.maps.values())).queries.text[0])

    @property
    def keys(self) -> list[str]:
        """The tokens that are attended to."""
        return list(next(iter(self.maps.values())).keys.text[0])


def write_maps(path: Path, maps: Sequence[Maps], codec: Any = None) -> Known:
    """Write the page of some lenses of one trace."""
    write_viewer_page(make_source(list(maps), codec=codec), path)
    return Known(path, {each.lens: each for each in maps})


def write_text(path: Path, kind: str = "bert", text: str = TEXT, lenses: Sequence[str] = LENSES) -> Known:
    """Write the page of a text through a tiny model."""
    trace = hs.capture(tiny(kind), text)
    return write_maps(path, [hs.view(trace, lens) for lens in lenses])


def write_picture(path: Path) -> tuple[Known, Any]:
    """Write the page of a picture through a tiny vision model, and return its pixels."""
    pixels = np.random.default_rng(0).integers(0, 255, (12, 12, 3), dtype=np.uint8)
    model = hs.load(network("vit"), processor=ViTImageProcessorPil(size={"height": 12, "width": 12}))
    trace = hs.capture(model, Image.fromarray(pixels))
    return write_maps(path, [hs.view(trace, "raw")]), pixels


def find_cells(spots: Sequence[Spot], queries: Sequence[str], keys: Sequence[str]) -> dict[tuple[int, int], Spot]:
    """Return what is pointed at by its query and key, of tokens that occur once; rows go down, and columns right."""
    cells = {}
    for spot in spots:
        if found := CELL.fullmatch(spot.lines[0]):  # and not a bar beside the cells
            query, key = found.groups()
            cells[queries.index(query), keys.index(key)] = spot
    for (row, column), spot in cells.items():
        if (row + 1, column) in cells:
            assert cells[row + 1, column].box[1] > spot.box[3]
        if (row, column + 1) in cells:
            assert cells[row, column + 1].box[0] > spot.box[2]
    return cells


def read_number(text: str) -> float:
    """Return a number as the viewer writes it, without its error."""
    return float(text.split(" ±")[0].split(": ")[-1].replace("−", "-").replace(",", ""))


def rounded(number: float) -> float:
    """Return how far three digits may be off."""
    return max(5.1e-5, 5.1e-3 * abs(number))

"""Attention maps drawn at random from a model and its texts, to be looked at and labelled."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.maps import Maps
from headscope.data.tokenizing.encode import to_examples
from headscope.engine.capture import capture
from headscope.engine.model import Model
from headscope.patterns.labels.labelled import PatternMap, Source


def sample_maps(
    model: Model,
    data: Any,
    many: int,
    *,
    lenses: Sequence[Any] = ("raw",),
    seed: int = 0,
    max_length: int | None = None,
) -> Iterator[PatternMap]:
    """So many maps: each a text, a lens, a layer and a head with equal chances. No map comes twice."""
    examples, chance = to_examples(data), random.Random(seed)
    first = capture(model, [examples[0]], keep="attention", max_length=max_length)
    places = [(layer, head) for layer in first.layers for head in first.heads]
    every = len(examples) * len(lenses) * len(places)
    if not 0 < many <= every:
        raise InputError(f"Cannot draw {many:,} maps: there are {every:,} of these texts, lenses, layers and heads.")
    wanted: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for each in chance.sample(range(every), many):
        rest, place = divmod(each, len(places))
        text, lens = divmod(rest, len(lenses))
        wanted.setdefault(text, []).append((lens, places[place]))
    number = 0
    for text, some in sorted(wanted.items()):
        example = examples[text]
        trace = capture(model, [example], keep=("attention", "values"), max_length=max_length)
        maps = {lens: view(trace, lenses[lens]) for lens in sorted({lens for lens, _ in some})}
        for lens, (layer, head) in some:
            number += 1
            yield pattern_map(maps[lens], (layer, head), id=f"m{number:04}", model=model.spec)


def pattern_map(maps: Maps, place: tuple[int, int], **origin: str) -> PatternMap:
    """The map of one layer and head of a single text, with where it comes from; `origin` is the rest of a Source."""
    (layer, head), keys = place, maps.keys
    known = {"part": "random", "lens": maps.lens, "tuned": "", "data": "", "text": maps.examples[0].id, **origin}
    told: dict[str, Any] = {
        **known,
        "layer": layer,
        "head": head,
        "tokens": tuple(keys.text[0]),
        "segments": tuple(max(0, int(each)) for each in keys.segment[0]),
    }
    return PatternMap(Source(**told), maps.layer(layer)[0, maps.heads.index(head)].float().cpu().numpy())

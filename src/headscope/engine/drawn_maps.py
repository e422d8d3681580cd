"""Attention maps drawn at random from a model and its texts, to be looked at and labelled."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.spec import spec_of
from headscope.core.trace import Trace
from headscope.data.encode import as_examples
from headscope.engine.capture import capture
from headscope.engine.model import Model
from headscope.patterns.labelled import PatternMap, Source


def drawn_maps(
    model: Model,
    data: Any,
    many: int,
    *,
    lenses: Sequence[Any] = ("raw",),
    seed: int = 0,
    max_length: int | None = None,
) -> Iterator[PatternMap]:
    """So many maps: each a text, a lens, a layer and a head with equal chances. No map comes twice."""
    examples, chance = as_examples(data), random.Random(seed)
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
            weights = maps[lens].layer(layer)[0, head].float().cpu().numpy()
            name = spec_of(lenses[lens]) if not isinstance(lenses[lens], str) else lenses[lens]
            yield PatternMap(_source(trace, f"m{number:04}", name, model.spec, layer, head), weights)


def _source(trace: Trace, name: str, lens: str, model: str, layer: int, head: int) -> Source:
    tokens = trace.keys
    segments = tuple(max(0, int(each)) for each in tokens.segment[0])
    text = trace.examples[0].id
    return Source(name, "random", lens, model, "", layer, head, "", text, tuple(tokens.text[0]), segments)

"""A random sample of a model's attention maps, to look at and label."""

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
    count: int,
    *,
    lenses: Sequence[Any] = ("raw",),
    seed: int = 0,
    max_length: int | None = None,
) -> Iterator[PatternMap]:
    """Draw `count` maps without replacement, uniformly over texts, lenses, layers and heads."""
    examples, generator = to_examples(data), random.Random(seed)
    first = capture(model, [examples[0]], keep="attention", max_length=max_length)
    heads = [(layer, head) for layer in first.layers for head in first.heads]
    total = len(examples) * len(lenses) * len(heads)
    if not 0 < count <= total:
        raise InputError(f"Cannot draw {count:,} maps: there are {total:,} of these texts, lenses, layers and heads.")
    chosen: dict[int, list[tuple[int, tuple[int, int]]]] = {}  # by text
    for number in generator.sample(range(total), count):
        rest, head_index = divmod(number, len(heads))
        text, lens = divmod(rest, len(lenses))
        chosen.setdefault(text, []).append((lens, heads[head_index]))
    number = 0
    for text, choices in sorted(chosen.items()):
        trace = capture(model, [examples[text]], keep=("attention", "values"), max_length=max_length)
        maps = {lens: view(trace, lenses[lens]) for lens in sorted({lens for lens, _ in choices})}
        for lens, (layer, head) in choices:
            number += 1
            yield pattern_map(maps[lens], layer, head, id=f"m{number:04}", model=model.spec)


def pattern_map(maps: Maps, layer: int, head: int, **origin: str) -> PatternMap:
    """Return the map of one layer and head of a single text; `origin` holds the other fields of its Source."""
    keys = maps.keys
    facts: dict[str, Any] = {
        "part": "random",
        "lens": maps.lens,
        "tuned": "",
        "data": "",
        "text": maps.examples[0].id,
        **origin,
        "layer": layer,
        "head": head,
        "tokens": tuple(keys.text[0]),
        "segments": tuple(max(0, int(segment)) for segment in keys.segment[0]),
    }
    return PatternMap(Source(**facts), maps.layer(layer)[0, maps.heads.index(head)].float().cpu().numpy())

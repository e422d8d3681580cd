"""Random samples of a model's attention maps, for labeling."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from headscope.core.checks import check_seed
from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.maps import Maps
from headscope.data.reading.read import read
from headscope.engine.capture import capture
from headscope.engine.images import check_reads_texts
from headscope.engine.model import Model
from headscope_patterns.labels.labelled_maps import PatternMap, Source


def sample_maps(
    model: Model,
    data: Any,
    count: int,
    *,
    lenses: Sequence[Any] = ("raw",),
    seed: int = 0,
    max_length: int | None = None,
) -> Iterator[PatternMap]:
    """Sample maps without replacement, uniformly over texts, lenses, layers and heads."""
    check_reads_texts(model, "the labelled maps are of texts")
    check_seed(seed)
    examples = read(data)
    first = capture(model, [examples[0]], keep="attention", max_length=max_length)
    heads = [(layer, head) for layer in first.layers for head in first.heads]
    total = len(examples) * len(lenses) * len(heads)
    if not 0 < count <= total:
        raise InputError(f"Cannot sample {count:,} maps: there are {total:,} of these texts, lenses, layers and heads.")
    by_text: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for index in random.Random(seed).sample(range(total), count):
        rest, head_index = divmod(index, len(heads))
        text, lens = divmod(rest, len(lenses))
        by_text.setdefault(text, []).append((lens, heads[head_index]))
    number = 0
    for text, sampled in sorted(by_text.items()):
        trace = capture(model, [examples[text]], keep=("attention", "values"), max_length=max_length)
        maps = {lens: view(trace, lenses[lens]) for lens in sorted({lens for lens, _ in sampled})}
        for lens, (layer, head) in sampled:
            number += 1
            yield make_pattern_map(maps[lens], layer, head, id=f"m{number:04}", model=model.spec)


def make_pattern_map(maps: Maps, layer: int, head: int, **origin: str) -> PatternMap:
    """Return the map of one head over the real tokens of a single text; `origin` are other fields of its Source."""
    keys, real = maps.keys, maps.keys.real[0].cpu()
    defaults: dict[str, Any] = {
        "part": "random",
        "lens": maps.lens,
        "tuned": "",
        "data": "",
        "text": maps.examples[0].id,
    }
    segments = tuple(max(0, int(segment)) for segment in keys.segment[0].cpu()[real])
    source = Source(**{**defaults, **origin}, layer=layer, head=head, tokens=tuple(keys.text[0]), segments=segments)
    weights = maps.layer(layer)[0, maps.heads.index(head)].float().cpu()
    return PatternMap(source, weights[real][:, real].numpy())

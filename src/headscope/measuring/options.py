"""What can be said about a measurement beside model, data, lens and statistics."""

from typing import Any, Literal, TypedDict, cast

from headscope.core.errors import unknown_name

Units = Literal["tokens", "words", "words_first"]


class Looking(TypedDict, total=False):
    """What of each example is looked at."""

    site: str | None  # "encoder", "decoder" or "cross", where there are several
    layers: Any  # counted from 0; all by default
    heads: Any
    max_length: int | None  # cut texts to so many tokens
    pad_to: int | None  # fill texts up to so many, for lenses in which padding takes part
    units: Units  # "words": attention to a split word is summed, from it averaged; "words_first": from its first token
    rows: bool  # keep the value of every example beside the means


class Choosing(TypedDict, total=False):
    """Which examples are measured, and how many at a time."""

    shard: str | tuple[int, int] | None  # "3/16": the third of sixteen parts, for `hs.merge`
    limit: int | None  # so many, chosen at random
    seed: int
    batch_size: int | None  # by default as many as make 4,096 tokens, 16,384 on a GPU
    tagger: str  # who tags words: "auto" takes tags that the data has, else the built-in tagger


class MeasureOptions(Looking, Choosing, total=False):
    """All of them."""


def split(options: MeasureOptions) -> tuple[Looking, Choosing]:
    """The two kinds apart; an option that there is not is refused by name."""
    known = {*Looking.__annotations__, *Choosing.__annotations__}
    for name in options:
        if name not in known:
            raise unknown_name("option of hs.measure", name, known)
    looking = {name: each for name, each in options.items() if name in Looking.__annotations__}
    choosing = {name: each for name, each in options.items() if name in Choosing.__annotations__}
    return cast(Looking, looking), cast(Choosing, choosing)

"""Which word each token belongs to, where the words are known as stretches of the text."""

from bisect import bisect_right
from collections.abc import Sequence

from headscope.core.example import Example

Span = tuple[int, int]


def words_of_tokens(example: Example, offsets: Sequence[Span], sides: Sequence[int | None]) -> list[int]:
    """The index of each token's word, -1 for none; the words of a second text are counted on from the first's.

    Words come as the columns `spans` and `pair_spans`: where each starts and ends. A token belongs to the word in
    which its first letter stands, so that a token across two words belongs to the first.
    """
    first, second = (tuple(example.columns.get(name, ())) for name in ("spans", "pair_spans"))
    texts = (example.text, example.pair or "")
    found = []
    for (start, end), side in zip(offsets, sides, strict=True):
        if side is None or start >= end:
            found.append(-1)
            continue
        spans, before = (second, len(first)) if side else (first, 0)
        found.append(_word(spans, _first_letter(texts[side], start, end), before))
    return found


def _word(spans: Sequence[Span], place: int, before: int) -> int:
    at = bisect_right(spans, place, key=lambda span: span[0]) - 1
    return before + at if at >= 0 and place < spans[at][1] else -1


def _first_letter(text: str, start: int, end: int) -> int:
    """Byte-level tokenizers count the space before a word as part of its first token."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()) if piece.strip() else start

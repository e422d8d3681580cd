"""The words of many texts as integers, for counting."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np

from headscope.data.tokenizing.words import split_words

Integers = np.ndarray[Any, np.dtype[np.int64]]

_APOSTROPHES = str.maketrans("’ʼ`", "'''")
_NEEDS_CONTEXT = re.compile(r"(?:\b[A-Z]|[Nn]o)\.$")
"""The end of a piece of text whose words depend on what follows the space after it: J. Smith, No. 5."""


@dataclass(frozen=True)
class EncodedTexts:
    """The words of texts: `ids[starts[i]:starts[i + 1]]` are the indices in `vocabulary` of the words of text i."""

    ids: Integers
    starts: Integers
    vocabulary: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.starts) - 1


def normalize_text(text: str) -> str:
    """Return a text in lower case, in Unicode's composed form (NFC), and with straight apostrophes.

    Characters that no file can hold, lone surrogates and U+0000, become U+FFFD.

    >>> normalize_text("DON’T")
    "don't"
    """
    if not text.isascii():
        text = text.encode(errors="surrogatepass").decode(errors="replace")
        text = unicodedata.normalize("NFC", text).translate(_APOSTROPHES)
    return text.replace("`", "'").replace("\0", "\ufffd").lower()


def list_words(text: str) -> list[str]:
    """Return the normalized words of a text, split as in `split_words`: n't, 's and punctuation marks are words.

    A letter and its accent are one character before the text is split, however they are written.

    >>> list_words("He didn’t pay; she can't either.")
    ['he', 'did', "n't", 'pay', ';', 'she', 'ca', "n't", 'either', '.']
    """
    text = unicodedata.normalize("NFC", text)
    return [normalize_text(text[start:end]) for start, end in split_words(text)]


def locate_words(text: str) -> list[tuple[int, int]]:
    """Return the start and end in a text of each word of `list_words`.

    >>> locate_words("A cafe\u0301 is shut.")
    [(0, 1), (2, 7), (8, 10), (11, 15), (15, 16)]
    """
    composed = unicodedata.normalize("NFC", text)
    if composed == text:
        return split_words(text)
    starts, ends = zip(*_locate_characters(text), strict=True)
    return [(starts[start], ends[end - 1]) for start, end in split_words(composed)]


def _locate_characters(text: str) -> list[tuple[int, int]]:
    """Return the start and end in a text of each character of its composed form (NFC)."""
    starts = [0]
    for index in range(1, len(text)):
        before, after = text[starts[-1] : index], text[index]
        apart = "".join(unicodedata.normalize("NFC", piece) for piece in (before, after))
        if not unicodedata.combining(after) and unicodedata.normalize("NFC", before + after) == apart:
            starts.append(index)
    spans = []
    for start, end in pairwise([*starts, len(text)]):
        piece = text[start:end]
        composed = unicodedata.normalize("NFC", piece)
        changed = [(start, end)] * len(composed)
        spans += changed if composed != piece else [(index, index + 1) for index in range(start, end)]
    return spans


def encode_texts(texts: Iterable[str | tuple[str, ...]]) -> EncodedTexts:
    """Encode the words of texts, or of texts that are tuples of words already.

    Most pieces between spaces occur again, so each is split into words once.
    """
    indices: dict[str, int] = {}
    codes: dict[str, tuple[int, ...]] = {}
    contextual: set[str] = set()
    rows: list[list[int]] = []

    def encode(words: Iterable[str]) -> list[int]:
        return [indices.setdefault(word, len(indices)) for word in words]

    def encode_piece(piece: str) -> tuple[int, ...]:
        if _NEEDS_CONTEXT.search(piece):
            contextual.add(piece)
            return ()
        return codes.setdefault(piece, tuple(encode(list_words(piece))))

    for text in texts:
        if isinstance(text, tuple):
            rows.append(encode(_normalize_word(word) for word in text if word))
            continue
        pieces = unicodedata.normalize("NFC", text).split()
        row = list(chain.from_iterable([codes[piece] if piece in codes else encode_piece(piece) for piece in pieces]))
        rows.append(row if contextual.isdisjoint(pieces) else encode(list_words(text)))
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
    ids = np.fromiter(chain.from_iterable(rows), np.int64, int(starts[-1]))
    return EncodedTexts(ids, starts, tuple(indices))


def _normalize_word(word: str) -> str:
    """Return a word of a text that was split by others; spaces in it become _, because spaces separate words."""
    return "_".join(normalize_text(word).split())

"""Readable tokens for byte-level, SentencePiece and WordPiece tokenizers."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, cast

SPACE = "·"
"""Shown for the space before a word."""


def make_readable(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Return the text of each token, with bytes decoded, and spaces and line breaks made visible.

    A character that is split into several tokens is shown on each of them with its part: `中(1/3)`. An id that the
    tokenizer does not know is shown as it is: models often embed more ids than that, and can generate them.
    """
    known = tokenizer.convert_ids_to_tokens(list(ids))
    pieces = [f"⟨{number}⟩" if piece is None else piece for number, piece in zip(ids, known, strict=True)]
    special = set(tokenizer.all_special_tokens)
    decoder = repr(getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", ""))
    alphabet = _BYTES if "ByteLevel" in decoder else None
    return _decode([piece if piece in special else _to_bytes(piece, alphabet) for piece in pieces])


def _to_bytes(piece: str, alphabet: dict[str, int] | None) -> bytes:
    """Return the bytes of a piece in a byte-level alphabet, of SentencePiece's ▁ and <0xE4>, or of plain text."""
    if alphabet is not None and all(letter in alphabet for letter in piece):
        return bytes(alphabet[letter] for letter in piece)
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes([int(piece[3:5], 16)])
    return piece.replace("▁", " ").encode()


def _decode(pieces: Sequence[str | bytes]) -> list[str]:
    """Decode each piece, together with the next ones if a character continues in them."""
    shown: list[str] = []
    while len(shown) < len(pieces):
        piece = pieces[len(shown)]
        if isinstance(piece, str):
            shown.append(piece)
            continue
        bytes_run = takewhile(lambda piece: isinstance(piece, bytes), pieces[len(shown) : len(shown) + 4])
        run = cast("list[bytes]", list(bytes_run))
        for size in range(1, len(run) + 1):  # a character has at most four bytes in UTF-8
            with suppress(UnicodeDecodeError):
                text = _make_visible(b"".join(run[:size]).decode())
                shown += [f"{text}({index}/{size})" for index in range(1, size + 1)] if size > 1 else [text]
                break
        else:
            shown.append("⟨" + piece.hex(" ").upper() + "⟩")
    return shown


def _make_visible(text: str) -> str:
    marked = text.replace("\n", "⏎").replace("\t", "⇥").replace("\r", "␍")
    return SPACE * (len(marked) - len(marked.lstrip(" "))) + marked.lstrip(" ") or "∅"


def _byte_alphabet() -> dict[str, int]:
    """Return the alphabet of byte-level tokenizers: printable bytes as themselves, the others from U+0100 on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + index): byte for index, byte in enumerate(rest)}


_BYTES = _byte_alphabet()

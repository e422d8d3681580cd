"""Tokens as a person reads them, whatever alphabet a tokenizer hides them in."""

from collections.abc import Sequence
from typing import Any

SPACE = "·"
"""Stands for the space before a word."""


def make_readable(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """The text of each token: bytes decoded, spaces and line breaks made visible.

    A character that is spread over several tokens is shown on each of them with its place: `中(1/3)`.
    """
    pieces = tokenizer.convert_ids_to_tokens(list(ids))
    special = set(tokenizer.all_special_tokens)
    decoder = repr(getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", ""))
    spelling = _BYTES if "ByteLevel" in decoder else None
    raw = [piece if piece in special else _bytes_of(piece, spelling) for piece in pieces]
    return _joined(raw)


def _bytes_of(piece: str, spelling: dict[str, int] | None) -> bytes:
    """The bytes a piece stands for: byte-level alphabets, SentencePiece's ▁ and <0xE4>, or plain text."""
    if spelling is not None and all(letter in spelling for letter in piece):
        return bytes(spelling[letter] for letter in piece)
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes([int(piece[3:5], 16)])
    return piece.replace("▁", " ").encode()


def _joined(pieces: Sequence[str | bytes]) -> list[str]:
    """Decode each piece, taking the next ones along where a character goes on in them."""
    shown: list[str] = []
    while len(shown) < len(pieces):
        start = len(shown)
        if isinstance(piece := pieces[start], str):
            shown.append(piece)
            continue
        for end in range(start + 1, min(start + 4, len(pieces)) + 1):  # UTF-8 needs at most four bytes
            run = [each for each in pieces[start:end] if isinstance(each, bytes)]
            text = _decoded(b"".join(run))
            if text is not None and len(run) == end - start:
                many = end - start
                shown += [_visible(text) + (f"({place}/{many})" if many > 1 else "") for place in range(1, many + 1)]
                break
        else:
            shown.append("⟨" + piece.hex(" ").upper() + "⟩")
    return shown


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _visible(text: str) -> str:
    marked = text.replace("\n", "⏎").replace("\t", "⇥").replace("\r", "␍")
    return SPACE * (len(marked) - len(marked.lstrip(" "))) + marked.lstrip(" ") or "∅"


def _byte_alphabet() -> dict[str, int]:
    """The alphabet of byte-level tokenizers: printable bytes stand for themselves, the rest from U+0100 on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + place): byte for place, byte in enumerate(rest)}


_BYTES = _byte_alphabet()

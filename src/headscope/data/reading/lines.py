"""Lines of a UTF-8 file, each checked."""

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path

from headscope.core.errors import InputError


def read_lines(path: Path, *, ends: bool = False) -> Iterator[tuple[int, str, str | None]]:
    """Number, text and problem (mostly None) of every line of a file; `ends` keeps the line ends.

    Only a line feed ends a line: texts hold other characters that Python would split at.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if number == 1:
                if raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                    raise InputError(f"{path} is UTF-16, where UTF-8 is expected. Save it as UTF-8.")
                raw = raw.removeprefix(BOM_UTF8)
            text, problem = _decoded(raw)
            yield number, text if ends else text.removesuffix("\n").removesuffix("\r"), problem


def _decoded(raw: bytes) -> tuple[str, str | None]:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        wrong = f"byte {error.start + 1} of the line, 0x{raw[error.start]:02X}, is not UTF-8"
        return raw.decode(errors="surrogateescape"), wrong
    if "\0" in text:
        return text, f"byte {raw.index(0) + 1} of the line is 0x00, which no text holds"
    return text, None

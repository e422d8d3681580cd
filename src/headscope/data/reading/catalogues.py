"""Message catalogs of gettext: .po, which people write, and .mo, which programs read."""

import ast
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from headscope.core.errors import InputError
from headscope.core.reader import Malformed, Record
from headscope.data.reading.files import read_lines

MAGIC = 0x950412DE
CONTEXT_END, PLURAL_END = "\x04", "\0"
_KEYWORD = re.compile(r'(msgctxt|msgid|msgid_plural|msgstr)(\[\d+\])?\s*(".*)')


def read_mo(path: Path) -> Iterator[Record]:
    """Yield the messages of a compiled catalog in its order; the number counts them from 0.

    Only translated messages are in it. Raise InputError for a file that is no such catalog.
    """
    data = path.read_bytes()
    order = next((order for order in "<>" if data[:4] == struct.pack(f"{order}I", MAGIC)), None)
    try:
        if order is None:
            raise ValueError("it does not begin as one")
        count, sources, targets = struct.unpack(f"{order}3I", data[8:20])
        tables = [struct.iter_unpack(f"{order}2I", data[start : start + 8 * count]) for start in (sources, targets)]
        texts = [[_cut(data, length, start) for length, start in table] for table in tables]
        charset = _read_charset(dict(zip(*texts, strict=True)).get(b"", b""))
        pairs = [(source.decode(charset), target.decode(charset)) for source, target in zip(*texts, strict=True)]
    except (ValueError, struct.error, LookupError) as error:
        raise InputError(f"{path} is no compiled catalogue of gettext: {error}. Was it written completely?") from None
    for number, (source, target) in enumerate(pairs):
        context, _, message = source.rpartition(CONTEXT_END)
        yield from _make_record(number, message.split(PLURAL_END)[0], target.split(PLURAL_END)[0], context)


def read_po(path: Path) -> Iterator[Record | Malformed]:
    """Yield the translated messages of a catalog; the number is the line of the message.

    Messages that are not translated, fuzzy or obsolete are left out.
    """
    entry, keyword, start, fuzzy = dict[str, str](), "", 0, False
    for number, line, problem in read_lines(path):
        text = line.strip()
        match = _KEYWORD.fullmatch(text)
        if problem is not None:
            yield Malformed(number, problem)
        elif "msgstr" in entry and (text.startswith("#") or (match and match[1] in ("msgctxt", "msgid"))):
            yield from [] if fuzzy else _finish(start, entry)
            entry, keyword, fuzzy = {}, "", False
        if text.startswith("#"):
            fuzzy |= text.startswith("#,") and "fuzzy" in text
        elif match or (text.startswith('"') and keyword):
            if match:
                keyword, start = match[1] + (match[2] or ""), start if entry else number
            try:
                entry[keyword.removesuffix("[0]")] = entry.get(keyword.removesuffix("[0]"), "") + _unquote(
                    match[3] if match else text
                )
            except (SyntaxError, ValueError):
                yield Malformed(number, f"{text[:40]!r} has no text in quotation marks")
        elif text and problem is None:
            yield Malformed(number, f"{text[:40]!r} is neither a comment nor a part of a message")
    if "msgstr" in entry and not fuzzy:
        yield from _finish(start, entry)


def _finish(number: int, entry: Mapping[str, str]) -> Iterator[Record]:
    yield from _make_record(number, entry.get("msgid", ""), entry["msgstr"], entry.get("msgctxt", ""))


def _make_record(number: int, source: str, target: str, context: str) -> Iterator[Record]:
    """Yield a message and its translation, unless one of them is empty, as the message of the header is."""
    if source.strip() and target.strip():
        yield Record(number, {"source": source, "target": target, "context": context})


def _unquote(text: str) -> str:
    value = ast.literal_eval(text)
    if not text.endswith('"') or not isinstance(value, str):
        raise ValueError
    return value


def _cut(data: bytes, length: int, start: int) -> bytes:
    if start + length > len(data):
        raise ValueError("it ends too early")
    return data[start : start + length]


def _read_charset(header: bytes) -> str:
    match = re.search(rb"charset=([\w-]+)", header)
    return match[1].decode("ascii") if match else "utf-8"

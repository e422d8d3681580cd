"""Find data files, and read their lines."""

import codecs
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from headscope.core.errors import InputError
from headscope.core.prose import join_words

UTF8 = "utf-8"
WIDE = ("utf-16", "utf-32", "utf-7")
"""Encodings in which the byte of a line feed may be part of another character."""


def find_file(path: str | Path) -> Path:
    """Return the path of a file that exists and is not empty; otherwise raise an error that lists its folder."""
    file = Path(path).expanduser()
    try:
        is_folder = file.is_dir()
    except OSError:  # too long for a path
        raise InputError(f"There is no file '{str(file)[:60]}…'. {_explain(str(path))}".rstrip()) from None
    if is_folder:
        raise InputError(
            f"{file} is a folder, but a file is expected. It holds: {list_folder(file)}. Name one of these."
        )
    if not file.exists():
        raise InputError(f"There is no file '{file}'. {_suggest(file)}{_explain(str(path))}".rstrip())
    if file.stat().st_size == 0:
        raise InputError(f"{file} is empty. Was it written completely?")
    return file


def find_first_file(path: str | Path, *names: str) -> Path:
    """Return the file itself, or in a folder the first file with one of these names."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        return find_file(folder)
    return find_file(next((folder / name for name in names if (folder / name).is_file()), folder / names[0]))


def list_folder(folder: Path) -> str:
    """List the names in a folder, at most eight."""
    return join_words(_names(folder), limit=8, empty="nothing")


def read_lines(
    path: Path, encoding: str | None = None, *, keep_ends: bool = False
) -> Iterator[tuple[int, str, str | None]]:
    """Yield the number, the text and the problem (None if there is none) of every line of a text file.

    Only a line feed ends a line. `str.splitlines` would also split at characters that occur within texts. `encoding` is
    None for formats that are always UTF-8, and where the user can name it, its name.
    """
    name = find_encoding(encoding or UTF8)
    for number, line in enumerate(_split_lines(path, name, advise=encoding is not None), 1):
        text, problem = line if isinstance(line, tuple) else _decode(line, name, advise=encoding is not None)
        yield number, text if keep_ends else text.removesuffix("\n").removesuffix("\r"), problem


def find_encoding(encoding: str) -> str:
    """Return Python's name of a text encoding; raise InputError for an unknown one."""
    try:
        codec = codecs.lookup(encoding)
        "a".encode(codec.name)  # raises LookupError for what encodes no text, such as base64
    except (LookupError, ValueError):
        raise InputError(
            f"encoding={encoding!r} is not known. Common ones are utf-8, utf-16, latin-1 and cp1252."
        ) from None
    return UTF8 if codec.name == "utf-8-sig" else codec.name


def _split_lines(path: Path, encoding: str, *, advise: bool) -> Iterator[bytes | tuple[str, str | None]]:
    """Yield lines as bytes; as texts where a line feed is no single byte."""
    if encoding.startswith(WIDE):
        try:
            with path.open(encoding=encoding, newline="\n") as file:
                yield from ((line, None) for line in file)
        except UnicodeError as error:
            raise InputError(f"{path} is not {encoding.upper()}: {error}. Give another encoding.") from None
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                advice = "Give encoding='utf-16', in the shell --encoding utf-16." if advise else "Save it as UTF-8."
                raise InputError(f"{path} is UTF-16, but {encoding.upper()} is expected. {advice}")
            yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def _decode(line: bytes, encoding: str, *, advise: bool) -> tuple[str, str | None]:
    try:
        text = line.decode(encoding)
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} of the line, 0x{line[error.start]:02X}, is not {encoding.upper()}"
        if advise:
            other = "cp1252" if encoding == UTF8 else "latin-1"
            problem += f"; name the encoding of the file, such as encoding='{other}', in the shell --encoding {other}"
        return line.decode(errors="surrogateescape"), problem
    return text, f"byte {line.index(0) + 1} of the line is 0x00, which is no text" if "\0" in text else None


def _suggest(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no folder '{path.parent}' either. "
    near = get_close_matches(path.name, _names(path.parent), n=1, cutoff=0.5)
    guess = f"Did you mean '{path.parent / near[0]}'? " if near else ""
    return f"{guess}The folder holds: {list_folder(path.parent)}. "


def _explain(source: str) -> str:
    if " " in source.strip():
        return "To read a text itself, give a list: [text]."
    return f"Is it the id of a dataset on a hub? Write 'hub:{source}'." if source.count("/") == 1 else ""


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))

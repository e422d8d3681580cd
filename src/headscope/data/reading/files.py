"""Find data files, and read their lines."""

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from headscope.core.errors import InputError
from headscope.core.prose import join_words


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


def read_lines(path: Path, *, keep_ends: bool = False) -> Iterator[tuple[int, str, str | None]]:
    """Yield the number, the text and the problem (None if there is none) of every line of a UTF-8 file.

    Only a line feed ends a line. `str.splitlines` would also split at characters that occur within texts.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1:
                if line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                    raise InputError(f"{path} is UTF-16, but UTF-8 is expected. Save it as UTF-8.")
                line = line.removeprefix(BOM_UTF8)
            text, problem = _decode(line)
            yield number, text if keep_ends else text.removesuffix("\n").removesuffix("\r"), problem


def _decode(line: bytes) -> tuple[str, str | None]:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} of the line, 0x{line[error.start]:02X}, is not UTF-8"
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

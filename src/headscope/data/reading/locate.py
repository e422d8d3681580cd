"""Finding the file or the reader that somebody meant."""

import re
from collections.abc import Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from headscope.core.catalog import readers
from headscope.core.errors import InputError
from headscope.core.reader import Reader, RecordTable
from headscope.core.spec import canonical_name


def find_table(source: str) -> RecordTable:
    """The table behind a path, or behind `name:parameters@PATH`.

    A path that exists is a path, whatever characters it holds.
    """
    if not Path(source).exists() and (named := _named(source)):
        reader, place = named
        return reader(place)
    path = find_file(source)
    return _by_ending(path)(str(path))


def find_file(place: str | Path) -> Path:
    """A file that is there and holds something; the error names its neighbours."""
    path = Path(place).expanduser()
    if path.is_dir():
        held = _listed([each.name for each in _visible(path)])
        raise InputError(f"{path} is a folder, where a file is expected. It holds: {held}. Name one of its files.")
    if not path.exists():
        raise InputError(f"There is no file '{path}'. {_neighbours(path)}{_not_a_file(str(place))}")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty: there is nothing to read. Was it written to its end?")
    return path


def find_first_file(place: str | Path, *names: str) -> Path:
    """The file itself, or the first of these names that the folder at this place has."""
    path = Path(place).expanduser()
    if not path.is_dir():
        return find_file(path)
    return find_file(next((path / name for name in names if (path / name).is_file()), path / names[0]))


def _named(source: str) -> tuple[Reader, str] | None:
    """The reader and the place in `name:parameters@PATH`, if the source is written so."""
    spec, at, place = source.partition("@")
    name, *parts = re.split("[:,]", spec)
    if not (at or parts) or not canonical_name(name).isidentifier() or (len(name) == 1 and not at):  # C:\\ is a drive
        return None
    if " " in source and canonical_name(name) not in readers.names():  # a text itself
        return None
    kind = readers.find(name)
    reader: Reader = readers.make(kind, **_parameters(kind, name, parts))
    if reader.needs_place and not (at and place):
        raise InputError(f"'{source}' does not say where the data lie. Write {spec}@PATH, with the folder or the file.")
    if not reader.needs_place and at:
        raise InputError(f"'{source}' names a place, '{place}', but the reader '{name}' takes none. Write {spec}.")
    return reader, place


def _parameters(kind: Any, name: str, parts: Sequence[str]) -> dict[str, str]:
    """`rte:dev` or `task=rte:split=dev`: by order or by name."""
    known = [each.name for each in fields(kind)]
    found: dict[str, str] = {}
    for place, part in enumerate(parts):
        key, equals, value = part.partition("=")
        if not equals:
            if place >= len(known):
                takes = f"takes {len(known)} ({', '.join(known)})" if known else "takes none"
                raise InputError(f"The reader '{name}' {takes}, but {len(parts)} parameters are given: {parts}.")
            key, value = known[place], part
        if value:
            found[canonical_name(key)] = value
    return found


def _by_ending(path: Path) -> Reader:
    endings = {ending: kind for kind in readers for ending in kind.endings}
    kind = endings.get(path.suffix.lower().removeprefix("."))
    if kind is None:
        known = ", ".join(f".{each}" for each in sorted(endings))
        raise InputError(
            f"Cannot tell the format of {path} by its ending '{path.suffix}'. Known: {known}. "
            f"Or say it in front: 'jsonl@{path}'."
        )
    made: Reader = kind()
    return made


def _neighbours(path: Path) -> str:
    """What lies where the file should."""
    if not path.parent.is_dir():
        return f"There is no folder '{path.parent}' either. "
    held = [each.name for each in _visible(path.parent)]
    near = get_close_matches(path.name, held, n=1, cutoff=0.5)
    guess = f"Did you mean '{path.parent / near[0]}'? " if near else ""
    return f"{guess}The folder holds: {_listed(held)}. "


def _not_a_file(source: str) -> str:
    if " " in source.strip():
        return "A text itself is read from a list: hs.read([text])."
    return f"Is it the id of a dataset on a hub? Write 'hub:{source}'." if source.count("/") == 1 else ""


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f", … ({len(names)} in all)" if len(names) > 8 else "") or "nothing"

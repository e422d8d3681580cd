"""The steps of a study, stored in a folder and resumed from it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.core.checksum import PLACEHOLDER, DamagedFile, seal, verify
from headscope.core.errors import InputError
from headscope.core.progress import print_status
from headscope.core.study import Progress, ProgressCallback
from headscope.results.atomic import REPLACE, atomic_path
from headscope.results.disk import remove_folder
from headscope.results.npz import read_npz, write_npz
from headscope.results.resume import check_resumable

FACTS = "study.json"
CHECKSUM = "checksum"
REMEDY = (
    "Study as before, give another folder (out=FOLDER), or replace what differs with overwrite=True, in the shell "
    "--force."
)


def print_progress(progress: Progress) -> None:
    """Print the step to stderr, in a notebook to stdout."""
    print_status(progress)


def check_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Raise InputError if a folder holds a study, or steps of one, with other facts."""
    path = folder / FACTS
    if not path.is_file():
        return
    try:
        stored = parse_facts(path.read_bytes())
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{folder} cannot be resumed: its {FACTS} is damaged. {REPLACE.format('folder')}") from error
    check_resumable(folder, stored, facts, remedy=REMEDY)


def parse_facts(content: bytes) -> dict[str, Any]:
    """Return what `write_facts` wrote, and verify its checksum."""
    facts: dict[str, Any] = dict(json.loads(content))
    if (facts.pop(CHECKSUM, None) is not None) != verify(content):
        raise DamagedFile("It lost its checksum.")
    return facts


def write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    """Store the facts of a study, or of steps of one, in its folder."""
    text = json.dumps({**facts, CHECKSUM: PLACEHOLDER}, indent=1, ensure_ascii=False, default=str)
    with atomic_path(folder / FACTS) as part:
        part.write_bytes(seal(text.encode()))


@dataclass(frozen=True)
class Steps:
    """The folder with the steps of one part of a study."""

    folder: Path
    part: str
    total: int = 0
    progress: ProgressCallback | None = None

    @property
    def bars(self) -> bool:
        """Whether long steps show a progress bar in the terminal."""
        return self.progress is print_progress

    def begin(self, facts: Mapping[str, Any], *, overwrite: bool = False) -> None:
        """Store the facts, or check them against those of the steps in the folder.

        With `overwrite`, steps of other facts are deleted.
        """
        try:
            check_facts(self.folder, facts)
        except InputError:
            if not overwrite:
                raise
            remove_folder(self.folder)
        if not (self.folder / FACTS).is_file():
            write_facts(self.folder, facts)

    def keep(self, name: str, make: Callable[[], xr.Dataset], *, discard: str | None = None) -> xr.Dataset:
        """Return the result of a step: read from the folder, or computed and stored.

        Files that match `discard` are deleted once the step is stored.
        """
        path = self.folder / f"{name}.npz"
        if not path.is_file():
            write_npz(make(), path)
        for leftover in self.folder.glob(discard) if discard else ():
            leftover.unlink()
        return read_npz(path)

    def say(self, step: int, text: str) -> None:
        """Report the step that starts now."""
        if self.progress is not None:
            self.progress(Progress(self.part, step, self.total, text))

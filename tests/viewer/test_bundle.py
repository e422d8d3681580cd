"""The committed bundle is what its sources give, is small, and builds no markup from text."""

import hashlib
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

FRONTEND = Path(__file__).parents[2] / "frontend"
STATIC = Path(str(files("headscope"))) / "static"
SOURCES = sorted(path for path in (FRONTEND / "src").rglob("*") if path.is_file())
FORBIDDEN = re.compile(
    r"\beval\(|new Function\(|innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|srcdoc"
)
NAMESPACE = "http://www.w3.org/2000/svg"
LARGEST = 300_000  # bytes


def hash_sources() -> str:
    """Return the hash that frontend/build.mjs writes into the first line of the bundle."""
    others = [FRONTEND / name for name in ("build.mjs", "package-lock.json", "tsconfig.json")]
    names = {path.relative_to(FRONTEND).as_posix(): path for path in [*SOURCES, *others]}
    digest = hashlib.sha256()
    for name in sorted(names, key=str.encode):
        digest.update(f"{name}\n".encode())
        digest.update(names[name].read_bytes())
    return digest.hexdigest()


def test_the_bundle_was_made_of_its_sources():
    first = (STATIC / "viewer.js").read_text(encoding="utf-8").partition("\n")[0]
    found = first.partition("sha256:")[2].partition(" ")[0]
    assert found == hash_sources(), "viewer.js is stale. Run make viewer and commit src/headscope/static."


def test_the_bundle_is_small():
    assert sum((STATIC / name).stat().st_size for name in ("viewer.js", "viewer.css")) < LARGEST


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(FRONTEND / "src").as_posix())
def test_no_source_makes_markup_or_code_of_text(path):
    assert FORBIDDEN.findall(path.read_text(encoding="utf-8")) == []


def test_no_source_names_an_address_of_the_network():
    for path in SOURCES:
        addresses = re.findall(r"(?:https?|wss?)://[^\s\"'`)]*", path.read_text(encoding="utf-8"))
        assert set(addresses) <= {NAMESPACE}, path.name


def test_the_bundle_passes_its_own_checks():
    npm = shutil.which("npm")
    if npm is None or not (FRONTEND / "node_modules").is_dir():
        pytest.skip("npm or frontend/node_modules is missing: make viewer installs and checks")
    done = subprocess.run([npm, "run", "check"], cwd=FRONTEND, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]

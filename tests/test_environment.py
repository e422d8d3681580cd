"""What the suite may not leave in the environment that runs it; tests/conftest.py looks for it after every run."""

import compileall
import os
from pathlib import Path

import pytest

from tests.environment import find_damage
from tests.full_disk import run_python


@pytest.fixture
def packages(tmp_path):
    """A folder of installed packages, as it was before a run."""
    (tmp_path / "module.py").write_text("NUMBERS = [1, 2, 3]\n")
    compileall.compile_dir(tmp_path, quiet=2)
    for path in tmp_path.rglob("*"):
        os.utime(path, (1000, 1000))
    return tmp_path


def find_bytecode(packages: Path) -> Path:
    return next(packages.rglob("*.pyc"))


def test_an_environment_that_was_only_read_is_undamaged(packages):
    assert find_damage(packages, since=2000) == []


def test_new_bytecode_is_no_damage(packages):
    os.utime(find_bytecode(packages), (3000, 3000))
    assert find_damage(packages, since=2000) == []


@pytest.mark.parametrize("size", [0, 10, 16, 40])
def test_truncated_bytecode_is_found(packages, size):
    bytecode = find_bytecode(packages)
    bytecode.write_bytes(bytecode.read_bytes()[:size])
    assert find_damage(packages, since=2000) == [f"{bytecode} is truncated"]


def test_a_changed_source_file_is_found(packages):
    (packages / "module.py").write_text("")
    assert find_damage(packages, since=2000) == [f"{packages / 'module.py'} was changed"]


def test_python_on_a_full_disk_leaves_no_truncated_bytecode(tmp_path):
    done = run_python(
        "fill_disk(300)\nimport wave", PYTHONPYCACHEPREFIX=str(tmp_path), PYTHONDONTWRITEBYTECODE=""
    )  # as usual
    assert done.returncode == 0, done.stderr
    assert find_damage(tmp_path, since=0) == []

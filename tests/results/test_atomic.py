"""What is written survives a power loss, and one run at a time writes an output."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headscope.core.errors import DataWarning, OutputError
from headscope.results.atomic import atomic_path
from headscope.results.lock import lock_output, lock_path
from headscope.results.store import save
from tests.figures.data import measured


@pytest.fixture
def calls(monkeypatch):
    """Every fsync and rename, in order, with the content of files at the time."""
    recorded, fsync, replace = [], os.fsync, os.replace

    def record_fsync(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        recorded.append(("fsync", path, None if path.is_dir() else path.read_bytes()))
        fsync(descriptor)

    def record_replace(source, target):
        recorded.append(("replace", Path(source), Path(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    return recorded


def test_a_file_is_synced_before_it_is_renamed_and_its_folder_after(tmp_path, calls):
    with atomic_path(tmp_path / "a.txt") as part:
        part.write_text("new")
    assert calls == [
        ("fsync", part, b"new"),
        ("replace", part, tmp_path / "a.txt"),
        ("fsync", tmp_path, None),
    ]


def test_every_file_of_a_folder_is_synced_before_it_is_renamed(tmp_path, calls):
    (tmp_path / "a").mkdir()
    with atomic_path(tmp_path / "a") as part:
        (part / "inner").mkdir(parents=True)
        (part / "x").write_text("1")
        (part / "inner" / "y").write_text("2")
    renames = [index for index, (kind, *_) in enumerate(calls) if kind == "replace"]
    before, after = calls[: renames[0]], calls[renames[-1] + 1 :]
    assert {path for _, path, _ in before} == {part, part / "x", part / "inner", part / "inner" / "y"}
    assert calls[renames[-1]] == ("replace", part, tmp_path / "a")
    assert after == [("fsync", tmp_path, None)]


def test_new_folders_are_synced_where_their_names_are(tmp_path, calls):
    with atomic_path(tmp_path / "new" / "er" / "a.txt") as part:
        part.write_text("x")
    synced = [path for kind, path, _ in calls if kind == "fsync"]
    assert {tmp_path, tmp_path / "new", tmp_path / "new" / "er"} <= set(synced)


@pytest.mark.parametrize("ending", ["nc", "zarr", "csv"])
def test_results_are_synced(ending, tmp_path, calls):
    path = save(measured(rows=False), tmp_path / f"a.{ending}")
    names = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    synced = {content for kind, _, content in calls if kind == "fsync"}
    assert {file.read_bytes() for file in names} <= synced
    assert calls[-1][:2] == ("fsync", tmp_path)


def test_a_disk_that_fails_to_sync_raises_and_the_older_file_stays(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("old")

    def fail(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with (
        pytest.raises(OutputError, match=r"Cannot write .*a\.txt: input/output error\. Give another path\."),
        atomic_path(tmp_path / "a.txt") as part,
    ):
        part.write_text("new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "old"}


HOLD = """
import sys
from pathlib import Path
from headscope.results.lock import lock_output

with lock_output(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def hold(tmp_path):
    """Lock a path in another process."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "a.nc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "locked\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_process_is_refused_and_told_the_owner(tmp_path, hold):
    sentence = (
        rf"Cannot write .*a\.nc: it is being written by process {hold.pid} on {re.escape(socket.gethostname())} "
        r"\(.*\), which started at \d{4}-.*\. Wait until that is done, or give another path\. If nothing of that kind "
        r"runs any more, delete .*\.a\.nc\.lock\."
    )
    with pytest.raises(OutputError, match=sentence), lock_output(tmp_path / "a.nc"):
        pass
    with lock_output(tmp_path / "b.nc"):
        pass
    hold.communicate("\n")
    with lock_output(tmp_path / "a.nc"):
        pass
    assert not list(tmp_path.iterdir())


def test_the_lock_of_a_killed_process_is_taken_over_with_a_note(tmp_path, hold):
    hold.kill()
    hold.wait()
    lock = lock_output(tmp_path / "a.nc")
    with pytest.warns(
        DataWarning, match=rf"a\.nc was locked by process {hold.pid} on .* and no longer runs\. Its lock"
    ):
        lock.__enter__()
    assert json.loads(lock_path(tmp_path / "a.nc").read_text())["pid"] == os.getpid()
    lock.__exit__(None, None, None)
    assert not list(tmp_path.iterdir())


def write_owner(path, **changes):
    owner = {"host": socket.gethostname(), "pid": os.getpid(), "command": "x", "started": "then", "process_start": "0"}
    lock_path(path).write_text(json.dumps(owner | changes))


def test_a_later_process_with_the_same_pid_is_not_the_owner(tmp_path):
    write_owner(tmp_path / "a.nc")  # this process, but it started at another time
    with pytest.warns(DataWarning, match="no longer runs"), lock_output(tmp_path / "a.nc"):
        pass


def test_the_owner_on_another_machine_is_respected(tmp_path):
    write_owner(tmp_path / "a.nc", host="elsewhere", pid=1)
    with pytest.raises(OutputError, match="process 1 on elsewhere"), lock_output(tmp_path / "a.nc"):
        pass


@pytest.mark.parametrize("content", [b"", b"\x00" * 40, b"[]", b'{"pid": "x"}'])
def test_a_lock_that_a_power_loss_emptied_is_taken_over(content, tmp_path):
    lock_path(tmp_path / "a.nc").write_bytes(content)
    with pytest.warns(DataWarning, match="a process that left no name"), lock_output(tmp_path / "a.nc"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_thread_may_lock_again_what_it_holds_and_another_may_not(tmp_path):
    refused = []

    def lock_in_thread():
        try:
            with lock_output(tmp_path / "a.nc"):
                pass
        except OutputError as error:
            refused.append(str(error))

    with lock_output(tmp_path / "a.nc"):
        with lock_output(tmp_path / "a.nc"):
            pass
        thread = threading.Thread(target=lock_in_thread)
        thread.start()
        thread.join()
        assert lock_path(tmp_path / "a.nc").exists()
    assert len(refused) == 1
    assert f"process {os.getpid()}" in refused[0]
    assert not list(tmp_path.iterdir())


def test_a_lock_is_released_after_a_failure(tmp_path):
    with pytest.raises(KeyboardInterrupt), lock_output(tmp_path / "a.nc"):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_many_processes_that_find_a_stale_lock_take_it_one_at_a_time(tmp_path):
    write_owner(tmp_path / "a.nc", pid=2**22 + 7)
    (tmp_path / "owners").mkdir()
    code = f"""
import os, sys, time, warnings
from pathlib import Path
from headscope.core.errors import OutputError
from headscope.results.lock import lock_output
warnings.simplefilter("ignore")
for _ in range(50):
    try:
        with lock_output(Path({str(tmp_path / "a.nc")!r})):
            mark = Path({str(tmp_path / "owners")!r}, "one")
            mark.touch(exist_ok=False)  # fails if another process is in this block too
            mark.unlink()
    except OutputError as error:
        assert "is being written by" in str(error), error
"""
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4

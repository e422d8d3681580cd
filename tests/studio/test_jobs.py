"""Jobs: they run one after the other, are watched, cancelled, killed and resumed, and say how they ended."""

import asyncio
import json
import os
import signal
import sys
from dataclasses import replace

import psutil
import pytest
import xarray as xr

import headscope as hs
from headscope.results.store import open_result
from headscope.studio import jobs as jobs_module
from headscope.studio.folder import StudioFolder, identify
from headscope.studio.guard import Refusal
from headscope.studio.jobs import COMMAND, Job, JobQueue
from headscope.studio.options import Limits
from tests.measuring.data import examples
from tests.studio.live import SECONDS, run_studio, save_model

PYTHON = [sys.executable, "-I", "-c", "import sys; exec(sys.argv[1])"]
WAIT = "import signal; print('here', flush=True); signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); print('here', flush=True); signal.pause()"
POLITE = """
import os, signal, sys
def stop(*_): os.write(1, b'saved\\n'); sys.exit(130)
signal.signal(signal.SIGINT, stop)
print('here', flush=True)
signal.pause()
"""


@pytest.fixture
def folder(tmp_path):
    return StudioFolder.open(tmp_path, Limits())


def make_job(folder, script, name="new", **options):
    return Job(name, [script], folder.root / f"{name}.nc", folder.root / f"{name}.nc", **{"resumable": True, **options})


def run(folder, story, **limits):
    """Run a story in a queue of jobs that are Python scripts, and end all of them."""

    async def tell():
        queue = JobQueue(folder, replace(Limits(), **limits), PYTHON)
        try:
            async with asyncio.timeout(SECONDS):
                await story(queue)
        finally:
            await queue.close()
        assert queue.streams == 0
        assert not queue.tasks

    asyncio.run(tell())


async def until(queue, condition):
    while not condition():
        await queue.changed.wait()


def run_one(folder, script, **options):
    """Return a job that ended."""
    job = make_job(folder, script, **options)

    async def story(queue):
        queue.add(job)
        await until(queue, lambda: job.state not in ("waiting", "running"))

    run(folder, story)
    return job


# How jobs run


def test_jobs_run_one_after_the_other(folder):
    script = "import time; print(time.monotonic_ns()); import time; print(time.monotonic_ns())"

    async def story(queue):
        jobs = [queue.add(make_job(folder, script, name)) for name in "abc"]
        assert [job.state for job in jobs] == ["running", "waiting", "waiting"]
        await until(queue, lambda: jobs[-1].state == "done")
        times = [int(line) for job in jobs for line in job.lines]
        assert len(times) == 6
        assert times == sorted(times)

    run(folder, story)


def test_a_flood_of_jobs_is_refused_until_one_ends(folder):
    async def story(queue):
        jobs = [queue.add(make_job(folder, WAIT, f"job {index}")) for index in range(3)]
        for _ in range(50):
            with pytest.raises(Refusal, match="3 jobs run or wait already. Cancel one, or wait") as refusal:
                queue.add(make_job(folder, WAIT, "another"))
            assert refusal.value.status == 429
        assert queue.cancel(jobs[1].id).state == "cancelled"
        queue.add(make_job(folder, WAIT, "another"))
        assert len(queue.jobs) == 4

    run(folder, story, jobs=3)


def test_two_jobs_do_not_write_one_file(folder):
    async def story(queue):
        queue.add(make_job(folder, WAIT))
        with pytest.raises(
            Refusal, match=r"A job that writes new\.nc runs or waits already. Give another name."
        ) as refusal:
            queue.add(make_job(folder, WAIT))
        assert refusal.value.status == 409

    run(folder, story)


def test_the_oldest_jobs_that_ended_are_forgotten(folder, monkeypatch):
    monkeypatch.setattr(jobs_module, "KEPT", 2)

    async def story(queue):
        for index in range(5):
            job = queue.add(make_job(folder, "", f"job {index}"))
            await until(queue, lambda job=job: job.state == "done")
        assert [job.title for job in queue.jobs.values()] == ["job 3", "job 4"]
        with pytest.raises(Refusal, match="There is no job of that id") as refusal:
            queue.find("0")
        assert refusal.value.status == 404

    run(folder, story)


def test_a_job_has_the_folder_no_input_and_the_settings_of_a_studio(folder):
    script = """
import os, sys
print(os.getcwd(), repr(sys.stdin.read()), os.environ["HEADSCOPE_SAFETENSORS"], os.environ["HEADSCOPE_PROGRESS"])
"""
    assert list(run_one(folder, script).lines) == [f"{folder.root} '' only json"]


def test_code_in_the_folder_is_not_run_by_a_job(folder):
    for name in ("headscope", "typer", "torch"):
        (folder.root / name).mkdir()
        for file in ("__init__.py", "__main__.py"):
            (folder.root / name / file).write_text(f"open({str(folder.root / 'run')!r}, 'w')")
    job = Job("version", ["--version"], folder.root / "x", folder.root / "x")

    async def story(queue):
        queue.command = COMMAND
        queue.add(job)
        await until(queue, lambda: job.state not in ("waiting", "running"))

    run(folder, story)
    assert (job.state, list(job.lines)) == ("done", [f"headscope {hs.__version__}"])
    assert not (folder.root / "run").exists()


# What jobs write


def test_progress_is_read_and_everything_else_is_shown(folder):
    script = r"""
import sys
print('{"progress": [3, 60], "unit": "examples", "rate": 1.5}', file=sys.stderr)
print('{"progress": [9, 60], "unit": "examples", "rate": 2}', file=sys.stderr)
print('\x1b[31mNote:\x1b[0m 3 texts are long.\r50 %\r\n\n')
"""
    job = run_one(folder, script)
    assert job.progress == {"done": 9, "total": 60, "unit": "examples", "rate": 2.0}
    assert list(job.lines) == ["Note: 3 texts are long.", "50 %"]


@pytest.mark.parametrize(
    "line",
    [
        '{"progress"',
        '{"progress": 5}',
        '{"progress": [1]}',
        '{"progress": ["a", "b"], "unit": "x", "rate": 1}',
        '{"progress": [1e999, 1], "unit": "x", "rate": 1}',
        '{"progress": [NaN, 1], "unit": "x", "rate": 1}',
        '{"progress": [1, 2], "unit": "x", "rate": Infinity}',
        '{"progress": [1, 2], "unit": "x"}',
        '{"progress": [[[[[[[',
    ],
)
def test_a_line_that_looks_like_progress_and_is_none_is_shown_as_text(folder, line):
    job = make_job(folder, "")
    job.read_line(line)
    assert (job.progress, list(job.lines)) == (None, [line])
    json.dumps(job.describe(folder), allow_nan=False)


def test_endless_output_is_cut(folder):
    script = "print('x' * 3_000_000); [print(index) for index in range(1000)]; print('y' * 10_000, end='')"
    job = run_one(folder, script)
    assert job.state == "done"
    assert list(job.lines) == [*map(str, range(989, 1000)), "y" * 400]


def test_letters_of_several_bytes_arrive_whole(folder):
    assert list(run_one(folder, "print('é' * 5000 + '\\n' + 'ab€' * 100)").lines) == ["é" * 400, "ab€" * 100]


def test_bytes_that_are_no_text_are_shown_somehow(folder):
    job = run_one(folder, "import os; os.write(1, bytes(range(128, 256)))")
    assert job.state == "done"
    json.dumps(job.describe(folder))


# How jobs end


def test_a_job_that_ends_well_names_its_result(folder):
    job = run_one(folder, "open('new.nc', 'w')")
    described = job.describe(folder)
    assert (described["state"], described["message"], described["result"]) == ("done", "", identify("new.nc"))
    assert not described["resumable"]


def test_an_error_of_headscope_is_the_message(folder):
    job = run_one(folder, "import sys; print('Error: The file is empty.', file=sys.stderr); sys.exit(2)")
    assert (job.state, job.message) == ("failed", "The file is empty.")


def test_a_job_that_ends_without_a_word_says_its_code(folder):
    job = run_one(folder, "import sys; sys.exit(3)", resumable=False)
    assert (job.state, job.message) == ("failed", "The process ended with code 3; its last lines say why.")


def test_a_trace_stays_in_the_terminal_and_the_page_gets_an_id(folder, capfd):
    job = run_one(folder, "print('Loading'); password = 'hidden'; raise RuntimeError(password)")
    shown = json.dumps(job.describe(folder))
    identity = job.message.partition("as error ")[2][:8]
    assert job.message.startswith("Something went wrong in this job. The terminal shows what, as error ")
    assert list(job.lines) == ["Loading"]
    assert "hidden" not in shown
    assert "Traceback" not in shown
    printed = capfd.readouterr().err
    assert f"Error {identity} in headscope studio:\nTraceback (most recent call last):" in printed
    assert "RuntimeError: hidden" in printed


def test_a_trace_does_not_command_the_terminal(folder, capfd):
    run_one(folder, "raise RuntimeError('\x1b]0;title\x07 \x1b[2J \x9b31m')")
    printed = capfd.readouterr().err
    assert "RuntimeError: ?]0;title? ?[2J ?31m" in printed


def test_a_sentence_after_a_trace_is_the_message(folder, capfd):
    script = """
import sys
for line in ('Traceback (most recent call last):', '  File "x"', 'OSError: x', 'Error: The file is empty.'):
    print(line, file=sys.stderr)
print('{"progress": [1, 2], "unit": "x", "rate": 0}', file=sys.stderr)
sys.exit(2)
"""
    job = run_one(folder, script)
    assert (job.message, list(job.lines)) == ("The file is empty.", ["Error: The file is empty."])
    assert job.progress["done"] == 1


def test_a_command_that_cannot_be_started_says_so(folder):
    job = make_job(folder, "")

    async def story(queue):
        queue.command = ["/nowhere/python"]
        queue.add(job)
        await until(queue, lambda: job.state == "failed")
        queue.command = PYTHON
        again = queue.add(make_job(folder, "", "another"))  # the queue goes on
        await until(queue, lambda: again.state == "done")

    run(folder, story)
    assert job.message == "The process could not be started: No such file or directory."


def test_a_killed_job_says_so_and_the_next_one_runs(folder):
    async def story(queue):
        killed, following = queue.add(make_job(folder, WAIT)), queue.add(make_job(folder, "", "following"))
        await until(queue, lambda: "here" in killed.lines)
        os.kill(killed.process.pid, signal.SIGKILL)
        await until(queue, lambda: following.state == "done")
        assert killed.state == "failed"
        assert killed.message == (
            "The process was ended from outside (SIGKILL), as the system does where memory is short. What was saved "
            "before is kept: resume it."
        )
        assert killed.describe(folder)["resumable"]

    run(folder, story)


def test_a_cancelled_job_may_save_what_it_has(folder):
    async def story(queue):
        job = queue.add(make_job(folder, POLITE))
        await until(queue, lambda: "here" in job.lines)
        assert queue.cancel(job.id).message == "Stopping; what is done is being saved."
        queue.cancel(job.id)  # again, which changes nothing
        await until(queue, lambda: job.state == "cancelled")
        assert list(job.lines) == ["here", "saved"]
        assert job.message == "Cancelled. It can be resumed."

    run(folder, story)


def test_a_job_that_does_not_stop_is_killed_with_its_children(folder, monkeypatch):
    monkeypatch.setattr(jobs_module, "STOP_SECONDS", 0.2)
    script = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]).pid); {STUBBORN}"

    async def story(queue):
        job = queue.add(make_job(folder, script))
        await until(queue, lambda: list(job.lines)[1:] == ["here", "here"])
        child = psutil.Process(int(job.lines[0]))
        queue.cancel(job.id)
        await until(queue, lambda: job.state == "cancelled")
        await asyncio.to_thread(psutil.wait_procs, [child], SECONDS)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE

    run(folder, story)


def test_a_job_whose_children_outlive_it_can_be_cancelled(folder, monkeypatch):
    monkeypatch.setattr(jobs_module, "STOP_SECONDS", 0.2)
    script = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]); {STUBBORN}"

    async def story(queue):
        job = queue.add(make_job(folder, script))
        await until(queue, lambda: list(job.lines) == ["here", "here"])
        os.kill(job.process.pid, signal.SIGKILL)
        queue.cancel(job.id)
        await until(queue, lambda: job.state == "cancelled")

    run(folder, story)


def test_a_job_that_is_cancelled_before_its_process_starts_ends(folder):
    async def story(queue):
        job = queue.add(make_job(folder, WAIT))
        assert job.process is None
        queue.cancel(job.id)
        await until(queue, lambda: job.state == "cancelled")

    run(folder, story)


def test_a_waiting_job_that_is_cancelled_never_starts(folder):
    async def story(queue):
        first, waiting = queue.add(make_job(folder, POLITE)), queue.add(make_job(folder, "open('new', 'w')", "waiting"))
        assert queue.cancel(waiting.id).state == "cancelled"
        await until(queue, lambda: "here" in first.lines)
        queue.cancel(first.id)
        await until(queue, lambda: first.state == "cancelled")
        assert waiting.process is None

    run(folder, story)
    assert not (folder.root / "new").exists()


def test_a_studio_that_ends_ends_its_jobs(folder):
    jobs = []

    async def story(queue):
        jobs.append(queue.add(make_job(folder, POLITE)))
        jobs.append(queue.add(make_job(folder, WAIT, "waiting")))
        await until(queue, lambda: "here" in jobs[0].lines)

    run(folder, story)
    assert [job.state for job in jobs] == ["cancelled", "cancelled"]
    assert not psutil.pid_exists(jobs[0].process.pid)


def test_a_job_is_resumed_with_its_words_and_one_more(folder):
    script = "import sys; print(sys.argv[2:]); sys.exit(len(sys.argv) == 2)"

    async def story(queue):
        job = queue.add(make_job(folder, script))
        await until(queue, lambda: job.state == "failed")
        again = queue.resume(job.id)
        assert (again.id, again.lines, again.message) == (job.id, again.lines, "")
        with pytest.raises(Refusal, match="Only a job that failed or was cancelled can be resumed") as refusal:
            queue.resume(job.id)
        assert refusal.value.status == 409
        await until(queue, lambda: again.state == "done")
        assert list(again.lines) == ["['--resume']"]
        assert len(queue.jobs) == 1

    run(folder, story)


def test_a_job_that_cannot_be_resumed_now_is_kept(folder):
    async def story(queue):
        failed = queue.add(make_job(folder, "1/0"))
        await until(queue, lambda: failed.state == "failed")
        queue.add(make_job(folder, WAIT, "another"))
        with pytest.raises(Refusal, match="1 jobs run or wait already"):
            queue.resume(failed.id)
        assert queue.find(failed.id) is failed

    run(folder, story, jobs=1)


# Those who watch


def read_event(event):
    fields = dict(line.split(": ", 1) for line in event.strip().split("\n"))
    return fields["id"], json.loads(fields["data"])


def test_a_stream_begins_with_everything_and_goes_on_with_changes(folder):
    async def story(queue):
        first = queue.add(make_job(folder, WAIT, "first"))
        stream = queue.watch("")
        _, state = read_event(await anext(stream))
        assert (state["whole"], [job["title"] for job in state["jobs"]]) == (True, ["first"])
        queue.say("Loading a model")
        _, state = read_event(await anext(stream))
        assert (state["whole"], state["work"]) == (False, "Loading a model")
        queue.cancel(first.id)
        while not state["jobs"] or state["jobs"][0]["state"] != "cancelled":
            _, state = read_event(await anext(stream))
        await stream.aclose()

    run(folder, story)


def test_a_stream_that_was_interrupted_goes_on_where_it_was(folder):
    async def story(queue):
        queue.add(make_job(folder, WAIT, "first"))
        stream = queue.watch("")
        last, _ = read_event(await anext(stream))
        await stream.aclose()
        assert queue.streams == 0
        queue.add(make_job(folder, WAIT, "second"))
        for given, titles in ((last, {"second"}), ("", {"first", "second"}), ("other-5", {"first", "second"})):
            stream = queue.watch(given)
            _, state = read_event(await anext(stream))
            assert {job["title"] for job in state["jobs"]} >= titles
            assert state["whole"] == (given != last)
            await stream.aclose()

    run(folder, story)


@pytest.mark.parametrize("last", ["{start}-99999999999999999", "{start}-x", "{start}--5", "-", "\u0663", "x" * 1000])
def test_a_stream_from_a_strange_place_goes_on(folder, last):
    async def story(queue):
        stream = queue.watch(last.format(start=queue.start_id))
        following = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        queue.say("Loading")
        while read_event(await following)[1]["work"] != "Loading":
            following = asyncio.ensure_future(anext(stream))
        await stream.aclose()

    run(folder, story)


def test_too_many_streams_are_refused_until_one_ends(folder):
    async def story(queue):
        streams = [queue.watch("") for _ in range(2)]
        for stream in streams:
            queue.say("x")
            await anext(stream)
        with pytest.raises(Refusal, match="2 pages watch this studio already. Close one.") as refusal:
            await anext(queue.watch(""))
        assert refusal.value.status == 429
        await streams[0].aclose()
        another = queue.watch("")
        await anext(another)
        for stream in (another, streams[1]):
            await stream.aclose()

    run(folder, story, streams=2)


def test_a_quiet_stream_says_that_it_is_there_and_ends_with_the_studio(folder, monkeypatch):
    monkeypatch.setattr(jobs_module, "HEARTBEAT", 0.01)

    async def story(queue):
        queue.say("x")
        stream = queue.watch("")
        await anext(stream)
        assert await anext(stream) == ": still here\n\n"
        queue.close_streams()
        assert [event async for event in stream if not event.startswith(":")] == []

    run(folder, story)


# A measurement that is killed, seen by another page, and resumed

STOPPING = """
import signal, sys
from headscope.measuring import measure
from headscope.measuring.job import MeasureJob

measure.MIN_INTERVAL = measure.WRITE_FACTOR = 0
observe = MeasureJob.observe

def stop_at_third(self, batches):
    for index, states in enumerate(observe(self, batches)):
        if index == 2 and "--resume" not in sys.argv:
            print("Waiting to be killed", flush=True)
            signal.pause()
        yield states

MeasureJob.observe = stop_at_third
from headscope.cli.main import run
run()
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """Return what two pages saw of a job, and the results."""
    folder, seen = tmp_path_factory.mktemp("studio"), {}
    save_model(folder / "model")
    rows = [json.dumps({"id": example.id, "text": example.text}) for example in examples(600)]
    (folder / "texts.jsonl").write_text("\n".join(rows))
    body = {"kind": "measure", "name": "new", "data": {"id": identify("texts.jsonl")}, "model": {"name": "model"}}
    with run_studio(folder) as live, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # as in this process
        live.studio.jobs.command = [sys.executable, "-P", "-c", STOPPING]
        page = live.watch()
        added = live.ask("/api/jobs", {**body, "statistics": [{"name": "entropy"}, {"name": "offsets"}]})
        assert added.status == 200, added.body
        identity = added.json["id"]
        seen["running"] = page.until(lambda job: job["lines"])
        page.close()
        reloaded = live.watch()
        seen["reloaded"] = reloaded.next()
        os.kill(live.studio.jobs.jobs[identity].process.pid, signal.SIGKILL)
        seen["killed"] = reloaded.until(lambda job: job["state"] != "running")
        seen["files"] = sorted(path.name for path in folder.iterdir())
        assert live.ask(f"/api/jobs/{identity}/resume", {}).status == 200
        seen["resumed"] = reloaded.until(lambda job: job["state"] not in ("waiting", "running"))
        seen["opened"] = live.ask("/api/open", {"id": seen["resumed"]["result"]})
        reloaded.close()
    seen["result"] = open_result(folder / "new.nc")
    seen["whole"] = hs.measure(
        hs.load(folder / "model"), hs.read(folder / "texts.jsonl"), statistics=["entropy", "offsets"], progress=False
    )
    return seen


def test_a_running_job_shows_its_progress(story):
    running = story["running"]
    assert (running["state"], running["lines"]) == ("running", ["Waiting to be killed"])
    assert running["progress"]["total"] == 600
    assert running["progress"]["unit"] == "examples"


def test_a_page_that_is_reloaded_in_mid_job_sees_it(story):
    (job,) = story["reloaded"]["jobs"]
    assert story["reloaded"]["whole"]
    assert (job["id"], job["state"], job["progress"]) == (
        story["running"]["id"],
        "running",
        story["running"]["progress"],
    )


def test_a_killed_measurement_failed_with_a_sentence_and_can_be_resumed(story):
    killed = story["killed"]
    assert (killed["state"], killed["resumable"], killed["result"]) == ("failed", True, None)
    assert "ended from outside (SIGKILL)" in killed["message"]
    assert "new.nc.state" in story["files"]


def test_a_resumed_measurement_has_the_numbers_of_one_that_was_never_killed(story):
    assert (story["resumed"]["state"], story["resumed"]["result"]) == ("done", identify("new.nc"))
    xr.testing.assert_equal(story["result"], story["whole"])


def test_the_result_of_a_job_is_opened_in_the_page(story):
    assert story["opened"].status == 200

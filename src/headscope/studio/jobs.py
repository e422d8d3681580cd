"""Jobs of a studio: measurements and studies, each a process of the shell command, watched by the page."""

import asyncio
import json
import os
import re
import secrets
import signal
import sys
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headscope.core.progress import VARIABLE
from headscope.engine.load import SAFETENSORS
from headscope.studio.failures import report
from headscope.studio.folder import StudioFolder
from headscope.studio.guard import Refusal
from headscope.studio.options import Limits

ACTIVE = ("waiting", "running")
KEPT = 50
"""Jobs that are remembered, with those that ended."""

LINES, LINE_LETTERS = 12, 400
ERROR, TRACE, TRACE_LINES = "Error: ", "Traceback (most recent call last):", 200
HEARTBEAT = 15.0
"""Seconds after which a stream of events says that it is still there."""

PAUSE = 0.1
"""Seconds between two messages of a stream: what changes meanwhile is sent together."""

STOP_SECONDS = 10.0
"""How long a job may take to save what it has, before it is killed."""

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COMMAND = [sys.executable, "-P", "-m", "headscope"]
"""The shell command, without modules of the working folder."""


@dataclass
class Job:
    """One run of the shell command, and how far it is."""

    title: str
    arguments: Sequence[str]
    out: Path
    result: Path
    resumable: bool = False
    id: str = field(default_factory=lambda: secrets.token_hex(6))
    state: str = "waiting"  # running, done, failed, cancelled
    progress: dict[str, Any] | None = None
    message: str = ""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))
    trace: deque[str] = field(default_factory=lambda: deque(maxlen=TRACE_LINES))
    version: int = 0
    resume: bool = False
    cancelled: bool = False
    process: Any = None

    def describe(self, folder: StudioFolder) -> dict[str, Any]:
        """Return what the browser gets to know."""
        done = self.state == "done"
        return {
            "id": self.id,
            "title": self.title,
            "state": self.state,
            "progress": self.progress,
            "message": self.message,
            "lines": list(self.lines),
            "result": folder.identify(self.result) if done and self.result.exists() else None,
            "resumable": self.resumable and self.state in ("failed", "cancelled"),
        }

    def read_line(self, line: str) -> None:
        """Take a line that the process wrote: progress, or something to show."""
        if progress := read_progress(line):
            self.progress = progress
            return
        shown = ESCAPES.sub("", line).rstrip()[:LINE_LETTERS]
        if shown.strip():
            self.lines.append(shown)

    def read_error(self, line: str) -> None:
        """Take a line of the errors, where a trace is for the terminal; progress and a sentence may follow it."""
        traced = self.trace or line.startswith(TRACE)
        if traced and not line.startswith(('{"progress"', ERROR)):
            self.trace.append(line)
        else:
            self.read_line(line)

    def finish(self, code: int) -> None:
        """Say how the process ended."""
        if code == 0:
            self.state, self.message = "done", ""
        elif self.cancelled:
            self.state, self.message = "cancelled", "Cancelled." + (" It can be resumed." if self.resumable else "")
        else:
            self.state, self.message = "failed", self._explain(code)

    def _explain(self, code: int) -> str:
        resume = " What was saved before is kept: resume it." if self.resumable else ""
        if code < 0:
            name = signal.Signals(-code).name if -code in {item.value for item in signal.Signals} else str(-code)
            return f"The process was ended from outside ({name}), as the system does where memory is short.{resume}"
        if errors := [line.removeprefix(ERROR) for line in self.lines if line.startswith(ERROR)]:
            return errors[-1]
        if self.trace:
            return f"Something went wrong in this job. {report(self.trace)}{resume}"
        return f"The process ended with code {code}; its last lines say why.{resume}"


def read_progress(line: str) -> dict[str, Any] | None:
    """Return the progress of a line of JSON; None for any other line.

    >>> read_progress('{"progress": [3, 60], "unit": "examples", "rate": 1.5}')
    {'done': 3, 'total': 60, 'unit': 'examples', 'rate': 1.5}
    """
    if not line.startswith('{"progress"'):
        return None
    with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
        facts = json.loads(line, parse_constant=int)  # no number of JSON, and none for int
        done, total = map(int, facts["progress"])
        return {"done": done, "total": total, "unit": str(facts["unit"]), "rate": float(facts["rate"])}
    return None


class JobQueue:
    """Runs jobs one after the other; everyone who watches is told of every change."""

    def __init__(self, folder: StudioFolder, limits: Limits, command: Sequence[str] = tuple(COMMAND)) -> None:
        self.folder, self.limits, self.command = folder, limits, command
        self.loop = asyncio.get_running_loop()
        self.jobs: dict[str, Job] = {}
        self.start_id, self.version, self.streams = secrets.token_hex(4), 0, 0
        self.work, self.closed = "", False
        self.changed = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()

    def add(self, job: Job) -> Job:
        """Put a job into the queue, or refuse it where too many run and wait."""
        active = [item for item in self.jobs.values() if item.state in ACTIVE]
        if len(active) >= self.limits.jobs:
            raise Refusal(429, f"{len(active)} jobs run or wait already. Cancel one, or wait until one is done.")
        if any(item.out == job.out for item in active):
            raise Refusal(409, f"A job that writes {job.out.name} runs or waits already. Give another name.")
        self.jobs[job.id] = job
        self._forget()
        self._touch(job)
        self._pump()
        return job

    def find(self, identity: str) -> Job:
        """Return the job of an id."""
        if identity not in self.jobs:
            raise Refusal(404, "There is no job of that id. The studio may have been started again.")
        return self.jobs[identity]

    def cancel(self, identity: str) -> Job:
        """Stop a job: it saves what it has, and is killed if that takes too long."""
        job = self.find(identity)
        if job.state == "waiting":
            job.cancelled = True
            job.finish(1)
            self._touch(job)
        elif job.state == "running" and not job.cancelled:
            job.cancelled, job.message = True, "Stopping; what is done is being saved."
            self._touch(job)
            self._start_task(self._stop(job))
        return job

    def resume(self, identity: str) -> Job:
        """Put a job that failed or was cancelled into the queue again."""
        job = self.find(identity)
        if not (job.resumable and job.state in ("failed", "cancelled")):
            raise Refusal(409, "Only a job that failed or was cancelled can be resumed.")
        del self.jobs[identity]
        again = Job(job.title, job.arguments, job.out, job.result, job.resumable, id=job.id, resume=True)
        try:
            return self.add(again)
        except Refusal:
            self.jobs[identity] = job
            raise

    def say(self, text: str) -> None:
        """Tell all pages what the worker does now; nothing where it is idle."""
        self.work = text
        self._touch(None)

    def say_from_thread(self, text: str) -> None:
        """Do the same from another thread."""
        if not self.closed:
            self.loop.call_soon_threadsafe(self.say, text)

    async def watch(self, last: str) -> AsyncGenerator[str]:
        """Yield server-sent events: what changed since the event `last`, or everything, and then every change."""
        if self.streams >= self.limits.streams:
            raise Refusal(429, f"{self.streams} pages watch this studio already. Close one.")
        start, _, number = last.partition("-")
        seen = min(int(number), self.version) if start == self.start_id and number.isdecimal() else -1
        self.streams += 1
        try:
            while not self.closed:
                changed = self.changed
                if seen < self.version:
                    event, seen = self._write_event(seen), self.version
                    yield event  # what changes meanwhile is in the next one
                    await asyncio.sleep(PAUSE)
                    continue
                try:
                    await asyncio.wait_for(changed.wait(), HEARTBEAT)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self.streams -= 1

    def list(self, since: int = -1) -> list[dict[str, Any]]:
        """Return the jobs that changed since a version, oldest first."""
        return [job.describe(self.folder) for job in self.jobs.values() if job.version > since]

    def close_streams(self) -> None:
        """End all streams of events."""
        self.closed = True
        self.changed.set()

    async def close(self) -> None:
        """Stop all jobs, and wait until they have."""
        self.close_streams()
        for job in list(self.jobs.values()):
            self.cancel(job.id)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS + 5):
                while self.tasks:  # one that ends may start another
                    await asyncio.wait(self.tasks)
                    await asyncio.sleep(0)

    def _write_event(self, seen: int) -> str:
        state = {"jobs": self.list(seen), "whole": seen < 0, "work": self.work}
        return f"id: {self.start_id}-{self.version}\nevent: state\ndata: {json.dumps(state)}\n\n"

    def _touch(self, job: Job | None) -> None:
        self.version += 1
        if job is not None:
            job.version = self.version
        self.changed.set()
        self.changed = asyncio.Event()

    def _forget(self) -> None:
        """Drop the oldest jobs that ended."""
        ended = [job.id for job in self.jobs.values() if job.state not in ACTIVE]
        for identity in ended[: max(0, len(self.jobs) - KEPT)]:
            del self.jobs[identity]

    def _pump(self) -> None:
        """Start waiting jobs as long as few run."""
        running = sum(job.state == "running" for job in self.jobs.values())
        waiting = [job for job in self.jobs.values() if job.state == "waiting"]
        if not self.closed:
            for job in waiting[: max(0, self.limits.running - running)]:
                job.state = "running"
                self._touch(job)
                self._start_task(self._run(job))

    def _start_task(self, work: Any) -> None:
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _run(self, job: Job) -> None:
        """Run the process of a job until it ends, however it does."""
        try:
            words = [*job.arguments, *(["--resume"] if job.resume else [])]
            pipe = asyncio.subprocess.PIPE
            options: dict[str, Any] = {"stdin": asyncio.subprocess.DEVNULL, "stdout": pipe, "stderr": pipe}
            options |= {"cwd": self.folder.root, "env": _environment(), "start_new_session": True}
            job.process = await asyncio.create_subprocess_exec(*self.command, *words, **options)
            if job.cancelled:
                self._start_task(self._stop(job))
            output = self._read(job, job.process.stdout, job.read_line)
            await asyncio.gather(output, self._read(job, job.process.stderr, job.read_error))
            job.finish(await job.process.wait())
        except OSError as error:
            job.state, job.message = "failed", f"The process could not be started: {error.strerror or error}."
        self._touch(job)
        self._pump()

    async def _read(self, job: Job, stream: asyncio.StreamReader, take: Callable[[str], None]) -> None:
        """Read lines of any length; what follows the first letters of a line is dropped."""
        rest, decoder = "", getincrementaldecoder("utf-8")("replace")
        while chunk := await stream.read(8192):
            *lines, rest = (rest + decoder.decode(chunk)).replace("\r", "\n").split("\n")
            rest = rest[: 4 * LINE_LETTERS]
            for line in lines:
                take(line)
            if lines:
                self._touch(job)
        take(rest)

    async def _stop(self, job: Job) -> None:
        """Interrupt a process, as Ctrl-C does; kill it if it does not end."""
        if job.process is None:
            return
        _signal(job.process, signal.SIGINT)
        try:
            await asyncio.wait_for(job.process.wait(), STOP_SECONDS)
        except TimeoutError:
            _signal(job.process, signal.SIGKILL)


def _signal(process: Any, number: int) -> None:
    """Send a signal to a process and to those that it started, which may outlive it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _environment() -> Mapping[str, str]:
    """Return the environment of a job: progress as JSON, weights as safetensors only."""
    return os.environ | {VARIABLE: "json", SAFETENSORS: "only", "COLUMNS": "160", "NO_COLOR": "1"}

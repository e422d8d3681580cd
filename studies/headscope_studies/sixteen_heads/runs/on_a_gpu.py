"""Run the studies of dark secrets and sixteen heads on one GPU, with many processes, as far as the time goes.

    python runs/on_a_gpu.py --place GLUE --parallel PARALLEL --model all-MiniLM-L6-v2 e5-small --work WORK --out OUT \\
        --processes 16 --seconds 570

MODEL are folders; GLUE holds the folders of tasks, PARALLEL the files of docs/runs/parallel_text.py. The jobs are those
of sixteen_heads.py, dark_secrets.py and docs/runs/translation.py; the first in the list below that are not waiting for
others are run first. OUT/results.tar.gz has the results of all jobs that ended, and is written anew as each of them
ends; OUT/jobs.json says when each began and ended. The same command again does what is left. Both scripts join the
results. Processes are forks of this one, which has imported all modules: to import them in each would take a minute.
"""

import argparse
import json
import os
import runpy
import signal
import subprocess
import sys
import tarfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers  # noqa: F401

import headscope_studies.dark_secrets.measure
import headscope_studies.sixteen_heads.measure  # noqa: F401
from headscope.core.progress import print_status
from headscope.training.finetuning.trainer import make_trainer  # noqa: F401

HEADS = Path(__file__).with_name("sixteen_heads.py")
SECRETS = HEADS.parents[2] / "dark_secrets" / "runs" / "dark_secrets.py"
TRANSLATION = HEADS.parents[4] / "docs" / "runs" / "translation.py"
SEEDS = (0, 1, 2)
SITES = ("cross", "encoder", "decoder", "all")
SMALL, LARGE, LAST = ("rte", "mrpc", "stsb"), ("sst2",), ("qnli",)


@dataclass(frozen=True)
class Job:
    """One call of a script, after others have ended."""

    name: str
    script: Path
    arguments: tuple[str, ...]
    after: tuple[str, ...] = ()


def list_jobs(chosen: argparse.Namespace, found: Path) -> Iterator[Job]:
    """Yield all jobs, those that matter most first."""
    work, place, parallel = str(chosen.work), str(chosen.place), chosen.parallel
    for seed in SEEDS:
        model = chosen.work / f"translation-{seed}"
        limit = () if chosen.train_limit is None else ("--limit", str(chosen.train_limit))
        trained = ("--seed", str(seed), "--out", work, *limit)
        yield Job(f"translate {seed}", TRANSLATION, (str(parallel), *trained))
        for site in SITES:
            texts = ("--parallel", str(parallel / "test.tsv"), "--train", str(parallel / "train.tsv"))
            options = (*texts, *_limit(chosen), "--seed", str(seed), "--work", work, "--out", str(found))
            name = f"{site} {seed}"
            job = ("translate", "--model", str(model), "--site", site, *options)
            yield Job(name, HEADS, job, (f"translate {seed}",))
    for tasks in (LARGE, SMALL):
        yield from _list_trainings(chosen, tasks, place, work)
    for tasks in (SMALL, LARGE):
        yield from _list_studies(chosen, tasks, place, work, found)
    yield from _list_trainings(chosen, LAST, place, work)
    yield from (job for job in _list_studies(chosen, LAST, place, work, found) if job.script == SECRETS)


def _list_trainings(chosen: argparse.Namespace, tasks: tuple[str, ...], place: str, work: str) -> Iterator[Job]:
    for task, model, seed in _list_runs(chosen, tasks):
        limit = () if chosen.train_limit is None else ("--train-limit", str(chosen.train_limit))
        options = (task, "--place", place, "--seed", str(seed), "--work", work, "--model", str(model), *limit)
        yield Job(f"tune {task} {model.name} {seed}", HEADS, ("tune", *options))
        yield Job(f"start {task} {model.name} {seed}", SECRETS, ("start", *options, *_limit(chosen)))


def _list_studies(
    chosen: argparse.Namespace, tasks: tuple[str, ...], place: str, work: str, found: Path
) -> Iterator[Job]:
    for task, model, seed in _list_runs(chosen, tasks):
        name = f"{task} {model.name} {seed}"
        train = () if chosen.train_limit is None else ("--train-limit", str(chosen.train_limit))
        options = (task, "--place", place, "--seed", str(seed), "--work", work, "--model", str(model), *train)
        options = (*options, *_limit(chosen), "--out", str(found))
        yield Job(f"heads {name}", HEADS, ("run", *options), (f"tune {name}",))
        yield Job(f"secrets {name}", SECRETS, ("run", *options), (f"tune {name}", f"start {name}"))


def _list_runs(chosen: argparse.Namespace, tasks: tuple[str, ...]) -> Iterator[tuple[str, Path, int]]:
    yield from ((task, model, seed) for task in tasks for seed in SEEDS for model in reversed(chosen.model))


def _limit(chosen: argparse.Namespace) -> tuple[str, ...]:
    return () if chosen.limit is None else ("--limit", str(chosen.limit))


def run_jobs(jobs: list[Job], out: Path, found: Path, *, processes: int, seconds: float) -> None:
    """Run jobs side by side until all ended or the time is over; pack the results as each ends."""
    logs, fresh = found.parent / "logs", not can_fork()
    logs.mkdir(parents=True, exist_ok=True)
    print_status("Every job imports anew." if fresh else "Jobs are forks.")
    ended = found.parent / "ended.json"
    ends: dict[str, float] = json.loads(ended.read_text(encoding="utf-8")) if ended.is_file() else {}
    started, running, begun, failed = time.monotonic(), dict[int, Job](), dict[str, float](), list[str]()
    waiting = [job for job in jobs if job.name not in ends]
    while (waiting or running) and time.monotonic() - started < seconds:
        ready = [job for job in waiting if all(name in ends for name in job.after)]
        if ready and len(running) < processes:
            waiting.remove(ready[0])
            begun[ready[0].name] = round(time.monotonic() - started, 1)
            running[_fork(ready[0], logs, fresh=fresh)] = ready[0]
            continue
        if not running:
            break  # what is left waits for a job that failed
        ended_now = (os.waitpid(child, os.WNOHANG) for child in list(running))  # the process may have other children
        pid, status = next(((child, code) for child, code in ended_now if child), (0, 0))
        if pid == 0:
            time.sleep(0.1)
            continue
        job, now = running.pop(pid), round(time.monotonic() - started, 1)
        if status:
            failed.append(job.name)
        else:
            ends[job.name] = now
        print_status(f"{now:6.1f} s  {job.name}{' FAILED' if status else ''}")
        facts = {"begun": begun, "ended": ends, "failed": failed, "waiting": [job.name for job in waiting]}
        ended.write_text(json.dumps(ends), encoding="utf-8")
        (out / "jobs.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        pack(out, found)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    print_status(f"{len(ends)} of {len(jobs)} jobs ended, {len(failed)} failed: {', '.join(failed)}")


def _fork(job: Job, logs: Path, *, fresh: bool) -> int:
    """Return the process that runs a job; what it prints is in a file of its own."""
    if pid := os.fork():
        return pid
    log = os.open(logs / f"{job.name.replace(' ', '-')}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if fresh:
        os.execv(sys.executable, [sys.executable, str(job.script), *job.arguments])
    status = 1
    try:
        sys.argv = [str(job.script), *job.arguments]
        runpy.run_path(str(job.script), run_name="__main__")
        status = 0
    except BaseException:  # a child must not return into the loop of its parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def can_fork() -> bool:
    """Return whether a fork of this process can use the GPU; it cannot if a module that was imported has done so."""
    if pid := os.fork():
        return os.waitpid(pid, 0)[1] == 0
    try:
        if torch.cuda.is_available():
            torch.ones(1, device="cuda").add(1).item()
        os._exit(0)
    except BaseException:
        os._exit(1)


def pack(out: Path, found: Path) -> None:
    """Write all results, the scores of translators and the ends of logs into one archive, in place of the last."""
    part = out / "results.part"
    with tarfile.open(part, "w:gz", compresslevel=1) as archive:
        for path in sorted(found.glob("*.npz")):
            archive.add(path, path.name)
        for path in sorted(found.parent.glob("translation-*.json")):
            archive.add(path, path.name)
        for path in sorted((found.parent / "logs").glob("*.txt")):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
            path = path.with_suffix(".tail")
            path.write_text("\n".join(lines), encoding="utf-8")
            archive.add(path, f"logs/{path.name}")
    part.replace(out / "results.tar.gz")


def share_gpu() -> None:
    """Start the service that lets processes share a GPU at the same time, if it is there and works."""
    folder = Path("/tmp/mps")
    names = {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    folder.mkdir(exist_ok=True)
    test = [sys.executable, "-c", "import torch; torch.ones(1, device='cuda').add(1).item()"]
    try:
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **names}, timeout=20, check=True)
        subprocess.run(test, env={**os.environ, **names}, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        print_status(f"Processes take turns on the GPU: {error}")
        return
    os.environ.update(names)
    print_status("Processes share the GPU.")


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", type=Path, required=True, help="the folder of GLUE")
    parser.add_argument("--parallel", type=Path, required=True, help="the folder of parallel text")
    parser.add_argument("--model", type=Path, nargs="+", required=True, help="folders of pretrained models")
    parser.add_argument("--work", type=Path, required=True, help="where models and steps are kept")
    parser.add_argument("--out", type=Path, required=True, help="where the archive of results goes")
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=570)
    parser.add_argument("--limit", type=int, help="inputs to study, to try it")
    parser.add_argument("--train-limit", type=int, help="examples to learn from, to try it")
    parser.add_argument("--only", help="jobs whose name holds this, and those they wait for, to try it")
    parser.add_argument("--mps", action="store_true", help="let processes share the GPU, where that works")
    chosen = parser.parse_args()
    found = chosen.work / "found"
    for folder in (found, chosen.out):
        folder.mkdir(parents=True, exist_ok=True)
    if chosen.mps:
        share_gpu()
    jobs = list(list_jobs(chosen, found))
    if chosen.only:
        wanted = [job for job in jobs if chosen.only in job.name]
        needed = {name for job in wanted for name in (job.name, *job.after)}
        jobs = [job for job in jobs if job.name in needed]
    run_jobs(jobs, chosen.out, found, processes=chosen.processes, seconds=chosen.seconds)


if __name__ == "__main__":
    main()

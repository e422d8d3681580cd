"""What a measurement will take, before it is begun."""

import time
from dataclasses import dataclass

import psutil
import torch

from headscope.measuring.checkpoint import Checkpoint, packed
from headscope.measuring.job import MeasureJob

CAUTION = 1.15  # how much more than estimated the disk should have room for


@dataclass(frozen=True)
class Estimate:
    """Seconds, bytes of memory and bytes of disk, and what they were estimated from."""

    examples: int
    batches: int
    seconds: float
    memory: int  # of the whole process at its largest batch
    disk: int
    free_memory: int


def estimate(job: MeasureJob) -> Estimate:
    """Measure the largest batch and a middle one, and scale the middle one up by tokens.

    The largest batch comes first in a plan, so that memory is known after it.
    """
    padded = job.plan.padded
    middle = len(padded) // 2
    (states,) = job.states(0, 1)
    memory = _resident()
    start = time.perf_counter()
    list(job.states(middle, middle + 1))
    spent = time.perf_counter() - start
    size = len(packed(Checkpoint(job.facts, 0, 0, states)))
    rows = job.observer.settings.rows
    disk = size * (len(job.plan.examples) / len(job.plan.batches[0])) if rows else size
    return Estimate(
        len(job.plan.examples),
        len(padded),
        spent * sum(padded) / padded[middle],
        memory,
        round(disk * CAUTION),
        psutil.virtual_memory().available,
    )


def _resident() -> int:
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return torch.cuda.max_memory_allocated()
    return int(psutil.Process().memory_info().rss)

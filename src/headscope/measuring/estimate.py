"""Estimate the time, memory and disk of a measurement before it runs."""

import time
from dataclasses import dataclass

import psutil
import torch

from headscope.measuring.checkpoint import Checkpoint
from headscope.measuring.job import MeasureJob

DISK_MARGIN = 1.15  # factor on the estimated disk space


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
    """Measure the largest batch and a middle one of the first window, and scale the time of the middle one by tokens.

    The largest batch is the first of a window, so memory is known after it, if later windows have no longer texts.
    """
    batches = job.plan.first
    middle = batches[len(batches) // 2]
    (states,) = job.observe(batches[:1])
    on_gpu = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    memory = on_gpu or int(psutil.Process().memory_info().rss)
    start = time.perf_counter()
    list(job.observe([middle]))
    seconds = time.perf_counter() - start
    disk = float(len(Checkpoint(job.facts, 0, 0, states).to_bytes()))
    if job.observer.settings.rows:
        disk *= len(job.plan.examples) / len(batches[0])
    windows = len(job.plan.examples) / sum(map(len, batches))
    return Estimate(
        examples=len(job.plan.examples),
        batches=round(len(batches) * windows),
        seconds=seconds * windows * sum(batch.padded_size for batch in batches) / middle.padded_size,
        memory=memory,
        disk=round(disk * DISK_MARGIN),
        free_memory=psutil.virtual_memory().available,
    )

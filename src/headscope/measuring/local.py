"""One process, batch after batch."""

from collections.abc import Callable, Iterator

from headscope.core.errors import InputError
from headscope.measuring.job import MeasureJob
from headscope.measuring.observe import States


def run(job: MeasureJob, workers: int | None) -> Callable[[int], Iterator[States]]:
    """The states of every batch from a given one on, in the order of the plan."""
    if workers is not None:
        raise InputError(f"workers={workers} is for engine='ray'. Leave it out, or add that engine.")

    return job.states

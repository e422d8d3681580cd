"""Checks of options that many verbs share."""

from numbers import Integral
from typing import Any

from headscope.core.errors import InputError

MAX_SEED = 2**32 - 1
"""The largest seed that all generators take: Python's, numpy's and torch's."""


def check_seed(seed: Any) -> int:
    """Return a seed; raise InputError unless it is a whole number from 0 to `MAX_SEED`.

    Some generators refuse negative seeds, and others take -3 for 3.
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) <= MAX_SEED:
        raise InputError(f"seed={seed} cannot seed a random generator. Give a whole number from 0 to {MAX_SEED:,}.")
    return int(seed)

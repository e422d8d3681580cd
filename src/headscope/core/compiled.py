"""Compilation of numerical loops to machine code, with numba."""

from collections.abc import Callable
from inspect import unwrap
from typing import ParamSpec, TypeVar

import numba

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def compiled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Compile a function at its first call with each argument type, and cache the machine code on disk.

    The cache is `__pycache__` beside the file, or the user's cache folder where that is not writable. Global names are
    constants in compiled code. Arithmetic is numpy's: no fast-math, and x / 0 is infinite.
    """
    plain = unwrap(function)  # during tests, functions are wrapped to check their shapes
    try:
        machine: Callable[Arguments, Result] = numba.njit(cache=True, error_model="numpy")(plain)
    except RuntimeError:  # no folder can hold the cache
        machine = numba.njit(error_model="numpy")(plain)
    return machine

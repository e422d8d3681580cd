"""Loops over numbers, compiled to machine code by numba."""

from collections.abc import Callable
from inspect import unwrap
from typing import ParamSpec, TypeVar

import numba

Given = ParamSpec("Given")
Found = TypeVar("Found")


def compiled(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """The same function as machine code, made at its first call with each kind of argument and kept on disk.

    It is kept in `__pycache__` beside the file, or in the user's own cache folder where that cannot be written. Names
    outside the function are constants from then on. Numbers are numpy's: no fast-math, and x / 0 is infinite.
    """
    plain = unwrap(function)  # while tests run, functions are wrapped to check their shapes
    try:
        kept: Callable[Given, Found] = numba.njit(cache=True, error_model="numpy")(plain)
    except RuntimeError:  # there is no folder to keep it in
        kept = numba.njit(error_model="numpy")(plain)
    return kept

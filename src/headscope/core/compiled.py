"""Compilation of numerical loops to machine code, with numba."""

from collections.abc import Callable
from inspect import unwrap
from typing import Any, NoReturn, ParamSpec, TypeVar

from headscope.core.errors import MissingExtra, require_package

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def require_compiler(purpose: str) -> Any:
    """Import numba, or raise MissingExtra with the command that installs it."""
    return require_package("numba", "compiled", purpose)


def compiled(
    function: Callable[Arguments, Result], *, fused: bool = False, inline: bool = False
) -> Callable[Arguments, Result]:
    """Compile a function at its first call with each argument type, and cache the machine code on disk.

    The cache is `__pycache__` beside the file, or the user's cache folder where that is not writable. Global names are
    constants in compiled code. Arithmetic is numpy's: no fast-math, and x / 0 is infinite. Other threads run meanwhile.
    With `fused`, a·b + c is rounded once where the processor can, which is faster, and differs in the last bit.
    With `inline`, the code becomes part of the compiled functions that call it, without counting references to arrays,
    which can take longer than a short loop itself: for parts of a function that allocate nothing, in the same file.
    Without numba, which is an extra, the function can be imported, and a call raises MissingExtra.
    """
    plain = unwrap(function)  # during tests, functions are wrapped to check their shapes
    try:
        numba = require_compiler("A compiled function")
    except MissingExtra:
        return _refuse
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"} if fused else False}
    if inline:
        inlined: Callable[Arguments, Result] = numba.njit(forceinline=True, _nrt=False, **options)(plain)
        return inlined
    try:
        machine: Callable[Arguments, Result] = numba.njit(cache=True, **options)(plain)
    except RuntimeError:  # no folder can hold the cache
        machine = numba.njit(**options)(plain)
    return machine


def _refuse(*_: Any, **__: Any) -> NoReturn:
    require_compiler("A compiled function")
    raise MissingExtra("numba was installed after this function was imported. Start Python again.")

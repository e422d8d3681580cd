"""Compiled functions give what the plain ones give."""

import subprocess
import sys

import numpy as np
import pytest

from headscope.core.compiled import compiled
from headscope.core.errors import MissingExtra


def total(numbers: np.ndarray) -> float:
    found = 0.0
    for each in numbers:
        found += each
    return found


def test_a_compiled_function_gives_the_same():
    numbers = np.random.default_rng(0).standard_normal(100)
    assert compiled(total)(numbers) == total(numbers)


def test_no_folder_to_keep_it_in_is_no_failure():
    place = {}
    exec("def double(number): return 2 * number", place)  # belongs to no file
    assert compiled(place["double"])(21) == 42


def test_division_by_zero_is_infinite_as_in_numpy():
    assert compiled(lambda number: 1 / number)(0.0) == np.inf


def test_fused_products_differ_in_the_last_bit_at_most():
    numbers = np.random.default_rng(0).standard_normal(100)

    def polynomial(x: np.ndarray) -> np.ndarray:
        return (0.3 * x + 0.7) * x - 1.1

    assert np.allclose(compiled(polynomial, fused=True)(numbers), polynomial(numbers), rtol=1e-14, atol=1e-15)


def test_what_needs_no_compiler_does_not_load_it():
    code = "import sys, headscope.effective.causal, headscope.lenses.effective; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_the_compiler_a_call_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    function = compiled(total)
    with pytest.raises(MissingExtra, match=r"needs the package numba, .* pip install 'headscope\[compiled\]'"):
        function(np.zeros(3))


def test_an_inlined_function_is_part_of_what_calls_it():
    part = compiled(total, inline=True)

    def mean(numbers: np.ndarray) -> float:
        return part(numbers) / len(numbers)

    numbers = np.random.default_rng(0).standard_normal(100)
    assert compiled(mean)(numbers) == total(numbers) / 100

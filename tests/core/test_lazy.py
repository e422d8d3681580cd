"""Fields that are computed on first access."""

import copy
import pickle
from dataclasses import dataclass, replace

import pytest

from headscope.core.lazy import LazyFields

calls = []


@dataclass(frozen=True)
class Square(LazyFields):
    side: int
    area: int


def area(square):
    calls.append(square.side)
    return square.side**2


def test_a_lazy_field_is_computed_once_and_only_when_asked_for():
    calls.clear()
    square = Square.lazy(side=3, area=area)
    assert square.side == 3
    assert calls == []
    assert (square.area, square.area, calls) == (9, 9, [3])


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda square: pickle.loads(pickle.dumps(square)), replace]
)
def test_copies_hold_values_and_no_functions(copied):
    square = copied(Square.lazy(side=3, area=lambda square: square.side**2))
    assert vars(square) == {"side": 3, "area": 9}


def test_lazy_and_plain_objects_compare_and_print_alike():
    assert Square.lazy(side=3, area=area) == Square(3, 9)
    assert repr(Square.lazy(side=3, area=area)) == "Square(side=3, area=9)"


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'Square' object has no attribute 'volume'"):
        _ = Square.lazy(side=3, area=area).volume

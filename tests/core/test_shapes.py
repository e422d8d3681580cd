"""Tensors of a wrong shape are an error while tests run."""

import os

import pytest
import torch
from jaxtyping import TypeCheckError

from headscope.effective.projection import move_to_front
from tests.shapes import find_annotated

plain = pytest.mark.skipif("HEADSCOPE_TEST_PLAIN" in os.environ, reason="run without HEADSCOPE_TEST_PLAIN")


@plain
def test_a_wrong_shape_or_type_of_a_tensor_is_an_error():
    move_to_front(torch.ones(2, 3, dtype=torch.bool), 2)
    with pytest.raises(TypeCheckError):
        move_to_front(torch.ones(3, dtype=torch.bool), 2)
    with pytest.raises(TypeCheckError):
        move_to_front(torch.ones(2, 3), 2)


def test_modules_with_shapes_are_checked_and_no_others():
    modules = set(find_annotated("headscope"))
    assert {"headscope.core.trace", "headscope.effective.projection"} <= modules
    assert "headscope.core.errors" not in modules

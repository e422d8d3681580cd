"""Check shapes while tests run, and keep tests offline."""

import os
import tempfile
from importlib.util import find_spec

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HEADSCOPE_CACHE"] = tempfile.mkdtemp(prefix="headscope-")  # not the cache of the user

from jaxtyping import install_import_hook

if find_spec("beartype") and "HEADSCOPE_TEST_PLAIN" not in os.environ:  # a development dependency
    install_import_hook("headscope", "beartype.beartype")

import pytest
import torch

torch.set_num_threads(int(os.environ.get("HEADSCOPE_TEST_THREADS", "1")))  # tests run in two processes on two cores


LONG = ("test_generated_figures_and_tables_are_up_to_date", "test_numerical_tests_pass_under_other_rounding")
"""Tests that take a minute or more. They run first, so that at the end no process waits for one of them."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.name.startswith(LONG))


@pytest.fixture(scope="session")
def minilm():
    """Return the pretrained default model."""
    from headscope.engine.load import load

    return load()

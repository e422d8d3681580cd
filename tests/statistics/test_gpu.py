"""On a GPU every statistic gives the same, and never makes the host wait."""

import warnings
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from headscope.core.catalog import lenses, statistics
from headscope.core.spec import to_spec
from tests.batches import capture_tiny, make_example
from tests.gpu import gpu

pytestmark = gpu


def moved(maps):
    """The same maps on the GPU; tokens stay with the host."""
    tables = {name: each.cuda() for name, each in maps.diagnostics.items()}
    return replace(
        maps, parts=[each.cuda() for each in maps.parts], visible=[each.cuda() for each in maps.visible],
        diagnostics=tables,
    )  # fmt: skip


@contextmanager
def no_waiting():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls this mode a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("kind", statistics.names())
def test_a_gpu_gives_the_same_and_nobody_waits_for_it(kind):
    statistic = statistics.make(kind)
    names = dict.fromkeys(["effective", *map(to_spec, statistic.lenses(lenses.make("effective")))])
    here = capture_tiny("bert", "self", list(names), "effective")
    texts = tuple(replace(make_example(each.text.split(), 0), id=each.id) for each in here.examples)
    here = replace(here, examples=texts)
    there = replace(here, maps={key: moved(maps) for key, maps in here.maps.items()})
    with no_waiting():
        found = statistic.values(there)
    for name, wanted in statistic.values(here).items():
        torch.testing.assert_close(found[name].cpu(), wanted, equal_nan=True, rtol=1e-5, atol=1e-5)

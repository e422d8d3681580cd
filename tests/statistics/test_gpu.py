"""On a GPU every statistic gives the same values without synchronising with the host."""

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


def to_gpu(maps):
    """Return the maps on the GPU; tokens stay on the host."""
    tables = {name: each.cuda() for name, each in maps.diagnostics.items()}
    return replace(
        maps,
        parts=[each.cuda() for each in maps.parts],
        visible=[each.cuda() for each in maps.visible],
        diagnostics=tables,
    )


@contextmanager
def forbid_synchronisation():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls this mode a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("kind", statistics.names())
def test_a_gpu_gives_the_same_values_without_synchronisation(kind):
    statistic = statistics.make(kind)
    names = dict.fromkeys(["effective", *map(to_spec, statistic.lenses(lenses.make("effective")))])
    on_cpu = capture_tiny("bert", "self", list(names), "effective")
    texts = tuple(replace(make_example(each.text.split(), 0), id=each.id) for each in on_cpu.examples)
    on_cpu = replace(on_cpu, examples=texts)
    on_gpu = replace(on_cpu, maps={key: to_gpu(maps) for key, maps in on_cpu.maps.items()})
    with forbid_synchronisation():
        values = statistic.values(on_gpu)
    for name, expected in statistic.values(on_cpu).items():
        torch.testing.assert_close(values[name].cpu(), expected, equal_nan=True, rtol=1e-5, atol=1e-5)

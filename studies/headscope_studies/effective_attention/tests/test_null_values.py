"""What random values change, and how often the model's go further."""

import numpy as np
import pytest
import xarray as xr

from headscope.core.provenance import stamp
from headscope_studies.effective_attention.pages.null_values import NullValues

NAMES = ("dispersion", "sink", "sep", "cls", "distance")


def results(own, random, margin=0.01):
    """Results of one model on two tasks: raw 0.5, and these changes with the model's and with random values."""
    lenses, dims = ["raw", "effective", "random"], ("length", "model", "task", "lens")
    changes = np.stack([np.zeros(2), own, random], -1)[None, None].repeat(2, 0)
    beyond = changes[..., 1] - changes[..., 2]
    variables = {"n": (dims[:3], np.array([[[30, 20]], [[12, 4]]]))}
    for name in NAMES:
        for end, shift in (("", 0), ("_low", -margin), ("_high", margin)):
            variables[f"{name}{end}"] = (dims, 0.5 + changes + shift)
            variables[f"{name}_change{end}"] = (dims, changes + shift)
            variables[f"{name}_beyond{end}"] = (dims[:3], beyond + shift)
    coords = {"length": ["all", "more than d"], "model": ["m"], "task": ["RTE", "SST-2"], "lens": lenses}
    facts = {"weights_hash": {"m": "0123456789abcdef"}, "data": "fedc", "command": "made", "max_length": 128}
    return NullValues(stamp(xr.Dataset(variables, coords), **facts))


def test_changes_are_in_nats_and_in_per_cent_of_the_raw_weight():
    null = results([-0.4, -0.1], [-0.2, 0.1])
    assert null.changes("dispersion", "effective") == pytest.approx([-0.4, -0.1])
    assert null.changes("dispersion", "random") == pytest.approx([-0.2, 0.1])
    assert null.changes("sink", "effective") == pytest.approx([-80, -20])
    assert null.changes("sink", "random") == pytest.approx([-40, 20])


def test_inputs_are_counted_by_task_and_length():
    null = results([-0.4, -0.1], [-0.2, 0.1])
    assert (null.count_inputs("RTE", "all"), null.count_inputs("SST-2", "more than d")) == ([30], [4])


def test_the_table_has_every_quantity_of_every_pair():
    table = results([-0.4, -0.1], [-0.2, 0.1]).table()
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(NAMES) * 2
    assert (
        "| weight on [SEP] | m | RTE | 0.500 [0.490, 0.510] | 0.100 [0.090, 0.110] | 0.300 [0.290, 0.310] | " in table
    )
    assert "| −0.200 [−0.210, −0.190] |" in table


def test_a_difference_that_rounds_to_nothing_has_no_minus():
    assert "| +0.000 [−0.010, +0.010] |" in results([-0.2, 0.1], [-0.1999, 0.1]).table()

"""The sentences and the table on random values say what the numbers say, whatever these are."""

import numpy as np
import pytest
import xarray as xr

from headscope.core.provenance import stamp
from headscope_studies.effective_attention.pages import null_values

NAMES = ("dispersion", "sink", "sep", "cls", "distance")


@pytest.fixture(scope="module")
def page():
    return null_values


def made(own, random, margin=0.01):
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
    return stamp(xr.Dataset(variables, coords), **facts)


@pytest.mark.parametrize(
    ("own", "random", "further"),
    [
        ([-0.4, -0.1], [-0.2, -0.1], [True, False]),  # further; as far
        ([0.4, 0.1], [0.2, 0.3], [True, False]),  # further; less far
        ([0.1, -0.1], [-0.1, 0.1], [True, True]),  # the other way
        ([0.005, -0.005], [-0.3, 0.3], [False, False]),  # no change with the model's values
    ],
)
def test_going_further_needs_a_change_and_a_difference_on_the_same_side(page, own, random, further):
    data = made(own, random)
    assert page.find_further(data.sel(length="all"), "sink").values.ravel().tolist() == further
    assert page.describe_null_values(data).count(f"[{sum(further)} of 2]") == 4


def test_changes_are_in_nats_and_in_per_cent_of_the_raw_weight(page):
    text = page.describe_null_values(made([-0.4, -0.1], [-0.2, 0.1]))
    assert "dispersion −0.40 to −0.10 nats, with random values −0.20 to +0.10 nats [2 of 2]" in text
    assert "the weight on the sink −80 to −20 %, with random values −40 to +20 % [2 of 2]" in text


def test_the_table_has_every_quantity_of_every_pair(page):
    table = page.null_values_table(made([-0.4, -0.1], [-0.2, 0.1]))
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(NAMES) * 2
    assert (
        "| weight on [SEP] | m | RTE | 0.500 [0.490, 0.510] | 0.100 [0.090, 0.110] | 0.300 [0.290, 0.310] | " in table
    )
    assert "| −0.200 [−0.210, −0.190] |" in table
    assert "(12 of more than d tokens) and 20 of SST-2 (4 of more than d tokens), cut to 128 tokens." in table


def test_a_difference_that_rounds_to_nothing_has_no_minus(page):
    assert "| +0.000 [−0.010, +0.010] |" in page.null_values_table(made([-0.2, 0.1], [-0.1999, 0.1]))

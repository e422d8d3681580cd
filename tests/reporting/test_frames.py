"""A Dataset as a table."""

import numpy as np
import xarray as xr

from headscope.reporting.frames import TableColumn, to_frame

ROWS = {"task": "task", "lens": "attention"}


def data():
    share = np.array([[0.25, 0.5], [0.75, np.nan]])
    dims = ("task", "lens")
    variables = {"share": (dims, share), "share_low": (dims, share - 0.1), "share_high": (dims, share + 0.1)}
    variables |= {"metric": ("task", ["accuracy", "pearson"]), "n": (("length", "task"), [[3, 4], [1, 0]])}
    coords = {"task": ["RTE", "STS-B"], "lens": ["raw", "effective"], "length": ["all", "short"]}
    return xr.Dataset(variables, coords)


def test_a_quantity_has_its_interval_and_scale():
    frame = to_frame(data(), ROWS, [TableColumn("share (%)", "share", scale=100)])
    assert list(frame.columns) == ["share (%)", "share (%)_low", "share (%)_high"]
    assert frame.index.names == ["task", "attention"]
    assert frame.loc[("RTE", "effective")].tolist() == [50.0, 40.0, 60.0]
    assert ("STS-B", "effective") not in frame.index  # it has no value


def test_a_quantity_without_a_dimension_is_repeated_along_it():
    frame = to_frame(data(), ROWS, [TableColumn("metric", "metric"), TableColumn("share", "share", interval=False)])
    assert frame["metric"].tolist() == ["accuracy", "accuracy", "pearson", "pearson"]
    assert list(frame.columns) == ["metric", "share"]


def test_counts_are_whole_numbers_and_may_be_missing():
    counted = data().assign(n=data()["n"].where(data()["n"] > 0))
    frame = to_frame(counted, {"task": "task"}, [TableColumn("short", "n", {"length": "short"}, whole=True)])
    assert frame["short"].tolist() == [1]
    both = [
        TableColumn("all", "n", {"length": "all"}, whole=True),
        TableColumn("short", "n", {"length": "short"}, whole=True),
    ]
    assert to_frame(counted, {"task": "task"}, both)["short"].isna().tolist() == [False, True]

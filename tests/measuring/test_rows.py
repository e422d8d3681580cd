"""The values of single examples: in the order of the data, with id, text and label."""

from functools import cache, reduce
from itertools import islice

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.core.example import Example, example_coordinates, tabulate_examples
from headscope.measuring import ray
from headscope.measuring.checkpoint import Checkpoint, add_states, read_checkpoint, write_checkpoint
from headscope.measuring.job import prepare_job
from headscope.measuring.settings import make_measure_settings
from tests.models import text, tiny

DATA = [
    Example(str(index), text(2 + index * 7 % 11, seed=index), None, None, index % 2, {"label_name": "ab"[index % 2]})
    for index in range(13)
]  # as strings, '10' sorts before '2'
IDS = [example.id for example in DATA]


def measured(data=DATA, **options):
    settings = {"lens": ["raw", "effective"], "statistics": ["entropy", "peak"], "batch_size": 3, "rows": True}
    return hs.measure(tiny("bert"), data, progress=False, **settings | options)


@cache
def single_value(text):
    """The entropy of every head over one text, measured alone."""
    return measured([text], lens="raw", statistics="entropy")["entropy"].values.ravel()


def check_order(result, data):
    assert list(result["example"].values) == [example.id for example in data]
    assert list(result["text"].values) == [example.text for example in data]
    assert list(result["label"].values) == [example.label for example in data]
    assert list(result["label_name"].values) == [example.columns["label_name"] for example in data]
    rows = result["entropy_rows"].sel(lens="raw").transpose("example", ...)
    assert {"example", "text", "label"} <= set(rows.coords)
    alone = [single_value(example.text) for example in data]
    np.testing.assert_allclose(rows.values.reshape(len(data), -1), alone, atol=1e-5)  # padding, float32


def test_rows_are_in_the_order_of_the_data_with_texts_and_labels(tmp_path):
    result = measured(out=tmp_path / "a.nc")
    check_order(result, DATA)
    reverse = DATA[::-1]
    check_order(measured(reverse, batch_size=None), reverse)
    xr.testing.assert_identical(hs.open_result(tmp_path / "a.nc"), result)


def test_a_sample_keeps_the_order_of_the_data():
    result = measured(limit=6, seed=3)
    chosen = set(result["example"].values)
    assert len(chosen) == 6
    check_order(result, [example for example in DATA if example.id in chosen])


def test_merged_shards_have_the_order_of_the_data(tmp_path):
    paths = [tmp_path / f"{part}.state" for part in (1, 2, 3)]
    for part, path in enumerate(paths, 1):
        measured(shard=(part, 3), out=path)
    merged = hs.merge(*paths[::-1])
    check_order(merged, DATA)
    hs.save(merged, tmp_path / "all.nc")
    xr.testing.assert_identical(hs.open_result(tmp_path / "all.nc"), merged)


def states_after(done):
    settings = make_measure_settings(["raw", "effective"], ["entropy", "peak"], batch_size=3, rows=True)
    job = prepare_job(tiny("bert"), DATA, settings)
    return reduce(add_states, job.observe(islice(job.plan.batches(), done // 3)), {})


@pytest.mark.parametrize("done", [0, 6, 13])
def test_a_resumed_run_has_the_order_of_the_data(tmp_path, done):
    path = tmp_path / "a.state"
    whole = measured(out=path)
    finished = read_checkpoint(path)
    assert finished.total == 13
    if done < 13:  # as it was after some of the batches
        write_checkpoint(Checkpoint(finished.facts, done, 13, states_after(done)), path)
    resumed = measured(out=path, resume=True)
    check_order(resumed, DATA)
    xr.testing.assert_identical(resumed, whole)


def test_rows_of_other_processes_have_the_order_of_the_data(monkeypatch):
    def distribute(job, workers):  # as `measuring.ray` does: states come back as bytes, in the order of the plan
        worker = ray._Worker.__new__(ray._Worker)
        worker.observer = job.observer
        done = {batch.positions: worker.observe(batch.examples) for batch in reversed(list(job.plan.batches()))}
        return lambda batches: (Checkpoint.from_bytes(done[batch.positions]).states for batch in batches)

    monkeypatch.setattr(ray, "distribute", distribute)
    check_order(measured(engine="ray", workers=2), DATA)


def test_states_of_an_older_version_still_merge(tmp_path):
    paths = [tmp_path / f"{part}.state" for part in (1, 2)]
    for part, path in enumerate(paths, 1):
        measured(shard=(part, 2), out=path)
        new = read_checkpoint(path)
        write_checkpoint(Checkpoint(new.facts, new.done, new.total, new.states), path)  # without the examples
    assert sorted(hs.merge(*paths)["example"].values) == sorted(IDS)


def test_without_rows_no_text_is_stored(tmp_path):
    result = measured(rows=False, out=tmp_path / "a.state")
    assert not {"example", "text", "label"} & set(result.coords)
    assert not read_checkpoint(tmp_path / "a.state").examples


def test_missing_fields_are_nan_or_empty_and_characters_fit_into_a_file(tmp_path):
    numpy_label = Example.lazy(id="a", text="one\0two", label=np.int64(3), columns={})
    data = [numpy_label, Example("b", "lone \ud800", pair="x"), Example("c", "three")]
    table = tabulate_examples(data)
    assert table["label"] == [3, None, None]
    assert "label_name" not in table
    stored = Checkpoint.from_bytes(Checkpoint({}, 0, 0, {}, table).to_bytes()).examples
    coords = example_coordinates(stored)
    np.testing.assert_array_equal(coords["label"][1], [3, np.nan, np.nan])
    assert list(coords["pair"][1]) == ["", "x", ""]
    written = xr.Dataset(coords=coords).assign_attrs(headscope="{}")
    xr.testing.assert_identical(hs.open_result(hs.save(written, tmp_path / "a.nc")), written)

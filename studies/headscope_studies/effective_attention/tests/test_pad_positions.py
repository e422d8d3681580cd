"""What padding does where all of it has one position, and where its positions are distinct."""

import argparse
from copy import deepcopy

import numpy as np
import pytest

import headscope as hs
from headscope.core.provenance import read_provenance, stamp
from headscope.results.npz import write_npz
from headscope_studies.effective_attention.runs import pad_positions
from tests.measuring.data import examples
from tests.models import network, tokenizer


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    padding = deepcopy(tokenizer())
    padding.pad_token = "[UNK]"  # the id from which MPNet counts positions
    model = hs.load(network("mpnet"), tokenizer=padding)
    return pad_positions.measure_task(model, examples(9), tmp_path_factory.mktemp("work"), width=40)


def test_only_attention_that_padding_takes_part_in_depends_on_its_positions(measured):
    distance = measured["distance"].sel(length="all")
    assert abs(float(distance.sel(lens="raw, distinct"))) < 1e-6
    for name in pad_positions.PADDED:
        assert abs(float(distance.sel(lens=name) - distance.sel(lens=f"{name}, distinct"))) > 1e-3
    weight = measured["sep"].sel(length="all")
    np.testing.assert_allclose(weight.sel(lens="raw"), weight.sel(lens="raw, distinct"), atol=1e-6)


def test_tasks_of_several_processes_are_joined_in_order(measured, tmp_path):
    for task in ("SST-2", "RTE"):
        part = stamp(measured.expand_dims(task=[task]), data=task, n=9, model="tiny")
        write_npz(part, tmp_path / f"{task}.npz")
    paths = [tmp_path / f"{task}.npz" for task in ("SST-2", "RTE")]
    pad_positions.join(argparse.Namespace(paths=paths, out=tmp_path / "all.nc"))
    whole = hs.open_result(tmp_path / "all.nc")
    assert whole["task"].values.tolist() == ["RTE", "SST-2"]
    assert read_provenance(whole)["n"] == 18

"""Saved maps say which model, version and lens they come from."""

import gc
import pickle

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.core.errors import InputError, OutputError
from headscope.core.provenance import read_provenance
from headscope.engine.fingerprint import fingerprint_model
from tests.models import network, tiny, tokenizer

TEXTS = ["the cat sat", "the dog ran fast over the hill"]


@pytest.fixture(scope="module")
def trace():
    return hs.capture(tiny("bert"), TEXTS)


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_saved_maps_come_back_with_their_provenance(trace, ending, tmp_path):
    maps = hs.view(trace, "effective:keys=visible")
    data = hs.open_result(hs.save(maps, tmp_path / f"maps.{ending}"))
    xr.testing.assert_equal(data, maps.to_dataset())
    facts = read_provenance(data)
    assert facts["model"] == tiny("bert").spec
    assert facts["version"] == hs.__version__
    assert facts["lenses"] == [maps.lens]
    assert facts["weights_hash"] == tiny("bert").weights_hash
    assert facts["tokenizer_hash"] == fingerprint_model(tiny("bert"))["tokenizer_hash"]
    assert (facts["n"], facts["site"], facts["dtype"]) == (2, "self", "float32")


def test_several_lenses_of_one_trace_are_saved_together(trace, tmp_path):
    data = hs.open_result(hs.save([hs.view(trace, "raw"), hs.view(trace, "effective")], tmp_path / "maps.nc"))
    assert data["lens"].values.tolist() == read_provenance(data)["lenses"] == ["raw", "effective"]
    np.testing.assert_array_equal(
        data["weights"].sel(lens="raw")[0, :, :, :5, :5], hs.view(trace, "raw").weights[0][..., :5, :5]
    )


def test_one_example_as_a_dataset_names_the_model_too(trace, tmp_path):
    facts = read_provenance(hs.open_result(hs.save(hs.view(trace, "raw").dataset(1), tmp_path / "maps.nc")))
    assert (facts["model"], facts["lenses"], facts["version"]) == (tiny("bert").spec, ["raw"], hs.__version__)


def test_maps_of_an_edited_model_say_so(tmp_path):
    with hs.edited(tiny("bert"), "effective_attention") as changed:
        maps = hs.view(hs.capture(changed, TEXTS), "raw")
    assert read_provenance(maps.to_dataset())["model"] == f"{tiny('bert').spec} with effective_attention"


def test_a_model_that_was_trained_after_the_capture_is_not_hashed():
    model = hs.load(network("bert"), tokenizer=tokenizer())
    maps = hs.view(hs.capture(model, TEXTS), "raw")
    with torch.no_grad():
        next(model.network.parameters()).mul_(2)
    facts = maps.source.describe()
    assert facts["weights"] == "changed after the capture"
    assert "weights_hash" not in facts


def test_maps_do_not_keep_their_model_in_memory():
    maps = hs.view(hs.capture(hs.load(network("bert"), tokenizer=tokenizer()), TEXTS, keep="values"), "raw")
    gc.collect()
    assert maps.source._network() is None
    assert set(maps.source.describe()) == {"version", "model"}


def test_maps_from_another_process_keep_their_provenance(trace):
    maps = pickle.loads(pickle.dumps(hs.view(trace, "raw")))
    assert maps.source.describe()["weights_hash"] == tiny("bert").weights_hash


def test_maps_of_bare_tensors_are_saved_without_a_model(tmp_path):
    maps = hs.view(hs.Trace.of([torch.full((1, 2, 3, 3), 1 / 3)], ["a", "b", "c"]), "raw")
    facts = read_provenance(hs.open_result(hs.save(maps, tmp_path / "maps.nc")))
    assert (facts["version"], facts["lenses"]) == (hs.__version__, ["raw"])
    assert "model" not in facts


def test_maps_are_not_saved_as_tables(trace, tmp_path):
    with pytest.raises(
        OutputError, match=r"Maps are saved as \.nc \.zarr \.html, but 'maps\.csv' ends in '\.csv'\. Change"
    ):
        hs.save(hs.view(trace, "raw"), tmp_path / "maps.csv")
    with pytest.raises(
        InputError,
        match="Only a Dataset, Maps, Importances, examples, a model or a matplotlib figure can be saved, but got "
        "a list",
    ):
        hs.save([hs.view(trace, "raw"), 1], tmp_path / "maps.nc")


def test_maps_of_different_models_are_not_saved_under_the_name_of_one(trace, tmp_path):
    torch.manual_seed(1)
    other = hs.load(network("bert"), tokenizer=tokenizer())
    with torch.no_grad():
        next(other.network.parameters()).mul_(2)
    maps = [hs.view(trace, "raw"), hs.view(hs.capture(other, TEXTS), "effective")]
    with pytest.raises(InputError, match="These maps are of different models"):
        hs.save(maps, tmp_path / "maps.nc")

import numpy as np
import pytest

from headscope.core.errors import InputError, UnknownName
from headscope_patterns.labels.labelled_maps import (
    decode_weights,
    encode_weights,
    read_labelled_maps,
    save_labels,
    save_maps,
)
from headscope_patterns.tests.labelled_set import make_labelled_set


@pytest.fixture
def labelled():
    return make_labelled_set(12, tokens=(6, 12))


@pytest.fixture
def folder(labelled, tmp_path):
    save_maps(labelled.maps, tmp_path)
    save_labels(labelled.passes, tmp_path)
    return tmp_path


def test_saved_maps_and_labels_are_read_back(labelled, folder):
    restored = read_labelled_maps(folder)
    assert [item.source for item in restored.maps] == [item.source for item in labelled.maps]
    assert restored.passes == labelled.passes
    for copy, original in zip(restored.maps, labelled.maps, strict=True):
        peak = np.abs(original.weights).max()
        assert np.abs(copy.weights - original.weights).max() < peak / 127  # one byte per root


def test_one_byte_per_weight_keeps_signs_and_zeros():
    assert decode_weights(*encode_weights(np.array([[-0.25, 1.0]])))[0, 0] == pytest.approx(-0.25, abs=0.01)
    assert decode_weights(*encode_weights(np.zeros((2, 2)))).tolist() == [[0, 0], [0, 0]]


def test_a_pass_selects_the_maps_labelled_in_it(labelled):
    maps, labels = labelled.select("second")
    assert len(maps) == len(labels) == 6
    with pytest.raises(UnknownName, match="No pass is called 'third'"):
        labelled.select("third")


def test_an_invalid_folder_raises(folder, tmp_path_factory):
    with pytest.raises(InputError, match=r"is not a folder of labelled maps: it has no maps.tsv"):
        read_labelled_maps(tmp_path_factory.mktemp("empty"))
    save_labels({"first": {"nobody": "block"}}, folder)
    with pytest.raises(InputError, match="has a label for the map 'nobody', which is not in maps.tsv"):
        read_labelled_maps(folder)
    save_labels({"first": {"s0001": "blok"}}, folder)
    with pytest.raises(UnknownName, match="No pattern class is called 'blok'. Did you mean 'block'"):
        read_labelled_maps(folder)


def test_damaged_maps_raise(folder):
    content = (folder / "maps.npz").read_bytes()
    for damaged in (b"", content[:200], content[:90] + b"?" + content[91:]):
        (folder / "maps.npz").write_bytes(damaged)
        with pytest.raises(
            InputError, match=r"maps\.npz: it does not hold the maps of this folder, or it is damaged\."
        ):
            read_labelled_maps(folder)

import numpy as np
import pytest

from headscope.core.errors import InputError, UnknownName
from headscope.patterns.labels.labelled import decoded, encoded, open_labelled, save_labels, save_maps
from tests.patterns.synthetic import synthetic


@pytest.fixture
def folder(tmp_path):
    held = synthetic(12, tokens=(6, 12))
    save_maps(held.maps, tmp_path)
    save_labels(held.passes, tmp_path)
    return held, tmp_path


def test_maps_and_labels_come_back_from_a_folder(folder):
    held, place = folder
    found = open_labelled(place)
    assert [each.source for each in found.maps] == [each.source for each in held.maps]
    assert found.passes == held.passes
    for one, other in zip(found.maps, held.maps, strict=True):
        largest = np.abs(other.weights).max()
        assert np.abs(one.weights - other.weights).max() < largest / 127  # one byte, by the root


def test_one_byte_keeps_signs_and_an_empty_map():
    codes, peak = encoded(np.array([[-0.25, 1.0]]))
    assert decoded(codes, peak)[0, 0] == pytest.approx(-0.25, abs=0.01)
    assert decoded(*encoded(np.zeros((2, 2)))).tolist() == [[0, 0], [0, 0]]


def test_the_maps_of_a_pass_are_those_it_has_labelled(folder):
    held, _ = folder
    maps, labels = held.chosen("second")
    assert len(maps) == len(labels) == 6
    with pytest.raises(UnknownName, match="No pass is called 'third'"):
        held.chosen("third")


def test_what_is_wrong_with_a_folder_is_said(folder, tmp_path_factory):
    _, place = folder
    with pytest.raises(InputError, match=r"is no folder of labelled maps: it holds no maps.tsv"):
        open_labelled(tmp_path_factory.mktemp("empty"))
    save_labels({"first": {"nobody": "block"}}, place)
    with pytest.raises(InputError, match="has a label for the map 'nobody', which maps.tsv does not have"):
        open_labelled(place)
    save_labels({"first": {"s0001": "blok"}}, place)
    with pytest.raises(UnknownName, match="No pattern class is called 'blok'. Did you mean 'block'"):
        open_labelled(place)

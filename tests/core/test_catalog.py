"""Find catalog entries by name, including those of other packages."""

import sys
from pathlib import Path

import pytest
import torch

from headscope.core.batch import Batch
from headscope.core.catalog import Catalog, catalogs, lenses, statistics
from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.lenses.effective import Effective
from tests.pip import pip

EXTERNAL = Path(__file__).parents[1] / "external"


@pytest.fixture(scope="module")
def external(tmp_path_factory):
    """The sample package, really built and installed, beside this environment."""
    folder = tmp_path_factory.mktemp("site")
    pip("install", "--target", folder, EXTERNAL)
    sys.path.append(str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.mark.parametrize("folder", catalogs)
def test_every_file_of_a_catalog_holds_the_class_it_is_named_after(folder):
    catalog = catalogs[folder]
    assert catalog.names()
    for name in catalog.names():
        assert catalog.find(name).__doc__


def test_an_entry_comes_from_a_name_a_spec_a_class_or_itself():
    entry = Effective("paper")
    assert lenses.make("effective") == lenses.make(Effective) == Effective()
    assert lenses.make("effective:keys=paper") == lenses.make("effective", keys="paper") == lenses.make(entry) == entry


def test_parameters_cannot_be_set_on_an_instance():
    made = r"Effective\(keys='visible', values='model'\)"
    with pytest.raises(InputError, match=rf"keys cannot be set on {made}, which is made already"):
        lenses.make(Effective(), keys="paper")


def test_a_lens_of_another_package_works_like_any_other(external):
    assert "halved" in lenses.names()
    trace = Trace.of([torch.full((1, 1, 2, 2), 0.5)], ["a", "b"])
    maps = view(trace, "halved:by=4")
    assert maps.lens == "halved:by=4.0"
    assert maps.weights.unique().tolist() == [0.125]


def test_a_statistic_of_another_package_works_like_any_other(external):
    statistic = statistics.make("largest:times=2")
    maps = view(Trace.of([torch.full((3, 1, 2, 2), 0.5)], [["a", "b"]] * 3), "raw")
    result = statistic.finish(statistic.observe(Batch(maps.examples, {("model", "raw"): maps}, "raw")))
    assert result.largest.values.tolist() == [[1.0]]
    assert result.largest_n.values.tolist() == [[3]]


def test_a_catalog_file_without_its_class_is_an_error(tmp_path, monkeypatch):
    package = tmp_path / "broken"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "lonely.py").touch()
    import headscope

    monkeypatch.setattr(headscope, "__path__", [*headscope.__path__, str(tmp_path)])
    with pytest.raises(InputError, match=r"lonely\.py must hold a class 'Lonely'"):
        Catalog("thing", "broken").find("lonely")

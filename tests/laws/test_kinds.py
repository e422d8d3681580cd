"""Every kind of result has a sentence with its n, tables and a figure, and survives a file."""

import re
from pathlib import Path

import pytest
import xarray as xr

from headscope.core.catalog import figures, kinds
from headscope.core.document import SectionContext
from headscope.core.kind import find_kind
from headscope.core.provenance import read_provenance, stamp
from headscope.core.spec import entry_name
from headscope.plotting.draw import draw
from headscope.plotting.export import render
from headscope.results.compare import compare
from headscope.results.store import open_result, save
from tests.figures import data as results


def make_head_importance():
    measured = results.measured()[["entropy", "entropy_low", "entropy_high", "entropy_n"]].isel(lens=0, drop=True)
    names = {name: str(name).replace("entropy", "head_importance") for name in measured.data_vars}
    return stamp(measured.rename(names), kind="head_importance", n=7)


MAKE = {
    "ablation": lambda: results.ablation("layer", "head"),
    "clustering": results.clustered,
    "comparison": lambda: compare(results.measured(), results.measured(seed=1), variable="entropy"),
    "cues": results.cues,
    "evaluation": results.evaluated,
    "faithfulness": results.judged,
    "head_importance": make_head_importance,
    "identifiability": results.intervals,
    "importances": results.importances,
    "maps": results.dataset,
    "measurement": results.measured,
    "numbers": lambda: stamp(xr.Dataset({"loss": ("run", [1.0, 2.0])}), n=2),
    "probe": results.probed,
    "pruning": lambda: results.pruning(by="importance", seeds=1),
    "score": results.scored,
    "study": lambda: results.studied(seeds=2),
    "typical_maps": results.typical,
}


@pytest.fixture(params=kinds.names())
def kind(request):
    return kinds.make(request.param)


@pytest.fixture
def data(kind):
    return MAKE[entry_name(type(kind))]()


def test_a_result_without_a_stamp_is_of_the_kind_that_it_fits(kind, data):
    named = {"study": read_provenance(data)["study"]} if entry_name(type(kind)) == "study" else {}
    foreign = stamp(data.drop_attrs(), **named)
    assert type(find_kind(foreign)) is type(kind)


def test_a_stamp_decides_where_the_variables_are_there(kind, data):
    assert type(find_kind(stamp(data, kind=entry_name(type(kind))))) is type(kind)
    assert type(find_kind(stamp(xr.Dataset({"loss": 1.0}), kind="ablation"))) is kinds.find("numbers")


def test_its_variables_are_declared_and_there(kind, data):
    assert kind.fits(data)
    assert set(kind.variables) <= {*data.variables, *data.dims}
    assert all(kind.variables.values())


def test_the_lead_is_one_sentence_with_a_number(kind, data):
    lead = kind.lead(data)
    assert lead.endswith(".")
    assert re.search(r"\d|\bone\b", lead), lead


def test_it_has_tables_and_its_figure_is_drawn(kind, data):
    assert kind.tables(data)
    name = kind.figure(data)
    assert name.partition(":")[0] in figures.names()
    if entry_name(type(kind)) != "numbers":  # which may be of any shape
        assert kind.figures(data)
        assert render(draw(data), "svg") == render(draw(data, name), "svg")


def test_tables_are_the_same_with_and_without_pictures(kind, data):
    sections, _ = kind.sections(data, SectionContext())
    names = [part.name for section in sections for part in section.parts if hasattr(part, "frame")]
    assert names == list(kind.tables(data))


def test_a_saved_and_reopened_result_shows_the_same(kind, data, tmp_path):
    data = stamp(data, kind=entry_name(type(kind)))
    again = open_result(save(data, tmp_path / "result.nc"))
    assert type(find_kind(again)) is type(kind)
    assert kind.lead(again) == kind.lead(data)
    for name, table in kind.tables(data).items():
        assert kind.tables(again)[name].frame.equals(table.frame)


COMMITTED = sorted(Path("studies/headscope_studies").glob("*/results/*.nc"))


@pytest.mark.parametrize("path", [path for path in COMMITTED if "_all-" not in path.stem], ids=lambda path: path.stem)
def test_every_committed_result_is_shown(path):
    data = open_result(path)
    kind = find_kind(data)
    assert re.search(r"\d|\bone\b", kind.lead(data))
    assert kind.tables(data) or entry_name(type(kind)) == "numbers"  # of which some are too many for a table


def test_a_study_from_before_the_stamp_is_known_by_its_provenance():
    main = [path for path in COMMITTED if path.stem == f"{path.parents[1].name}_e5-small"]
    assert len(main) == 6
    assert {entry_name(type(find_kind(open_result(path)))) for path in main} == {"study"}


def test_producers_stamp_the_kind():
    assert read_provenance(MAKE["comparison"]())["kind"] == "comparison"
    assert read_provenance(MAKE["clustering"]())["kind"] == "clustering"

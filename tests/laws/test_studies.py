"""Laws that hold for every study."""

import pytest
import xarray as xr

from headscope.core.catalog import studies
from headscope.core.document import Document, Picture, Table
from headscope.core.study import Study
from headscope.reporting.report import report
from headscope.results.stamp import provenance
from tests.studies.data import found, tiny

every = pytest.mark.parametrize("name", studies.names())


@every
def test_a_study_runs_on_a_tiny_model_and_its_result_is_stamped(name):
    made = tiny(name)
    assert isinstance(made, Study)
    facts = provenance(found(name)["numbers"])
    assert {"command", "study", "model", "weights_hash", "data", "n", "version"} <= set(facts)


@every
def test_a_study_run_again_gives_the_same_numbers(name):
    xr.testing.assert_identical(found(name)["numbers"], found(name, 1)["numbers"])


@every
def test_a_study_makes_a_report_in_which_everything_says_its_n(name, tmp_path):
    document = tiny(name).document(found(name))
    assert isinstance(document, Document)
    parts = [part for section in document.sections for part in section.parts if isinstance(part, Table | Picture)]
    assert parts
    for part in parts:
        assert part.n
        assert part.caption.endswith(".")
    page = report(document, tmp_path / "report")
    assert page.is_file()
    for part in parts:
        folder, ending = ("tables", "csv") if isinstance(part, Table) else ("figures", "pdf")
        assert (tmp_path / "report" / folder / f"{part.name}.{ending}").stat().st_size


@every
def test_a_study_names_its_papers(name):
    from headscope.data.references import bibtex

    assert bibtex(name).startswith("@")

"""Laws that hold for every study."""

import re
from io import BytesIO

import pytest
import xarray as xr

from headscope.core.catalog import studies
from headscope.core.document import Document, Paragraph, Picture, Table
from headscope.core.provenance import read_provenance
from headscope.core.study import Study
from headscope.reporting.latex_table import table_to_latex
from tests.study_data import found, tiny

every = pytest.mark.parametrize("name", studies.names())


@every
def test_a_study_runs_on_a_tiny_model_and_its_result_is_stamped(name):
    made = tiny(name)
    assert isinstance(made, Study)
    facts = read_provenance(found(name)["numbers"])
    assert {"command", "study", "model", "weights_hash", "data", "n", "version"} <= set(facts)


@every
def test_a_study_run_again_gives_the_same_numbers(name):
    xr.testing.assert_identical(found(name)["numbers"], found(name, 1)["numbers"])


@every
def test_a_study_makes_a_report_that_begins_with_its_verdicts_and_says_its_n(name):
    document = tiny(name).document(found(name))
    assert isinstance(document, Document)
    assert re.search(r"\d+ (inputs|\w+ examples|points|paragraphs|pairs)", document.lead), document.lead
    assert not re.search(r"undecided|holds?\b", document.lead)  # a grid says it better than counts
    assert next(part for part in document.sections[0].parts if not isinstance(part, Paragraph)).name == "verdict_grid"
    parts = [part for section in document.sections for part in section.parts if isinstance(part, Table | Picture)]
    assert {type(part) for part in parts} == {Table, Picture}
    for part in parts:
        assert part.n
        assert part.caption.endswith(".")
        if isinstance(part, Picture):
            file = BytesIO()
            part.figure.savefig(file, format="png", dpi=20)
            assert file.tell() > 500
        else:
            assert table_to_latex(part)


@every
def test_a_study_names_its_papers(name):
    from headscope.data.bundled.files import read_bibtex

    assert read_bibtex(name).startswith("@")

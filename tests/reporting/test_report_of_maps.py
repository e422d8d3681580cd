"""A report on maps of one or several texts."""

import pytest

from headscope.core.errors import InputError
from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.plotting.combine import combine_lenses
from headscope.reporting.report import build_document, report
from tests.models import text, tiny

TEXTS = [text(6), text(4, seed=1)]


@pytest.fixture(scope="module")
def trace():
    return capture(tiny("bert"), TEXTS, layers=1, heads=[0, 2])


def test_maps_of_several_texts_have_a_section_each(trace, tmp_path):
    page = report(view(trace, "effective"), tmp_path / "out")
    written = page.read_text(encoding="utf-8")
    assert all(f"example {row}: maps" in written and TEXTS[row] in written for row in range(2))
    assert "Attention maps of 2 texts, seen through" in written
    assert len(list((tmp_path / "out" / "figures").glob("*.pdf"))) == 2 * 3  # one head, every head, shares


def test_several_lenses_on_the_same_texts_are_one_result(trace):
    lenses = [view(trace, "raw"), view(trace, "effective")]
    data = combine_lenses([maps.to_dataset() for maps in lenses])
    (section, _) = build_document({"result": data}).sections
    assert section.title == "example 0: maps"
    assert section.parts[1].caption == "Raw attention, another lens, and their difference"


def test_maps_of_one_text_need_no_number():
    maps = view(capture(tiny("bert"), TEXTS[0]), "effective").sel(layer=-1, head=0)
    (section,) = build_document({"mine": maps.to_dataset()}).sections
    assert section.title == "Maps"


def test_maps_of_many_texts_show_the_first_and_say_so():
    maps = view(capture(tiny("bert"), [text(4, seed=seed) for seed in range(14)], layers=0, heads=0), "raw")
    document = build_document({"result": maps.to_dataset()})
    assert len(document.sections) == 13
    assert "The first 12 of 14 examples are shown" in document.sections[-1].parts[0].text


def test_maps_of_other_texts_are_not_one_result(trace, tmp_path):
    other = view(capture(tiny("bert"), text(3)), "raw")
    with pytest.raises(InputError, match="must have the same query tokens"):
        report([view(trace, "effective"), other], tmp_path / "out")


def test_a_report_of_rollout_draws_its_graph():
    trace = capture(tiny("bert"), text(5))
    maps = combine_lenses([view(trace, "raw").mean("head").dataset(), view(trace, "rollout").dataset()])
    document = build_document({"result": maps})
    captions = [part.caption for section in document.sections for part in section.parts if hasattr(part, "caption")]
    assert sum("through the layers, rollout" in caption for caption in captions) == 1
    assert not any(
        "Not shown here" in getattr(part, "text", "") for section in document.sections for part in section.parts
    )

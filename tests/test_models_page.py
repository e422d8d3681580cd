"""The page on kinds of models says what the zoo found."""

from benchmarks.zoo.examine import VERBS, Cell, Outcome
from benchmarks.zoo.summary import read_outcomes, summarize, write_compact, write_outcomes
from tests.test_generated_docs import MAKE

CELLS = {verb: Cell("yes") for verb in VERBS}
OUTCOMES = [
    Outcome("bert", "built", category="text", attention=True, cells={**CELLS, "generate": Cell("none", "no class")}),
    Outcome("gpt2", "built", category="text", attention=True, cells={**CELLS, "prune": Cell("refused", "A sentence.")}),
    Outcome("detr", "built", category="pictures", attention=True, cells={**CELLS, "norm": Cell("wrong", "by 1")}),
    Outcome("resnet", "built", category="pictures", cells={verb: Cell("refused", "none") for verb in VERBS}),
    Outcome("timm_wrapper", "not built", "ImportError"),
    Outcome("clip_text_model", "part of another type"),
]


def test_shares_are_of_kinds_with_attention(tmp_path):
    write_compact(tmp_path / "zoo.json", OUTCOMES, "python -m benchmarks.zoo")
    parts = MAKE.models_page.parts(tmp_path / "zoo.json")
    assert "It has 5 types" in parts["counts"]
    assert (
        "4 could be built and given inputs, of which 3 have attention and 1 have none. Silently wrong: 1."
        in (parts["counts"])
    )
    assert "| text | 2 | 100% of 2 | 100% of 2 | 100% of 2 | 100% of 2 | 100% of 1 | 50% of 2 |" in parts["summary"]
    assert "| all | 3 |" in parts["summary"]
    assert "| gpt2 | yes | yes | yes | yes | yes | refused |" in parts["forty"]
    assert "| detr | yes | yes | **wrong** |" in parts["forty"]
    assert "| llama | not built |" in parts["forty"]


def test_the_page_is_empty_before_anything_was_measured(tmp_path):
    assert MAKE.models_page.parts(tmp_path / "none.json") == {"counts": "", "summary": "", "forty": ""}


def test_forty_kinds_are_listed():
    assert len(set(MAKE.models_page.FORTY)) == 40


def test_a_run_that_was_interrupted_goes_on(tmp_path):
    write_outcomes(tmp_path / "out.json", OUTCOMES, "python -m benchmarks.zoo")
    assert list(read_outcomes(tmp_path / "out.json").values()) == OUTCOMES
    (tmp_path / "old.json").write_text('{"transformers": "4.0", "torch": "2.0", "types": []}')
    assert read_outcomes(tmp_path / "old.json") == {}


def test_the_summary_counts_what_is_wrong_and_leaves_out_what_was_not_tried():
    rows = {row[0]: row for row in summarize(OUTCOMES)}
    assert rows["text"][1:] == ["2", "2", "2/2", "2/2", "2/2", "2/2", "1/1", "1/2"]
    assert rows["pictures"][1:6] == ["2", "1", "1/1", "1/1", "0/1 (1 bad)"]

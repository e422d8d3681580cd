"""The headline numbers of the study, against a computation that shares no code with it."""

from pathlib import Path

import pytest

import headscope as hs
from headscope.experiments.tasks import TaskData, read_bundled
from headscope_studies.effective_attention import EffectiveAttention
from headscope_studies.effective_attention.measure import measure_base
from headscope_studies.effective_attention.tests import recomputed
from tests.readers.shared import DATA, real

INPUTS = 20
FEW = 8
GLUE = {
    "RTE": ("sentence1", "sentence2"),
    "MRPC": ("#1 String", "#2 String"),
    "QNLI": ("question", "sentence"),
    "SST-2": ("sentence",),
    "STS-B": ("sentence1", "sentence2"),
}
# where each number is in the results
PLACES = {
    "change": ("distance", {}),
    "entropy": ("dispersion", {}),
    "sink": ("sink_mean", {}),
    "cls": ("weight", {"token": "cls", "size": "signed", "several": "max"}),
    "sep": ("weight", {"token": "sep", "size": "signed", "several": "max"}),
    "cls to cls": ("type_weight", {"type": "cls", "size": "signed", "several": "max"}),
    "cls, all rows": ("published_weight", {"token": "cls"}),
    "sep, all rows": ("published_weight", {"token": "sep"}),
}
TOLERANCE = {"rel": 1e-4, "abs": 1e-6}  # the study's maps are in float32


def measure(model, examples, name, folder):
    """Return what the study says of the model before tuning, and the independent numbers."""
    task = TaskData(name, "", (), examples, "")
    run = EffectiveAttention(classifier="rules").plan_task(task, model, folder, 1)
    texts = [tuple(text for text in (example.text, example.pair) if text is not None) for example in examples]
    return measure_base(run, "rules").sel(length="all"), recomputed.recompute(model.network, model.tokenizer, texts)


def assert_same(numbers, expected):
    for (name, lens), value in expected.items():
        if name == "sink is":
            shares = numbers["sink_kind"].mean("layer")
            assert float(shares.sel(sink=lens)) == pytest.approx(value, **TOLERANCE)
        else:
            variable, where = PLACES[name]
            assert float(numbers[variable].sel(lens=lens, **where)) == pytest.approx(value, **TOLERANCE), (name, lens)


def test_the_independent_computation_is_independent():
    assert "headscope" not in Path(recomputed.__file__).read_text(encoding="utf-8")


def test_the_numbers_of_gap_are_those_of_plain_loops(minilm, tmp_path):
    numbers, expected = measure(minilm, read_bundled().dev[:FEW], "GAP", tmp_path)
    assert len(expected) == 3 * 6 + 2 * 2 + 2
    assert_same(numbers, expected)
    assert expected["change", "paper"] > expected["change", "effective"] > 0.1  # long texts: both differ from raw


@real
@pytest.mark.soak
@pytest.mark.parametrize("task", GLUE)
def test_the_numbers_of_a_glue_task_are_those_of_plain_loops(task, minilm, tmp_path):
    lines = (DATA / "glue" / task / "dev.tsv").read_text(encoding="utf-8-sig").split("\n")
    header, *rows = (line.split("\t") for line in lines[: INPUTS + 1])
    examples = hs.read(f"glue:{task}:dev@{DATA / 'glue'}")[:INPUTS]
    for example, row in zip(examples, rows, strict=True):
        columns = [row[header.index(column)].strip() for column in GLUE[task]]
        assert [text.strip() for text in (example.text, example.pair) if text is not None] == columns
    numbers, expected = measure(minilm, examples, task, tmp_path)
    assert_same(numbers, expected)

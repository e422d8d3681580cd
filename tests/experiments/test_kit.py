"""A short study gets everything else from the kit."""

import pytest
import xarray as xr
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.cli.study import study_options
from headscope.core.catalog import Catalog
from headscope.core.document import Paragraph
from headscope.core.errors import InputError
from headscope.experiments.claims import judge
from headscope.experiments.rendering.report import report_tasks
from headscope.experiments.rendering.sentences import verdict_numbers
from headscope.experiments.study import study
from headscope.reporting.latex_table import table_to_latex
from headscope.reporting.markdown import to_markdown
from tests.experiments.tiny_study import CLAIM, TinyStudy
from tests.study_data import place


def options():
    return {"dev": str(place() / "dev.jsonl"), "train": str(place() / "train.jsonl"), "epochs": 1, "max_length": 40}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    out = tmp_path_factory.mktemp("tiny")
    seen = []
    return study(TinyStudy(**options()), place() / "base", out=out, device="cpu", progress=seen.append), out, seen


@pytest.fixture
def parts(result):
    sections = result[0].document.sections
    return {part.name: part for section in sections for part in section.parts if not isinstance(part, Paragraph)}


def test_its_steps_are_reported_and_resumed(result):
    done, out, seen = result
    assert [str(progress) for progress in seen] == [
        "dev, step 1 of 2: fine-tuning on 16 examples",
        "dev, step 2 of 2: measuring entropy",
    ]
    again = study(TinyStudy(**options()), place() / "base", out=out, device="cpu", progress=seen.append)
    assert len(seen) == 2  # every step was read from the folder
    xr.testing.assert_identical(again.data, done.data)
    with pytest.raises(
        InputError, match="cannot be resumed: its smoothing is 0.0, but this run's is 0.1. Study as before"
    ):
        study(TinyStudy(**options(), smoothing=0.1), place() / "base", out=out, device="cpu", progress=False)


def test_its_claim_has_a_verdict_beside_the_papers_number(result, parts):
    numbers = result[0].data
    change = float(numbers["entropy_change"].sel(lens="effective", task="dev"))
    certain = float(numbers["entropy_change_low"].sel(lens="effective", task="dev")) > 0
    row = verdict_numbers([judge(CLAIM, numbers)]).loc[("Entropy rises.", "dev")]
    assert (row["verdict"] == "holds") == (certain and change >= CLAIM.threshold.value)
    assert row["paper"] == "1.00 → 1.50"
    assert row["threshold"] == CLAIM.threshold.text == "0.01 bits"
    assert parts["verdicts"].frame.loc["Entropy rises.", "verdict"] == row["verdict"]


def test_its_data_are_described(result):
    table, text = report_tasks(result[0].data, None).parts
    assert table.frame.loc["dev", ["learned from", "studied", "of"]].tolist() == [16, 12, 12]
    assert text.text.startswith("**dev**: train to learn from, dev to study; tuned with 1 epoch, batch 8")


def test_its_report_is_written_as_html_markdown_and_latex(result, parts, tmp_path):
    page = hs.report(result[0].document, tmp_path / "report")
    assert "Entropy (the paper&#x27;s Table 1)" in page.read_text(encoding="utf-8")
    figures = {path.name for path in (tmp_path / "report" / "figures").glob("*.pdf")}
    assert figures == {"verdict_grid.pdf", "figure_1.pdf", "heads.pdf"}
    text = to_markdown(result[0].document)
    assert text.startswith("# Entropy\n\nA tiny study.\n\n## What holds\n")
    assert "**Table 1.** Entropy (the paper's Table 1). n = dev 12 inputs." in text
    assert "| task | attention | entropy | entropy, paper |" in text
    assert "![Entropy of every head](figures/heads.svg)" in text
    assert r"\toprule" in table_to_latex(parts["table_1"])
    assert parts["table_1"].number == parts["figure_1"].number == 1


def test_its_parameters_are_options_in_the_shell(monkeypatch):
    assert list(study_options(TinyStudy))[-2:] == ["example", "smoothing"]
    monkeypatch.setattr(Catalog, "find", lambda self, name: TinyStudy)
    shown = CliRunner().invoke(app, ["study", "tiny", "--help"], env={"COLUMNS": "200"}).output
    for text in ("--train-limit", "--tasks", "Added to every weight.", "Compare the entropy of raw and effective"):
        assert text in shown
    wrong = CliRunner().invoke(app, ["study", "tiny", "--smoothing", "two"], env={"COLUMNS": "200"})
    assert wrong.exit_code == 2
    assert "--smoothing" in wrong.output

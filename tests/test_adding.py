"""The examples of docs/adding.md run: each is one new file that its catalog finds by name."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.experiments.study import study
from headscope.measuring.measure import measure
from tests.models import text, tiny
from tests.study_data import place

PAGE = (Path(__file__).parents[1] / "docs" / "adding.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(
    r"`(?:src|studies)/(headscope/\w+|headscope_studies)/(\w+)(?:/__init__)?\.py`.*?```python\n(.*?)```",
    PAGE,
    re.DOTALL,
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Put the examples where their catalogs look."""
    for folder, name, code in EXAMPLES:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{name}.py").write_text(code, encoding="utf-8")
        package = import_module(folder.replace("/", "."))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / folder)])
    yield
    for folder, name, _ in EXAMPLES:
        sys.modules.pop(f"{folder.replace('/', '.')}.{name}", None)


def test_there_is_one_example_for_a_lens_a_statistic_and_a_study():
    assert [(folder, name) for folder, name, _ in EXAMPLES] == [
        ("headscope/lenses", "sharpened"),
        ("headscope/statistics", "first_token"),
        ("headscope_studies", "entropy_rises"),
    ]


@pytest.mark.usefixtures("files")
def test_the_lens_is_found_by_name():
    trace = capture(tiny("bert"), text(9))
    weights, attention = view(trace, "sharpened:power=3").layer(0), trace.attention[0]
    assert weights.sum(-1).allclose(attention.sum(-1))
    assert (weights.amax(-1) >= attention.amax(-1)).all()


@pytest.mark.usefixtures("files")
def test_the_statistic_is_measured_with_an_interval():
    data = measure(tiny("bert"), [text(9), text(4, seed=1)], lens="raw", statistics=["first_token"], progress=False)
    assert ((data["first_token"] > 0) & (data["first_token_n"] == 2)).all()
    assert (data["first_token_low"] < data["first_token"]).all()


@pytest.mark.usefixtures("files")
def test_the_study_gives_a_verdict_and_a_table(tmp_path):
    options = {"dev": str(place() / "dev.jsonl"), "train": str(place() / "train.jsonl"), "epochs": 1, "max_length": 40}
    done = study("entropy-rises", place() / "base", out=tmp_path / "out", device="cpu", progress=False, **options)
    assert {"entropy", "entropy_low", "entropy_high"} <= set(done.data)
    assert [section.title for section in done.document.sections][-1] == "Numbers"

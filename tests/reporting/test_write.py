"""The folder that a report becomes."""

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Picture, Section, Table
from headscope.core.errors import InputError, OutputError, UnknownName
from headscope.core.provenance import stamp
from headscope.reporting.report import report
from headscope.results.store import save
from tests.figures.data import measured
from tests.reporting.data import document

VOID = {"meta", "img", "link", "br", "hr", "input"}


class Page(HTMLParser):
    """Every element with its attributes; fails where tags do not close in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def of(self, tag):
        return [attributes for name, attributes in self.seen if name == tag]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return report(document(), tmp_path_factory.mktemp("report") / "out")


@pytest.fixture(scope="module")
def text(written):
    return written.read_text(encoding="utf-8")


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_table_and_figure_is_a_file(written):
    assert written.name == "report.html"
    assert set(files(written.parent)) == {
        "report.html",
        "figures/line.pdf",
        "figures/line.svg",
        "tables/accuracy.csv",
        "tables/accuracy.paper.csv",
        "tables/accuracy.tex",
        "tables/other.csv",
        "tables/other.paper.csv",
        "tables/other.tex",
        "tables/verdicts.csv",
        "tables/verdicts.tex",
    }
    table = pd.read_csv(written.parent / "tables" / "accuracy.csv")
    assert list(table["raw_low"]) == [0.606, 0.901, 0.823]


def test_the_same_document_has_the_same_bytes(written, tmp_path):
    again = report(document(), tmp_path / "out")
    assert files(again.parent) == files(written.parent)


def test_the_page_is_well_formed_and_accessible(text):
    page = Page(text)
    assert page.of("html") == [{"lang": "en"}]
    names = [attributes["id"] for _, attributes in page.seen if "id" in attributes]
    assert len(names) == len(set(names))
    assert {link["href"][1:] for link in page.of("a") if link["href"].startswith("#")} <= set(names)
    assert all(each["scope"] in ("col", "row") for each in page.of("th"))
    assert [each["alt"] for each in page.of("img")] == ["Figure 1. A line that falls. n = 2. Reduced: 2 of 100 points."]


def test_the_page_is_self_contained(text, written):
    page = Page(text)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in page.seen}
    assert all(each["src"].startswith("data:image/svg+xml;base64,") for each in page.of("img"))
    links = [each["href"] for each in page.of("a") if not each["href"].startswith("#")]
    assert all((written.parent / each).is_file() for each in links)
    assert "url(" not in text
    assert "@import" not in text


def test_everything_is_escaped(tmp_path):
    bad = "<script>alert('x')</script> & \""
    frame = pd.DataFrame({bad: [bad], "verdict": [bad]})
    parts = [Paragraph(bad), Table("t", bad, frame, bad, theirs=pd.DataFrame({"a": [bad], "b": [1]}), reduced=bad)]
    figure = Figure(figsize=(1, 1))
    whole = Document(bad, bad, [Section(bad, [*parts, Picture("p", bad, figure, bad)])], runs=[{"name": bad, bad: bad}])
    page = Page(report(whole, tmp_path / "out").read_text(encoding="utf-8"))
    assert "script" not in {tag for tag, _ in page.seen}
    assert page.of("img")[0]["alt"] == f"Figure 1. {bad}. n = {bad}."


def test_captions_have_n_and_the_reason_of_a_reduction(text):
    assert "<b>Table 1.</b> Accuracy by task. n = 1,557. <strong>Reduced:</strong> 3 of 9 tasks." in text
    assert "<b>Table 2.</b> What holds. n = 2 models.</figcaption>" in text
    assert "<b>Figure 1.</b> A line that falls. n = 2. <strong>Reduced:</strong> 2 of 100 points." in text


def test_a_papers_numbers_are_beside_or_below_ours(text):
    assert '<th scope="col" class="number theirs">raw, paper</th>' in text
    assert text.count("Printed in the paper") == 1


def test_verdicts_have_a_text_and_a_colour(text):
    assert re.findall(r'<span class="verdict (\w+)">([^<]+)<', text) == [
        ("yes", "holds"),
        ("no", "refuted by exactness"),
        ("partly", "holds only without padding"),
        ("no", "not reproduced"),
    ]


def test_an_interval_is_beside_its_value(text):
    assert '<span class="value">0.664</span> <span class="ends">[0.606, 0.717]</span>' in text


def test_provenance_and_references_are_at_the_end(text):
    assert "<dt>weights</dt><dd>abab" in text
    assert "<summary>1 more fact</summary>" in text
    assert (
        "Kaiser Sun and Ana Marasović (2021). <cite>Effective Attention Sheds Light On Interpretability</cite>." in text
    )
    assert "@inproceedings{kobayashi2020," in text


def test_an_unknown_reference_is_named():
    with pytest.raises(UnknownName, match="No reference is called 'sun2012'. Did you mean 'sun2021'?"):
        report(document(references=["sun2012"]))


def test_a_large_svg_is_a_png_in_the_page(tmp_path):
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot(*np.random.default_rng(0).random((2, 4000)), "o-", markersize=1)
    whole = Document("t", "", [Section("s", [Picture("p", "dots", figure, 4000)])])
    page = Page(report(whole, tmp_path / "out").read_text(encoding="utf-8"))
    assert page.of("img")[0]["src"].startswith("data:image/png;base64,")
    assert set(files(tmp_path / "out")) == {"report.html", "figures/p.pdf", "figures/p.svg"}


def test_an_older_report_is_replaced_only_with_overwrite(tmp_path):
    report(document(), tmp_path / "out")
    before, new = files(tmp_path / "out"), Document("New", "", [Section("s", [Paragraph("x")])])
    with pytest.raises(
        InputError, match=r"out holds a report already\. Give another folder, or replace it with overwrit"
    ):
        report(new, tmp_path / "out")
    assert files(tmp_path / "out") == before
    report(new, tmp_path / "out", overwrite=True)
    assert set(files(tmp_path / "out")) == {"report.html"}
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


@pytest.mark.parametrize("name", ["notes.txt", "tables/notes.txt", "figures/mine/x.svg"])
def test_a_folder_with_other_files_is_refused(tmp_path, name):
    report(document(), tmp_path / "out")
    (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "out" / name).write_text("mine")
    before = files(tmp_path / "out")
    with pytest.raises(OutputError, match="that folder holds '.*', which no report wrote. Give another folder"):
        report(document(), tmp_path / "out")
    assert files(tmp_path / "out") == before


def test_a_page_of_another_program_is_not_replaced(tmp_path):
    (tmp_path / "report.html").write_text("<p>mine</p>")
    with pytest.raises(OutputError, match="holds 'report.html', which no report wrote"):
        report(document(), tmp_path)


def test_a_file_or_the_current_folder_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(OutputError, match="A report is a folder, but .*a.txt is a file. Give the name of a folder"):
        report(document(), tmp_path / "a.txt")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="'.' is the current folder. Give a new name"):
        report(document(), ".")


def test_a_failure_leaves_no_partial_folder(tmp_path, monkeypatch):
    def fails(*_):
        raise RuntimeError("no")

    monkeypatch.setattr("headscope.reporting.write.document_to_html", fails)
    with pytest.raises(RuntimeError):
        report(document(), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_title_can_be_set(tmp_path):
    page = report(document(), tmp_path / "out", title="Mine")
    assert "<h1>Mine</h1>" in page.read_text(encoding="utf-8")
    assert replace(document(), title="Mine").title == "Mine"


def test_a_report_needs_no_torch(tmp_path):
    result = stamp(measured(layers=1, heads=1, rows=False), statistics=["entropy"], lenses=["raw"])
    save(result[["entropy", "entropy_n"]], tmp_path / "heads.nc")
    code = (
        "import sys; from headscope.reporting.report import report; text = report('heads.nc').read_text();"
        "print('torch' in sys.modules, 'clark2019' in text)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_a_figure_of_a_whole_page_fills_the_width_and_a_wider_one_is_scrolled(tmp_path):
    sizes = {"wide": 20, "page": 6.9, "narrow": 5}
    pictures = [Picture(name, name, Figure(figsize=(wide, 1)), 1) for name, wide in sizes.items()]
    page = Page(report(Document("t", "", [Section("s", pictures)]), tmp_path / "out").read_text(encoding="utf-8"))
    cards = [each for each in page.of("div") if each.get("class", "").startswith("card")]
    assert cards == [
        {"class": "card wide", "role": "region", "tabindex": "0", "aria-label": "Figure 1"},
        {"class": "card full"},
        {"class": "card"},
    ]

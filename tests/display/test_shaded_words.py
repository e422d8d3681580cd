"""Importances in notebooks, terminals and reports."""

import re

import numpy as np
import pytest
from rich.console import Console

from headscope.core.example import Example
from headscope.display.shaded_words import list_largest, shade_html, shade_terminal
from headscope.engine.importances import importances
from headscope.plotting.draw import draw
from headscope.reporting.report import report
from headscope.results.store import open_result, save
from tests.heads import headed
from tests.models import text

TEXTS = [
    Example("a", "The cat & <b>the</b> mat.", label=1),
    *(Example(str(index), text(5, index)) for index in (1, 2, 3)),
]


@pytest.fixture(scope="module")
def result():
    return importances(headed("bert", "classification"), TEXTS)


def test_html_holds_the_text_and_a_score_for_each_ordinary_token(result):
    page = shade_html(result, 0)
    plain = re.sub(r"<[^>]+>", "", page)
    assert plain == "[CLS] The cat &amp; &lt;b&gt;the&lt;/b&gt; mat. [SEP]"
    assert page.count("title=") == int(np.isfinite(result.scores[0]).sum())
    assert len(set(re.findall(r"background: (#\w+)", page))) > 2


def test_negative_scores_are_underlined_in_html_and_in_the_terminal(result):
    scores = result.scores[0]
    count = int((scores < -0.05 * np.nanmax(np.abs(scores))).sum())
    assert count > 0
    assert shade_html(result, 0).count("underline") == count
    shaded = shade_terminal(result, 0)
    assert sum(bool(span.style.underline) for span in shaded.spans) == count
    assert shaded.plain == "[CLS] The cat & <b>the</b> mat. [SEP]"


def test_a_terminal_without_colours_still_says_what_matters_most(result):
    console = Console(no_color=True, width=80, force_terminal=False)
    with console.capture() as shown:
        console.print(shade_terminal(result, 0))
    assert "The cat & <b>the</b> mat." in shown.get()
    largest = list_largest(result, 0, count=1)
    index = int(np.nanargmax(np.abs(result.scores[0])))
    assert largest == f"{result.pieces[0][index].strip()} {result.scores[0][index]:+.3g}"


def test_a_card_shows_three_texts_and_the_number_of_all(result):
    card = result._repr_html_()
    assert card.count("white-space: pre-wrap") == 3
    assert "4 in all" in card
    assert "blank_out" in card
    assert "orange and underlined: against it" in card


def test_importances_are_saved_opened_and_drawn(result, tmp_path):
    data = open_result(save(result, tmp_path / "importances.nc"))
    np.testing.assert_array_equal(data["importance"].values, result.to_dataset()["importance"].values)
    stamp = data.attrs["headscope"]
    assert '"target": "predicted"' in stamp
    assert '"weights_hash"' in stamp
    one, other = (draw(source, example=2).axes[0] for source in (data, result))
    assert [part.get_text() for part in one.texts] == [part.get_text() for part in other.texts]


def test_several_methods_are_saved_together(result, tmp_path):
    gradients = importances(headed("bert", "classification"), TEXTS, "input_gradient")
    data = open_result(save([result, gradients], tmp_path / "both.nc"))
    assert data["method"].values.tolist() == ["blank_out", "input_gradient"]
    np.testing.assert_array_equal(data["importance"].values[1], gradients.to_dataset()["importance"].values[0])


def test_a_report_shows_each_text_with_its_figure_and_its_largest_scores(result, tmp_path):
    page = report(result, tmp_path / "report").read_text()
    assert "How much each token of 4 texts matters for the prediction" in page
    assert len(re.findall(r"<figure", page)) >= 4
    assert "The tokens that matter most for" in page
    assert "Abnar" in page
    assert (tmp_path / "report" / "figures").is_dir()

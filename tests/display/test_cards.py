"""What notebooks show of objects: cards with facts and small pictures."""

import re
from base64 import b64decode
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from headscope.core.document import Document, Paragraph, Picture, Section, Table
from headscope.core.kind import find_kind
from headscope.core.lens import view
from headscope.core.study import StudyResult
from headscope.display import cards
from headscope.display.cards import tile_maps
from headscope.engine.capture import capture
from tests.figures.data import measured, studied
from tests.models import batch, text, tiny

SHARE = ["share", "share_low", "share_high"]


def strip_tags(page):
    return re.sub(r"<[^>]+>", "", page)


def facts(thing):
    return dict(re.findall(r"<th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td>", thing._repr_html_()))


def pictures(thing):
    found = re.findall(r'src="data:image/png;base64,([^"]+)"', thing._repr_html_())
    return [imread(BytesIO(b64decode(content))) for content in found]


def test_a_model_shows_its_size_and_where_it_is():
    shown = facts(tiny("bert"))
    assert shown["network"] == "BertModel, family bert"
    assert shown["attention"] == "2 layers × 4 heads"
    assert shown["weights"] == "float32 on cpu"
    assert int(shown["parameters"].replace(",", "")) == sum(part.numel() for part in tiny("bert").network.parameters())


def test_a_trace_shows_its_texts_and_a_map_for_each_layer():
    trace = capture(tiny("bert"), [f"the <b>cat</b> {text(40)}", *batch("bert")])
    shown = trace._repr_html_()
    assert "the &lt;b&gt;cat&lt;/b&gt;" in shown
    assert "…" in facts(trace)["example 0"]
    assert facts(trace)["examples"] == "4 in all"
    assert facts(trace)["holds"] == "attention, model_output, output and values"
    assert facts(trace)["model output"].startswith("last_hidden_state 4 × ")
    (picture,) = pictures(trace)
    assert picture.shape[1] == 2 * picture.shape[0]  # two layers across
    assert "Layers 0, 1 across, mean of 4 heads" in shown


@pytest.mark.parametrize("kind", ["bert", "llama", "t5", "vit"])
def test_every_kind_of_model_trace_and_maps_has_a_card(kind):
    trace = capture(tiny(kind), batch(kind))
    for thing in (tiny(kind), trace, view(trace, "effective"), view(trace, "raw").mean(("layer", "head"))):
        assert thing._repr_html_().startswith("<div")
    assert len(pictures(view(trace, "effective"))) == 1


def test_maps_show_their_lens_and_every_head():
    maps = view(capture(tiny("bert"), batch("bert")), "effective")
    assert facts(maps)["lens"] == "effective"
    share = maps.diagnostics["share"]
    assert facts(maps)["effective share"] == f"mean {share.mean():.2f}, from {share.min():.2f} to {share.max():.2f}"
    assert pictures(maps)[0].shape[1] == 2 * pictures(maps)[0].shape[0]  # two layers down, four heads across
    assert "Layers 0, 1 down, heads 0 to 3 across" in maps._repr_html_()
    assert "Example 0, the first of 3." in maps._repr_html_()


def test_thumbnails_are_dark_where_weights_are_large():
    weights = np.zeros((1, 2, 4, 4))
    weights[0, 1, 3, 0] = 1
    content, width = tile_maps(weights, signed=False)
    image = imread(BytesIO(content))
    assert image.shape[1] == width
    row, column = np.unravel_index(image[..., :3].sum(-1).argmin(), image.shape[:2])
    assert row > image.shape[0] / 2  # the last query
    assert width / 2 <= column < 0.7 * width  # the first key of the second map


def test_very_long_texts_show_some_layers_or_no_picture(monkeypatch):
    maps = view(capture(tiny("bert"), text(9)), "raw")
    monkeypatch.setattr(cards, "MAX_WEIGHTS", 4 * 11 * 11)
    assert "Layers 0 down" in maps._repr_html_()
    monkeypatch.setattr(cards, "MAX_WEIGHTS", 100)
    assert not pictures(maps)
    assert facts(maps)["tokens"] == "11"


def test_a_result_shows_the_lead_the_table_and_the_figure_of_its_kind():
    data = measured()
    shown, kind = cards.make_card(data), find_kind(data)
    assert "<strong>Attention of tiny</strong>" in shown
    assert "entropy, distance and token types" in shown
    assert "over 7 examples." in shown
    overview = kind.tables(data)["overview"]
    assert all(f">{name}</td>" in shown for name in overview.frame.index)
    assert shown.count('src="data:image/svg+xml,') == 1
    assert f"`hs.report(data)` writes the page with {len(kind.tables(data))} tables and all figures.".replace(
        "`", ""
    ) in strip_tags(shown)


def test_a_table_of_a_card_has_intervals_in_brackets_and_few_rows():
    shown = cards.make_card(studied([f"task {number}" for number in range(3)], lenses=[f"l{n}" for n in range(30)]))
    assert "_low" not in shown
    assert re.search(r"<td[^>]*>0\.\d+ \[0\.\d+, 0\.\d+\]</td>", shown)
    assert "24 of 30 rows are shown." in cards.make_card(studied(lenses=[f"l{n}" for n in range(30)])[SHARE])


def test_a_figure_that_cannot_be_drawn_is_explained():
    shown = cards.make_card(studied(lenses=[f"l{n}" for n in range(30)])[SHARE])
    assert "Not drawn: &#x27;share&#x27; has 30 values for each task" in shown


def test_a_study_without_tables_is_shown_by_its_kind():
    shown = StudyResult({"numbers": studied()}, Document("Title", "Lead.", []))._repr_html_()
    assert "Results of the study <code>sixteen_heads</code> of tiny on 2 tasks (RTE and MRPC)" in shown


def test_the_result_of_a_study_shows_its_first_table_and_figure():
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([1, 2])
    table = Table("verdicts", "What came out", pd.DataFrame({"claim": ["a < b"], "holds": [True]}), 7)
    section = Section("Claims", [Paragraph("…"), table, Picture("curve", "A curve", figure, 7)])
    result = StudyResult({}, Document("Does it hold?", "It **does**.", [section]))
    shown = result._repr_html_()
    assert "<strong>Does it hold?</strong>" in shown
    assert "It <strong>does</strong>." in shown
    assert "a &lt; b" in shown
    assert "What came out. n = 7." in shown
    assert len(pictures(result)) == 1
    assert "1 table and 1 figure" in shown

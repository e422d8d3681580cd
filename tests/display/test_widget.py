"""The viewer as a widget, without a browser: what is synced, what is answered, and what a saved notebook holds."""

import json
import re
import subprocess
import sys
from base64 import b64decode
from html import unescape
from io import BytesIO

import numpy as np
import pytest
from matplotlib.image import imread

from headscope.core.errors import InputError, UnknownName
from headscope.core.lens import view
from headscope.display.options import ViewerOptions
from headscope.display.show import show
from headscope.display.still import StillViewer, make_bundle, read_thumbs
from headscope.display.widget import ViewerWidget
from headscope.engine.capture import capture
from headscope.measuring.measure import measure
from headscope.results.store import save
from headscope.viewer.encode import decode_weights
from headscope.viewer.source import make_source
from tests.figures.data import measured
from tests.models import batch, text, tiny

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def maps():
    trace = capture(tiny("bert"), text(9))
    return [view(trace, name) for name in ("raw", "effective")]


@pytest.fixture
def widget(maps):
    return ViewerWidget(make_source(maps))


@pytest.fixture
def sent(widget, monkeypatch):
    """The messages that the widget sends, with their buffers."""
    messages = []
    monkeypatch.setattr(widget, "send", lambda content, buffers=None: messages.append((content, buffers)))
    return messages


def ask(widget, **content):
    """Let the widget receive a message, as from the browser."""
    message = {"content": {"data": {"method": "custom", "content": content}}, "buffers": []}
    widget._handle_msg(message)


def push(widget, **state):
    """Let the widget receive traits, as from the browser."""
    widget.set_state(state)


def test_the_traits_hold_the_header_and_no_weights(widget, maps):
    state = widget.get_state()
    assert state["header"] == make_source(maps).header()
    own = {name: value for name, value in state.items() if name not in ("_esm", "_css")}
    assert len(json.dumps(own)) < 20_000
    assert {"sheet", "view", "lens", "layer", "head", "token"} <= set(state)


def test_a_header_grows_with_the_tokens_and_not_with_their_square():
    sizes = []
    for words in (20, 40):
        source = make_source(view(capture(tiny("bert"), text(words)), "raw"))
        sizes.append(len(json.dumps(ViewerWidget(source).get_state("header"))))
    assert sizes[1] < 1.5 * sizes[0]


def test_a_block_is_sent_as_one_buffer_with_its_ticket(widget, sent, maps):
    ask(widget, type="block", name="0/0/map/1/2", ticket="a-1")
    ((content, (buffer,)),) = sent
    assert content == {"ticket": "a-1"}
    lens = widget.header["sheets"][0]["lenses"][0]
    weights = decode_weights(buffer, lens["codec"], lens["scales"][1][2], signed=False)
    np.testing.assert_allclose(weights, maps[0][1, 2].values.ravel(), atol=1e-3)


@pytest.mark.parametrize("name", ["9/0/map/0/0", "0/0/map/0/99", "../../etc/passwd", "__class__", "", None, 3])
def test_an_unknown_block_is_answered_with_a_sentence(widget, sent, name):
    ask(widget, type="block", name=name, ticket="a-2")
    ((content, buffers),) = sent
    assert content["ticket"] == "a-2"
    assert "There is no block" in content["error"]
    assert buffers is None


def test_a_source_that_fails_is_answered_with_a_sentence(widget, sent, monkeypatch):
    class Broken:
        def block(self, name):
            raise RuntimeError("no memory left.\nmore")

    widget.source = Broken()
    ask(widget, type="block", name="0/0/thumbs", ticket="a-3")
    assert sent == [({"ticket": "a-3", "error": "Python could not read it: no memory left."}, None)]


@pytest.mark.parametrize("content", [{"type": "other"}, {}])
def test_other_messages_are_not_answered(widget, sent, content):
    ask(widget, **content)
    assert sent == []


def test_nothing_is_read_before_it_is_asked_for(maps):
    names = []

    class Counted:
        source = make_source(maps)

        def header(self):
            return self.source.header()

        def block(self, name):
            names.append(name)
            return self.source.block(name)

    ViewerWidget(Counted())
    assert names == []


def test_labels_are_set_from_python_and_from_the_browser(widget):
    seen = []
    widget.observe(lambda change: seen.append((change["name"], change["new"])), ["layer", "head"])
    widget.layer, widget.head = 1, 3
    push(widget, layer=0, head=2)
    assert (widget.layer, widget.head) == (0, 2)
    assert seen == [("layer", 1), ("head", 3), ("layer", 0), ("head", 2)]


def test_labels_may_be_numbers_of_numpy_and_count_from_the_end(widget):
    widget.layer, widget.head = np.unravel_index(6, (2, 4))
    assert (widget.layer, widget.head) == (1, 2)
    assert type(widget.head) is int
    widget.head = -1
    assert widget.head == 3


def test_the_token_is_none_or_a_position(widget):
    assert widget.token is None
    assert widget.get_state("token") == {"token": -1}
    push(widget, token=4)
    assert widget.token == 4
    push(widget, token=-1)
    assert widget.token is None
    widget.token = 0
    assert widget.get_state("token") == {"token": 0}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("layer", 2, "There is no layer 2 here, only layers 0 and 1"),
        ("head", 9, "There is no head 9 here, only heads 0 to 3"),
        ("token", 11, "There is no token 11: this text has 11 tokens, 0 to 10"),
        ("token", -2, "There is no token -2"),
        ("sheet", 1, "There is no sheet 1 here, only sheet 0"),
        ("lens", "efective", "No lens of this viewer is called 'efective'. Did you mean 'effective'?"),
        ("view", "grids", "No view is called 'grids'. Did you mean 'grid'?"),
    ],
)
def test_what_does_not_exist_is_refused_and_the_old_value_stays(widget, name, value, message):
    before = getattr(widget, name)
    with pytest.raises(InputError, match=re.escape(message)):
        setattr(widget, name, value)
    assert getattr(widget, name) == before
    with pytest.raises(InputError, match=re.escape(message)):
        push(widget, **{name: value})
    assert getattr(widget, name) == before
    if name != "token" or value > 0:
        with pytest.raises(InputError, match=re.escape(message)):
            ViewerWidget(widget.source, ViewerOptions(**{name: value}))


def test_labels_of_some_layers_are_their_own(maps):
    widget = ViewerWidget(make_source(maps[0].sel(layer=[1], head=[0, 2])))
    assert (widget.layer, widget.head) == (1, 0)
    with pytest.raises(InputError, match="There is no head 1 here, only heads 0 and 2"):
        widget.head = 1


def test_another_sheet_keeps_what_it_has_and_replaces_the_rest(maps):
    other = view(capture(tiny("bert"), text(4)), "raw").sel(layer=[0])
    widget = ViewerWidget(
        make_source({"one": maps, "other": other}), ViewerOptions(layer=1, head=2, lens="effective", token=9)
    )
    assert widget.view == "head"
    widget.sheet = 1
    assert (widget.lens, widget.layer, widget.head, widget.token) == ("raw", 0, 2, None)


def test_a_browser_may_change_the_sheet_and_the_layer_together(maps):
    late = maps[0].sel(layer=[1])
    widget = ViewerWidget(make_source({"first": maps[0].sel(layer=[0]), "late": late}))
    push(widget, sheet=1, layer=1, head=3)
    assert (widget.sheet, widget.layer, widget.head) == (1, 1, 3)


def test_the_repr_says_what_is_shown(widget):
    widget.layer, widget.head = 1, 2
    assert re.fullmatch(r"ViewerWidget\(.*, raw and effective, 2 layers × 4 heads, 11 tokens, at L1H2\)", repr(widget))


def test_the_bundle_has_the_widget_a_card_a_picture_and_a_line(widget):
    bundle = widget._repr_mimebundle_()
    assert bundle[WIDGET]["model_id"] == widget.model_id
    assert bundle["text/plain"] == repr(widget)
    picture = imread(BytesIO(b64decode(bundle["image/png"])))
    assert picture.shape[1] == 2 * picture.shape[0]  # two layers down, four heads across
    assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) > 5
    assert "raw: layers 0, 1 down, heads 0 to 3 across" in bundle["text/html"]
    assert "Run the cell to use it" in bundle["text/html"]
    assert f"base64,{bundle['image/png']}" in bundle["text/html"]
    assert sum(map(len, map(str, bundle.values()))) < 150_000


def test_the_picture_of_a_large_model_is_small():
    class Large:
        """Thumbnails of 48 layers × 32 heads, as noise, which cannot be compressed."""

        def header(self):
            tokens = {"text": ["a"] * 24, "special": [], "word": None}
            lens = {"name": "raw", "signed": False, "merged": False, "scales": [[1.0] * 32] * 48}
            lens["thumbs"] = {"rows": 24, "columns": 24}
            sheet = {"model": "large", "site": "self", "text": "a", "pair": None, "visible": "causal", "lenses": [lens]}
            sheet.update(layers=[*range(48)], heads=[*range(32)], queries=tokens, keys=None)
            return {"title": "large", "sheets": [sheet], "messages": [], "result": None}

        def block(self, name):
            assert name == "0/0/thumbs"
            return np.random.default_rng(0).integers(0, 256, 48 * 32 * 24 * 24, np.uint8).tobytes()

    bundle = ViewerWidget(Large())._repr_mimebundle_()
    assert "layers 0 to 31 down" in bundle["text/html"]
    assert len(b64decode(bundle["image/png"])) < 150_000


def test_the_picture_is_made_once_and_when_it_is_asked_for(maps, monkeypatch):
    made = []
    monkeypatch.setattr("headscope.display.widget.make_bundle", lambda *_: made.append(1) or {"text/html": "card"})
    widget = ViewerWidget(make_source(maps))
    assert made == []
    widget._repr_mimebundle_()
    widget._repr_mimebundle_()
    assert made == [1]


@pytest.mark.parametrize("kind", ["bert", "llama", "t5", "vit"])
def test_a_picture_shows_the_thumbnails_and_what_is_masked(kind):
    maps = view(capture(tiny(kind), batch(kind)), "raw")
    source = make_source(maps)
    thumbs = read_thumbs(source, 0, 0)
    assert thumbs.shape[:2] == (len(maps.layers), len(maps.heads))
    facts = source.header()["sheets"][0]
    assert np.isnan(thumbs).any() == (facts["visible"] != "all")
    assert np.nanmax(thumbs) == pytest.approx(np.nanmax(maps.sel(example=0).weights.numpy()), rel=0.01)
    assert "image/png" in ViewerWidget(source)._repr_mimebundle_()


def test_a_result_is_shown_with_its_sentence_table_and_figure():
    widget = ViewerWidget(make_source(measured()))
    bundle = widget._repr_mimebundle_()
    assert "over 7 examples." in bundle["text/html"]
    assert bundle["text/html"].count("<table>") == 1
    assert bundle["text/html"].count('src="data:image/svg+xml,') == 1
    assert widget.header["result"]["tables"]


def test_text_of_the_input_cannot_add_markup():
    marked = f"{text(15)} <b>cat</b> <script>sat</script>"
    widget = ViewerWidget(make_source(view(capture(tiny("bert"), marked), "raw")))
    assert not re.search(r"<b>|<script", widget._repr_mimebundle_()["text/html"])


def test_a_widget_is_saved_as_the_page_of_its_source(widget, maps, tmp_path):
    page = save(widget, tmp_path / "page.html")
    assert page.read_text() == save(make_still(maps), tmp_path / "same.html").read_text()
    assert '<script type="application/json" id="headscope-header">' in page.read_text()


def make_still(maps):
    return StillViewer(make_source(maps), {"sheet": 0, "lens": "raw"}, "Install it.")


def test_without_widgets_the_card_says_what_to_install(maps):
    bundle = make_still(maps)._repr_mimebundle_()
    assert WIDGET not in bundle
    assert "Install it." in bundle["text/html"]
    assert bundle["text/plain"].startswith("StillViewer(")


def test_a_card_of_numbers_says_what_they_are():
    data = measure(tiny("bert"), [text(5)], statistics=["entropy"], progress=False)
    card = unescape(make_bundle(make_source([data]), {"sheet": 0, "lens": ""})["text/html"])
    assert "2 layers × 4 heads" in card
    assert "entropy" in card
    assert "tokens" not in card


def test_without_the_extra_a_notebook_shows_a_picture_and_what_to_install(maps, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "headscope.display.widget")
    monkeypatch.setattr("headscope.display.show.in_marimo", lambda: True)  # where hs.show displays nothing itself
    shown = show(maps, layer=1)
    bundle = shown._repr_mimebundle_()
    assert isinstance(shown, StillViewer)
    assert "pip install 'headscope[notebook]'" in unescape(bundle["text/html"])
    assert imread(BytesIO(b64decode(bundle["image/png"]))).size > 1000


def test_without_the_extra_the_widget_names_it():
    code = (
        "import sys; sys.modules['anywidget'] = None\n"
        "try:\n    import headscope.display.widget\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "MissingExtra The viewer in a notebook needs the package anywidget, which is not installed. "
        "Install it with: pip install 'headscope[notebook]'"
    )


def test_options_of_a_figure_need_its_name(maps):
    with pytest.raises(
        UnknownName, match="No option of the viewer is called 'size'.*hs.show\\(maps, 'matrix', size=…\\)"
    ):
        show(maps, size=12)

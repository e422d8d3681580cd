"""The atlas in Chromium, from a disk and from a web server: heads, numbers and examples as Python has them."""

import csv
import io
import re
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import headscope as hs
from headscope.head_atlas.folder import make_page
from tests.browser import browser
from tests.head_atlas.data import examples, make_atlas, read_head, read_header
from tests.models import tiny
from tests.viewer.pages import colors_of, is_color, launch, open_tab

pytestmark = browser
HEADS = "Heads by"
ATTACK = "<img src=x onerror=document.title=1>"
GONE = "L0H3"  # a head that was pruned
NAMES = [f"L{layer}H{head}" for layer in range(2) for head in range(4) if f"L{layer}H{head}" != GONE]
TEXTS = [*examples(12), hs.Example(ATTACK, "the old man sang loud songs of sea under blue sky", label=1)]


LOADED = "!document.querySelector('.hs-notice').textContent.startsWith('Loading')"
FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def model():
    return hs.prune(tiny("bert"), [GONE])


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("pages") / "atlas"
    make_atlas(model, out, TEXTS, statistics=["activity", "entropy", "offsets:reach=1", "effective_share"])
    return out


@pytest.fixture(scope="module")
def chromium():
    with launch() as started:
        yield started


@pytest.fixture(scope="module")
def tab(chromium):
    return open_tab(chromium)


@pytest.fixture
def shown(tab, folder):
    """The atlas, opened from the disk; nothing may go wrong in it, and nothing else is asked for."""
    open_atlas(tab, folder)
    yield tab
    assert tab.problems == []
    assert all(request.startswith(("file:", "blob:")) for request in tab.requests)


def open_atlas(shown, folder, **state):
    shown.open(folder / "index.html", **state)
    return shown.wait("document.querySelector('.hs-card, .hs-notice:not(:empty)')")


def settle(shown):
    """Wait until what was asked for is loaded and drawn."""
    shown.wait(LOADED).page.evaluate(FRAMES)
    return shown


def choose(shown, name):
    """Write the name of a head into the search box, and wait for its examples."""
    shown.page.get_by_label("Find a head").fill(name)
    shown.page.keyboard.press("Enter")
    return shown.wait(f"document.querySelector('.hs-head-title').textContent === '{name}' && {LOADED}")


def table_of(folder, name, lens=None):
    """A number by head and its interval: values, low and high by the name of the head."""
    header = read_header(folder)
    (scalar,) = [each for each in header["scalars"] if (each["name"], each["lens"]) == (name, lens)]
    return {
        f"L{layer}H{head}": [scalar[part][i][j] for part in ("values", "low", "high")]
        for i, layer in enumerate(header["layers"])
        for j, head in enumerate(header["heads"])
    }


def read_numbers(line):
    """The number and the interval of a line such as "entropy (nats, raw): 1.23 [1.20, 1.26]"."""
    return [float(text.replace("−", "-")) for text in re.findall(r"−?\d+\.\d+", line.rpartition(":")[2])]


def check_points(shown, x, y):
    """Every head with both numbers is a point; its tip says what Python computed."""
    spots = {spot.lines[0]: spot for spot in shown.scan(HEADS, [60, 520, 3], [30, 470, 3])}
    assert sorted(spots) == NAMES
    for name, spot in spots.items():
        assert read_numbers(spot.lines[1]) == pytest.approx(x[name], abs=6e-3)
        assert read_numbers(spot.lines[2]) == pytest.approx(y[name], abs=6e-3)
        assert spot.lines[3] == "n = 0 to 13"


def test_every_head_is_a_point_with_its_interval_from_a_disk_without_any_other_request(shown, folder):
    check_points(shown, table_of(folder, "activity", "raw"), table_of(folder, "effective_share"))
    assert (
        "7 heads by activity (raw) and effective share (n = 0 to 13). 1 head without these numbers: pruned"
        in shown.reading
    )
    first = max(NAMES, key=lambda name: table_of(folder, "activity", "raw")[name][0])
    assert [url.rpartition("atlas/")[2].partition("#")[0] for url in shown.requests] == [
        "index.html",
        f"heads/{first}.js",
    ]


def test_points_are_drawn_where_their_numbers_are_in_the_color_of_their_layer(shown, folder):
    x, y = table_of(folder, "activity", "raw"), table_of(folder, "effective_share")
    spots = {spot.lines[0]: spot.box for spot in shown.scan(HEADS, [60, 520, 1], [30, 470, 1])}
    places = np.array([[(box[0] + box[2]) / 2, (box[1] + box[3]) / 2] for box in map(spots.get, NAMES)])
    for axis, numbers in ((0, x), (1, y)):
        values = [numbers[name][0] for name in NAMES]
        assert abs(np.corrcoef(places[:, axis], values)[0, 1]) > 0.95  # but for points that lie over one another
    low, high = colors_of([0.32, 0.98], 1)
    for name, (left, top) in zip(NAMES, places, strict=True):
        near = [shown.pixel(HEADS, left + dx, top + dy) for dx in (-2, 2) for dy in (-2, 2)]
        assert any(is_color(color, low if name.startswith("L0") else high, 12) for color in near), name


def test_axes_are_chosen_with_the_keyboard_and_kept_in_the_address(shown, folder):
    page = shown.page
    page.get_by_label("Across").focus()
    for _ in range(2):
        shown.act(lambda: page.keyboard.press("ArrowDown"))
    page.get_by_label("Up").focus()
    shown.act(lambda: page.keyboard.press("Home"))
    assert (shown.state["x"], shown.state["y"]) == ("entropy@raw", "activity@raw")
    check_points(shown, table_of(folder, "entropy", "raw"), table_of(folder, "activity", "raw"))
    page.reload()
    shown.wait("document.querySelector('.hs-card')")
    assert page.get_by_label("Across").input_value() == "entropy@raw"


def test_a_logarithmic_axis_is_offered_only_for_positive_numbers_that_span_a_factor(tab, folder, tmp_path):
    copy, header = shutil.copytree(folder, tmp_path / "copy"), read_header(folder)
    header["scalars"][0]["values"][0][0] = 0.01
    header["scalars"][0]["low"][0][0] = -0.5  # which has no place on the axis
    header["scalars"][1]["values"][0][0] = -0.01
    (copy / "index.html").write_text(make_page(header), encoding="utf-8")
    open_atlas(tab, copy)
    box = tab.page.get_by_label("log").first
    tab.act(box.check)
    assert tab.state["log"] == "x"
    assert sorted(spot.lines[0] for spot in tab.scan(HEADS, [50, 520, 3], [30, 470, 3])) == NAMES
    for name in ("activity@effective", "effective_share", "layer"):
        tab.act(partial(tab.page.get_by_label("Across").select_option, name))
        assert box.is_disabled()
    assert tab.problems == []


def test_heads_are_chosen_with_arrow_keys_and_their_file_is_loaded_then(shown, folder):
    page = shown.page
    page.locator("canvas.hs-scatter").focus()
    seen = [shown.text(".hs-head-title")]
    for key in ("ArrowLeft", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
        seen.append(settle(shown).text(".hs-head-title"))
    assert len(set(seen)) > 2
    assert set(seen) <= set(NAMES)
    asked = {url.rpartition("/")[2] for url in shown.requests if "/heads/" in url}
    assert asked == {f"{name}.js" for name in seen}
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.textContent") == shown.text(".hs-head-title")


def test_examples_of_a_head_are_shown_by_group_with_their_activity(shown, folder):
    choose(shown, "L1H2")
    stored = read_head(folder, "L1H2")["examples"]
    titles = shown.page.locator(".hs-card-title").all_text_contents()
    assert len(titles) == len(stored) == 9
    for title, example in zip(titles, stored, strict=True):
        assert example["id"] in title
        assert f"activity {example['activity']:.3f}" in title
        assert f"label {example['label']}" in title
    groups = shown.page.locator(".hs-column h3").all_text_contents()
    assert groups == ["Strongest", "Median", "Weakest"]


@pytest.mark.parametrize("lens", ["raw", "effective"])
def test_a_token_chosen_with_the_keyboard_reads_the_weights_that_python_computes(shown, folder, model, lens):
    choose(shown, "L1H2")
    page = shown.page
    example = read_head(folder, "L1H2")["examples"][0]
    (text,) = [each for each in TEXTS if each.id == example["id"]]
    weights = hs.view(hs.capture(model, text), lens).layer(1)[0, 2].double().numpy()
    page.locator("canvas.hs-text").first.focus()
    if lens == "effective":
        shown.act(lambda: page.keyboard.press("l"))
    shown.press("Home", "ArrowRight", "ArrowRight")
    tokens = example["queries"]["text"]
    assert shown.state["token"] == "0:2"
    check_reading(shown.text(".hs-card-reading"), f"“{tokens[2]}” attends to", tokens, weights[2])
    shown.press("x")
    check_reading(shown.text(".hs-card-reading"), f"“{tokens[2]}” is attended to by", tokens, weights[:, 2])
    shown.press("Escape")
    assert "token" not in shown.state


def check_reading(reading, start, tokens, weights):
    """The largest weights by size, with the names of their tokens."""
    assert reading.startswith(start)
    largest = sorted(range(len(tokens)), key=lambda place: -abs(weights[place]))[:4]
    pairs = re.findall(r"“([^”]*)” (−?\d\.\d+)", reading.removeprefix(start))
    assert [token for token, _ in pairs] == [tokens[place] for place in largest]
    for (_, number), place in zip(pairs, largest, strict=True):
        assert float(number.replace("−", "-")) == pytest.approx(weights[place], abs=6e-4)


def test_the_text_is_shaded_by_the_mean_weight_that_a_token_gets(shown, folder):
    choose(shown, "L1H1")
    received = read_head(folder, "L1H1")["examples"][0]["maps"][0]["received"]
    special = read_head(folder, "L1H1")["examples"][0]["queries"]["special"]
    limit = max(weight for place, weight in enumerate(received) if place not in special)
    found = shown.page.evaluate(
        "() => [...document.querySelector('canvas.hs-text').getContext('2d').getImageData(2, 6, 1, 1).data].slice(0, 3)"
    )
    assert is_color(found, colors_of(min(received[0], limit), limit))


def test_the_table_takes_the_place_of_the_picture_and_chooses_heads(shown, folder):
    page = shown.page
    page.locator("canvas.hs-scatter").focus()
    page.keyboard.press("t")
    rows = shown.table()
    assert rows[0] == ["head", "activity (raw)", "interval", "effective share", "interval"]
    shares = table_of(folder, "effective_share")
    assert [row[0] for row in rows[1:]] == sorted(NAMES, key=lambda name: -shares[name][0])
    for row in rows[1:]:
        assert float(row[3]) == pytest.approx(shares[row[0]][0], abs=6e-4)
        assert read_numbers(row[4]) == pytest.approx(shares[row[0]][1:], abs=6e-4)
    page.get_by_role("button", name=rows[3][0], exact=True).press("Enter")
    assert settle(shown).text(".hs-head-title") == rows[3][0]
    page.keyboard.press("t")
    assert page.locator("canvas.hs-scatter").is_visible()


def test_a_head_without_examples_says_so_and_an_unknown_one_too(shown):
    choose(shown, GONE)
    assert shown.text(".hs-notice") == "No example has a value for this head."
    shown.page.get_by_label("Find a head").fill("L9H9")
    shown.page.keyboard.press("Enter")
    assert shown.text(".hs-notice") == "There is no head “L9H9”. Heads are L0H0 to L1H3."


def test_script_in_ids_is_text(shown, folder):
    (name, *_) = [n for n in NAMES if any(each["id"] == ATTACK for each in read_head(folder, n)["examples"])]
    choose(shown, name)
    assert any(ATTACK in title for title in shown.page.locator(".hs-card-title").all_text_contents())
    assert shown.page.locator("img").count() == 0
    assert shown.page.title().endswith("atlas of 13 examples")


def test_exports_hold_the_numbers_and_the_picture(shown, folder):
    choose(shown, "L1H2")
    heads = list(csv.DictReader(io.StringIO(shown.export("Heads as CSV").decode("utf-8-sig"))))
    entropy = table_of(folder, "entropy", "raw")
    for row in heads:
        value, low, high = entropy[f"L{row['layer']}H{row['head']}"]
        assert (row["entropy@raw"], row["entropy@raw low"], row["entropy@raw high"]) == (
            ("", "", "") if value is None else (str(value), str(low), str(high))
        )
    assert shown.export("Heads as SVG").decode().count("<circle") == 2 * len(NAMES)
    assert shown.export("Heads as PNG").startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO(shown.export("Examples as CSV").decode("utf-8-sig"))))
    stored = read_head(folder, "L1H2")["examples"]
    assert len(rows) == sum(len(example["maps"][0]["keys"]) for example in stored)
    assert float(rows[0]["weight (raw)"]) == pytest.approx(stored[0]["maps"][0]["weights"][0] / 1e4)
    assert "hs.atlas(model" in shown.copy()


def test_a_missing_file_is_said_in_a_sentence(tab, folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "heads" / "L1H2.js").unlink()
    open_atlas(tab, copy, head="L1H2")
    tab.wait(LOADED)
    assert tab.text(".hs-notice").startswith("heads/L1H2.js could not be read. It belongs beside index.html: copy the")
    tab.problems.clear()  # the browser's own line about the file


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


def test_it_is_the_same_from_a_web_server(tab, folder):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        tab.page.goto("about:blank")
        tab.requests.clear()
        tab.page.goto(address)
        tab.wait("document.querySelector('.hs-card')")
        check_points(tab, table_of(folder, "activity", "raw"), table_of(folder, "effective_share"))
        server.shutdown()
    assert tab.problems == []
    assert all(request.startswith((address, "blob:")) for request in tab.requests)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_nothing_is_cut_off_in_either_theme(chromium, folder, theme):
    shown = open_tab(chromium, color_scheme=theme)
    for width in (1280, 760, 420):
        shown.page.set_viewport_size({"width": width, "height": 800})
        open_atlas(shown, folder, head="L1H2", token="0:2")
        assert shown.page.evaluate("() => document.scrollingElement.scrollWidth") <= width
    shown.page.locator("canvas.hs-scatter").focus()
    shown.page.keyboard.press("t")
    found = Axe().run(shown.page).response["violations"]
    assert not [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] in ("serious", "critical")]
    assert shown.page.locator(".hs-atlas").get_attribute("data-theme") == theme
    shown.page.context.close()

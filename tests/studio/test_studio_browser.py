"""The studio in a real browser, from the command that starts it: what a newcomer does, and what must not happen."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import transformers
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import headscope as hs
from headscope.core.example import Example
from headscope.engine.predictions import compare_predictions, predict
from tests.browser import browser
from tests.models import text, tiny
from tests.studio.live import save_model
from tests.viewer.pages import launch, open_tab

pytestmark = [browser, pytest.mark.timeout(600)]  # half a minute alone, minutes on a busy machine

SENTENCE = (
    "The old lighthouse keeper had counted every ship that passed since the war, and when the harbor closed at last he "
    "burned the long lists, locked the door, and walked home without looking back at the sea."
)
WORDS = "the cat sat on a mat and then it slept because it was tired"
EVIL = "<img src=x onerror=window.harmed=1>"
SCRIPT = "<script>window.harmed=1</script>"
IDLE = ".hs-place:not([aria-busy])"
MINUTE = 60_000


def save_files(folder):
    """Save a classifier, a folder that is no model, data for minutes and a result, with names that are markup."""
    names = dict(enumerate((EVIL, "good", "neither")))
    labels = {"id2label": names, "label2id": {name: index for index, name in names.items()}}
    save_model(folder / "classifier", "bert", transformers.AutoModelForSequenceClassification.from_config, **labels)
    (folder / "broken").mkdir()
    (folder / "broken" / "config.json").write_text('{"model_type": "bert"}')
    (folder / f"{EVIL}.txt").write_text("\n".join(text(12, seed) for seed in range(400)) * 100)
    hs.save(hs.measure(tiny("bert"), [WORDS, text(9)], statistics="entropy"), folder / f"{EVIL}.nc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def address(folder):
    """The address that `headscope studio` prints."""
    command = [sys.executable, "-m", "headscope", "studio", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            save_files(folder)
            yield next(found[0] for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/\S+", line)))
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def chromium():
    with launch() as browser:
        yield browser


@pytest.fixture
def studio(chromium, address):
    """A page of the studio that shows the example; nothing may leave this computer, and no markup may run."""
    with open_studio(chromium, address) as studio:
        yield studio


class open_studio:  # noqa: N801  (used as a function)
    """Open a studio in a context of its own, and look at what happened when it is closed."""

    def __init__(self, chromium, address, **options):
        self.shown, self.address = open_tab(chromium, **options), address

    def __enter__(self):
        page = self.shown.page
        page.on("dialog", lambda dialog: self.shown.problems.append(dialog.message))
        page.goto(self.address)
        wait_drawn(page)
        return self.shown

    def __exit__(self, *problem):
        page, origin = self.shown.page, self.address.partition("/?")[0]
        if problem == (None, None, None):
            assert page.evaluate("() => window.harmed") is None
            assert not page.locator("img[src='x']").count()
            assert not [url for url in self.shown.requests if not url.startswith((origin, "blob:", "data:"))]
            assert not [text for text in self.shown.problems if "400 (Bad Request)" not in text]
        page.context.close()


def wait_drawn(page):
    page.wait_for_selector(".hs-view canvas", timeout=2 * MINUTE)
    page.wait_for_selector(IDLE)


def find(page, role, name):
    return page.get_by_role(role, name=name, exact=True).locator("visible=true")


def look(page, sentence, model=None):
    """Look at a text, and wait until it is shown."""
    find(page, "tab", "Look").click()
    find(page, "textbox", "Text").fill(sentence)
    if model is not None:
        find(page, "combobox", "Model").select_option(label=model)
    find(page, "button", "Look").click()
    page.wait_for_selector(IDLE)
    expect(page.locator(".hs-title")).to_contain_text(sentence[:30])


def tab_to(page, element):
    """Press Tab until an element has the focus."""
    for _ in range(60):
        if element.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {element}")


def least_effective(minilm):
    share = hs.view(hs.capture(minilm, SENTENCE), "effective").diagnostics["share"][0]
    assert share.max() > share.min() + 0.1
    layer, head = divmod(int(share.argmin()), share.shape[1])
    return {"layer": str(layer), "head": str(head)}


def is_shown(state, expected):
    return {name: state.get(name, "0") for name in expected} == expected


def test_a_newcomer_finds_the_least_effective_head_and_exports_it(studio, minilm):
    page = studio.page
    look(page, SENTENCE)
    studio.act(lambda: find(page, "combobox", "Order").select_option(label="by the number"))
    box = page.get_by_role("application", name="All heads").bounding_box()
    last = studio.scan("All heads", xs=[int(box["width"]) - 24, int(box["width"]) - 23, 1])[-1]
    place = {"x": last.box[0], "y": (last.box[1] + last.box[3]) // 2}
    studio.act(lambda: page.get_by_role("application", name="All heads").click(position=place))
    assert studio.state["view"] == "head"
    assert is_shown(studio.state, least_effective(minilm))
    studio.act(lambda: find(page, "tab", "Lenses").click())
    expect(page.locator(".hs-reading")).to_contain_text("effective")
    assert studio.export("Picture (PNG)").startswith(b"\x89PNG")
    assert b"<svg" in studio.export("Vectors (SVG)")


def test_the_keyboard_alone_leads_there_too(studio, minilm):
    page, keyboard = studio.page, studio.page.keyboard
    tab_to(page, find(page, "textbox", "Text"))
    keyboard.press("Control+A")
    keyboard.insert_text(SENTENCE)
    keyboard.press("Control+Enter")
    expect(page.locator(".hs-title")).to_contain_text(SENTENCE[:30])
    keyboard.press("Escape")
    tab_to(page, find(page, "combobox", "Order"))
    studio.press("End")
    tab_to(page, find(page, "application", "All heads"))
    studio.press(*["ArrowDown"] * 5, *["ArrowRight"] * 11)
    studio.press("Enter")
    assert is_shown(studio.state, least_effective(minilm))
    studio.press("3")
    assert studio.state["view"] == "compare"
    with page.expect_download() as saving:
        keyboard.press("e")
        keyboard.press("Enter")
    assert Path(saving.value.path()).read_bytes().startswith(b"\x89PNG")


SCORES = """() => [...document.querySelectorAll('.hs-scores tbody tr')].map(row =>
  [row.querySelector('th').textContent, ...[...row.querySelectorAll('td')].map(cell => Number(cell.dataset.value))])"""


def predict_again(page, action):
    """Do something that changes the prediction, and return the rows of the new one."""
    before = page.wait_for_selector(".hs-predictions:not([aria-busy]) .hs-scores")
    action()
    before.wait_for_element_state("hidden")
    page.wait_for_selector(".hs-predictions:not([aria-busy]) .hs-scores")
    return page.evaluate(SCORES)


@pytest.mark.parametrize(("way", "edit"), [("They write nothing", "zero_heads"), ("alike", "uniform_heads")])
def test_switching_heads_off_shows_the_prediction_that_python_computes(studio, folder, way, edit):
    page, example = studio.page, Example("text", WORDS, None)
    look(page, WORDS, "classifier")
    find(page, "tab", "Heads off").click()
    page.get_by_text(way).click()
    page.keyboard.press("Escape")
    studio.press("ArrowRight", "ArrowRight")
    predict_again(page, find(page, "button", "Switch off L0H2").click)
    page.keyboard.press("Escape")
    studio.press("ArrowDown")
    rows = predict_again(page, lambda: page.keyboard.press("o"))
    model = hs.load(folder / "classifier")
    before = predict(model, example)
    with hs.edited(model, f"{edit}:heads=L0H2+L1H2") as changed:
        expected = compare_predictions(before, predict(changed, example), 8)
    assert max(abs(after - before) for _, before, after in expected) > 1e-4
    assert [name for name, *_ in rows] == [name for name, *_ in expected]
    assert [row[1:] for row in rows] == [pytest.approx(row[1:], abs=1e-5) for row in expected]
    rows = predict_again(page, find(page, "button", "All on").click)
    assert [row[1:] for row in rows] == [pytest.approx([before], abs=1e-5) for _, before, _ in expected]


PRESS = """keys => keys.forEach(key =>
  document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })))"""


def test_keys_act_on_the_chosen_head_before_it_is_drawn(studio):
    page = studio.page
    look(page, WORDS, "classifier")
    find(page, "tab", "Heads off").click()
    page.keyboard.press("Escape")
    page.evaluate(PRESS, ["ArrowRight", "ArrowDown", "o"])  # in one task, so that nothing is drawn between them
    assert is_shown(studio.state, {"layer": "1", "head": "1"})
    expect(page.locator(".hs-chips")).to_have_text("L1H1 ×")


def test_keys_move_between_heads_before_their_pictures_are_here(studio):
    page = studio.page
    held = []
    page.route("**/*thumbs*", lambda route: held.append(route))
    look(page, WORDS, "classifier")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert is_shown(studio.state, {"layer": "1", "head": "1"})
    assert held  # otherwise this test saw nothing
    for request in held:
        request.continue_()
    expect(page.locator(".hs-reading")).to_contain_text("L1H1")


def test_a_prediction_is_marked_while_a_newer_one_is_computed(studio):
    page, held = studio.page, []
    look(page, WORDS, "classifier")
    find(page, "tab", "Heads off").click()
    page.wait_for_selector(".hs-predictions:not([aria-busy]) .hs-scores")
    page.route("**/api/predict", lambda route: held.append(route))
    with page.expect_request("**/api/predict"):
        find(page, "button", "Switch off L0H0").click()
    expect(page.locator(".hs-predictions")).to_have_attribute("aria-busy", "true")
    expect(page.locator(".hs-scores")).to_be_visible()
    for request in held:
        request.continue_()
    page.wait_for_selector(".hs-predictions:not([aria-busy]) .hs-scores")
    assert len(page.evaluate(SCORES)[0]) == 3  # with all heads, and without


def test_maps_without_a_head_are_shown_beside_the_others(studio):
    page = studio.page
    look(page, WORDS, "classifier")
    find(page, "tab", "Heads off").click()
    find(page, "button", "Switch off L0H0").click()
    find(page, "checkbox", "Also show the maps without them").check()
    expect(page.locator(".hs-reading")).to_contain_text("classifier with zero_heads:heads=L0H0")
    assert studio.state["view"] == "models"


def test_a_measurement_survives_a_reload_and_is_cancelled_and_another_one_opens(studio):
    page = studio.page
    find(page, "tab", "Run").click()
    form = page.get_by_role("form", name="Start a run")
    form.get_by_role("combobox", name="Model", exact=True).select_option(label="classifier")
    form.get_by_role("combobox", name="Data").select_option(label=f"{EVIL}.txt")
    form.get_by_role("textbox", name="Name of the result").fill("long")
    find(page, "button", "Start").click()
    page.wait_for_function("() => document.querySelector('.hs-job progress')?.value > 0", timeout=MINUTE)
    page.reload()
    expect(page.locator(".hs-job")).to_contain_text(f"long.nc: entropy of {EVIL}.txt")
    page.wait_for_function("() => document.querySelector('.hs-job progress')?.value > 0", timeout=MINUTE)
    find(page, "button", "Cancel").click()
    expect(page.locator(".hs-job[data-state=cancelled]")).to_contain_text("It can be resumed.", timeout=MINUTE)
    find(page, "combobox", "Data").select_option(label="sample (bundled)")
    find(page, "combobox", "Model").select_option(label="classifier")
    find(page, "spinbutton", "Examples at most").fill("3")
    find(page, "button", "Start").click()
    find(page, "button", "Open").click(timeout=MINUTE)
    expect(page.locator(".hs-reading")).to_contain_text("entropy, seen through raw and effective over 3 examples")
    page.reload()
    expect(page.locator(".hs-reading")).to_contain_text("entropy, seen through raw and effective over 3 examples")


def test_a_model_that_does_not_load_is_a_sentence_and_the_studio_goes_on(studio):
    page = studio.page
    alert = page.get_by_role("alert").locator("visible=true")
    find(page, "combobox", "Model").select_option(label="broken")
    find(page, "button", "Look").click()
    expect(alert).to_contain_text("holds no usable model")
    find(page, "combobox", "Model").select_option(label="another, by its name …")
    find(page, "textbox", "Hub id or folder").fill("../../etc")
    page.keyboard.press("Enter")
    expect(alert).to_contain_text("is neither a hub id nor a folder of models")
    look(page, WORDS, "classifier")
    expect(alert).to_have_count(0)


def test_markup_in_texts_labels_and_names_is_text(studio):
    page = studio.page
    look(page, f"{EVIL} {SCRIPT}", "all-MiniLM-L6-v2 (default)")
    expect(page.locator(".hs-title")).to_contain_text(EVIL)
    page.keyboard.press("Escape")
    studio.press("2")
    look(page, WORDS, "classifier")
    expect(page.locator(".hs-facts")).to_contain_text(EVIL)
    find(page, "tab", "Heads off").click()
    expect(page.locator(".hs-scores")).to_contain_text(EVIL)
    find(page, "tab", "Results").click()
    page.get_by_role("button", name=f"{EVIL}.nc").click()
    expect(page.locator(".hs-reading")).to_contain_text("entropy")


def test_a_reload_shows_the_same_text_and_head_again(studio):
    page = studio.page
    look(page, WORDS, "classifier")
    page.keyboard.press("Escape")
    studio.press("ArrowRight", "ArrowDown")
    expect(page.locator(".hs-reading")).to_contain_text("L1H1")
    page.reload()
    expect(page.locator(".hs-title")).to_contain_text(WORDS)
    expect(page.locator(".hs-reading")).to_contain_text("L1H1")
    expect(find(page, "textbox", "Text")).to_have_value(WORDS)
    find(page, "textbox", "Text").fill("the dog ran")
    find(page, "button", "Look").click()
    expect(page.locator(".hs-title")).to_contain_text("the dog ran")  # what the form says now, not what was kept


def test_a_broken_stream_of_events_is_said_and_mended(studio):
    page = studio.page
    page.route("**/api/events", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("alert").locator("visible=true")).to_contain_text("Trying to connect again")
    page.unroute("**/api/events")
    expect(page.get_by_role("alert").locator("visible=true")).to_have_count(0)
    studio.problems.clear()  # the aborted requests


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_either_theme(chromium, address, theme):
    with open_studio(chromium, address, color_scheme=theme) as studio:
        page = studio.page
        page.set_viewport_size({"width": 760, "height": 800})
        for tab in ("Look", "Heads off", "Results", "Run"):
            find(page, "tab", tab).click()
            found = Axe().run(page, context=None if tab == "Look" else ".hs-side").response["violations"]
            assert not [rule["id"] for rule in found if rule["impact"] in ("serious", "critical")]
        assert page.evaluate("() => document.scrollingElement.scrollWidth") <= 760
        assert page.locator(".hs-studio").get_attribute("data-theme") == theme

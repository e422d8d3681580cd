"""The page in Chromium, from a disk: it asks for nothing, may not, and runs no script that is in its content."""

import numpy as np
import pytest

import headscope as hs
from tests.browser import browser
from tests.viewer.known import TEXT, write_text

pytestmark = browser
EVIL = "<img src=x onerror='document.title=1'><script>document.title=1</script>"
FETCH = """async address => {
  try { await fetch(address); return 'fetched'; } catch (error) { return error.name; }
}"""
ADD = "name => document.body.append(Object.assign(document.createElement(name)"
REFUSED = {
    "img-src": "() => Object.assign(new Image(), { src: 'https://example.org/a.png' })",
    "script-src-elem": f"() => ({ADD}, {{ textContent: 'document.title = 1' }})))('script')",
    "frame-src": f"() => ({ADD}, {{ src: 'https://example.org' }})))('iframe')",
    "style-src-attr": "() => document.body.setAttribute('style', 'background: url(https://example.org/a.png)')",
    "connect-src": "() => { try { new WebSocket('ws://127.0.0.1:9'); } catch { return; } }",
}
"""What scripts may try, by the rule that forbids it."""

VIOLATIONS = """() => {
  window.refused = [];
  document.addEventListener('securitypolicyviolation', event => window.refused.push(event.effectiveDirective));
}"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("page") / "page.html").path


def test_the_page_requests_nothing_but_itself(shown, path):
    shown.open(path)
    for key in "23451":
        shown.press(key)
    shown.export("Picture (PNG)")
    assert [address for address in shown.requests if not address.startswith("blob:")] == [path.as_uri()]
    assert not shown.problems


@pytest.mark.parametrize("address", ["https://example.org/", "http://127.0.0.1:9/", "file:///etc/hosts", "data:,a"])
def test_the_page_may_not_fetch(shown, path, address):
    shown.open(path)
    assert shown.page.evaluate(FETCH, address) == "TypeError"


@pytest.mark.parametrize("rule", REFUSED)
def test_the_policy_refuses_all_else(shown, path, rule):
    shown.open(path)
    shown.page.evaluate(VIOLATIONS)
    title = shown.page.title()
    shown.page.evaluate(REFUSED[rule])
    shown.wait(f"window.refused.includes('{rule}')")
    assert shown.page.title() == title


def test_no_script_in_tokens_and_names_runs(shown, tmp_path):
    tokens = [
        EVIL,
        "</script><script>document.title=1</script>",
        "javascript:alert(1)",
        "&lt;b&gt;",
        "'\"`${1}",
        "=HYPERLINK(1)",
    ]
    weights = np.random.default_rng(0).dirichlet(np.ones(6), (1, 2, 6)).astype(np.float32)
    maps = hs.view(hs.Trace.of([weights], tokens), "raw")
    name = EVIL.replace("/", "∕")[:120]
    page = hs.save({EVIL: maps, "other": maps}, tmp_path / f"{name}.html")
    shown.open(page, view="grid")
    title = shown.page.title()
    assert "<img src=x" in title
    for key in "2461":
        shown.press(key)
        shown.page.keyboard.press("t")
        shown.table()
        shown.page.keyboard.press("t")
    shown.open(page, view="head", tokens=0)
    assert "“<img src=x onerror='documen…”" in shown.reading
    assert title == shown.text(".hs-title")
    assert shown.page.locator(".headscope-viewer img, .headscope-viewer script, .headscope-viewer b").count() == 0
    assert shown.page.title() == title
    rows = shown.export_csv()
    assert [row["key token"] for row in rows] == [*tokens[:-1], f"'{tokens[-1]}"]  # no formula of a spreadsheet
    svg = shown.export("Vectors (SVG)").decode()
    assert "<script" not in svg
    assert "<img" not in svg


@pytest.mark.parametrize(
    "fragment",
    [
        "view=<script>&lens=%00&layer=1e9",
        "tokens=,,,-1,99999999999&mass=9&count=-3",
        "sheet=7&second=8&head=-1&theme=x",
        "%",
        "view=head&start=99999&count=99999",
    ],
)
def test_a_broken_address_shows_what_there_is(shown, path, fragment):
    shown.page.goto("about:blank")
    shown.problems.clear()
    shown.page.goto(f"{path.as_uri()}#{fragment}")
    shown.wait("performance.getEntriesByName('headscope:view').length")
    assert shown.reading
    assert not shown.problems


def test_a_page_that_was_cut_off_says_so(shown, path, tmp_path):
    content = path.read_text(encoding="utf-8")
    cut = tmp_path / "cut.html"
    cut.write_text(content[: content.index('id="0/1/map/1"')], encoding="utf-8")
    shown.open(cut, view="grid")
    shown.page.keyboard.press("2")
    shown.page.goto(f"{cut.as_uri()}#view=head&lens=effective&layer=1")
    shown.wait("document.querySelector('.hs-reading').textContent.includes('could not be drawn')")
    assert "it may have been cut off" in shown.reading


def test_words_without_the_script_say_what_is_missing(chromium, path):
    page = chromium.new_context(java_script_enabled=False).new_page()
    page.goto(path.as_uri())
    assert "needs JavaScript" in page.locator("#headscope-root").inner_html()
    assert TEXT[:20] in page.title()

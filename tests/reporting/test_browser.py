"""The page in a real browser: it fits, it is dark where it should be, and its pictures are there."""

import re
import subprocess

import pytest

from headscope.reporting.report import report
from tests.browser import CHROMIUM, browser
from tests.reporting.data import document

pytestmark = browser

ASK = """<script>addEventListener("load", () => {
  const ground = (each) => getComputedStyle(each).backgroundColor;
  const whole = [...document.images].every((each) => each.naturalWidth > 0);
  const found = [document.documentElement.scrollWidth, innerWidth, whole, ground(document.body)];
  parent.postMessage([...found, ground(document.querySelector(".card"))].join(" | "), "*");
})</script>"""
FRAME = """<!DOCTYPE html><body><script>onmessage = (each) => { document.body.dataset.found = each.data; };</script>
<iframe src="asked.html" width="WIDE" height="900" style="border: 0"></iframe></body>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return report(document(), tmp_path_factory.mktemp("browser") / "out")


def chromium(page, *options):
    home = page.parent.parent / "profile"
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={home}"]
    done = subprocess.run([CHROMIUM, *quiet, *options, page.as_uri()], capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(page, wide, *options):
    """How wide the page and its frame are, whether all pictures are there, and two colours."""
    text = page.read_text(encoding="utf-8").replace("</body>", f"{ASK}</body>")
    page.with_name("asked.html").write_text(text, encoding="utf-8")
    frame = page.with_name("frame.html")
    frame.write_text(FRAME.replace("WIDE", str(wide)), encoding="utf-8")  # windows are not as narrow as telephones
    shown = chromium(frame, "--dump-dom", "--virtual-time-budget=3000", *options)
    found, window, *rest = re.search(r'data-found="([^"]+)"', shown)[1].split(" | ")
    return int(found), int(window), *rest


@pytest.mark.parametrize("wide", [400, 1280])
def test_the_page_is_never_wider_than_its_window(page, wide):
    found, window, pictures, ground, card = asked(page, wide, "--window-size=1400,1000")
    assert found <= window == wide
    assert (pictures, ground, card) == ("true", "rgb(255, 255, 255)", "rgb(255, 255, 255)")


def test_dark_pages_keep_their_figures_on_white(page):
    *_, ground, card = asked(page, 800, "--blink-settings=preferredColorScheme=0")
    assert ground == "rgb(23, 24, 26)"
    assert card == "rgb(255, 255, 255)"


def test_the_page_prints(page):
    target = page.parent.parent / "page.pdf"
    chromium(page, "--no-pdf-header-footer", f"--print-to-pdf={target}")
    assert target.read_bytes().startswith(b"%PDF")

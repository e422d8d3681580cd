"""An open page of the viewer: what its canvases show, what it says, and what it exports."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser import CHROMIUM

WINDOW = {"width": 1280, "height": 800}
COLORS = json.loads((Path(__file__).parents[2] / "frontend" / "src" / "colors.json").read_text())
VIEWS = ("grid", "head", "compare", "matrix", "layers", "models", "result")

FIND = """label => [...document.querySelectorAll('canvas[aria-label]')]
  .find(each => each.ariaLabel.startsWith(label) && each.getClientRects().length)"""
SCAN = f"""([label, xs, ys]) => {{
  const canvas = ({FIND})(label);
  const [frame, tips] = [canvas.getBoundingClientRect(), [...document.querySelectorAll('.hs-tip')]];
  const context = canvas.getContext('2d');
  const [boxes, right, bottom] = [{{}}, xs ? xs[1] : frame.width, ys ? ys[1] : frame.height];
  for (let y = ys ? ys[0] : 1; y < bottom; y += ys ? ys[2] : 6)
    for (let x = xs ? xs[0] : 1; x < right; x += xs ? xs[2] : 6) {{
      const at = {{ clientX: frame.left + x + 0.5, clientY: frame.top + y + 0.5 }};
      canvas.dispatchEvent(new PointerEvent('pointermove', at));
      const tip = tips.find(each => !each.hidden);
      if (!tip) continue;
      const text = [...tip.children].map(line => line.textContent).join('\\n');
      const box = boxes[text] ??= [x, y, x, y];
      [box[2], box[3]] = [Math.max(box[2], x), Math.max(box[3], y)];
      [box[0], box[1]] = [Math.min(box[0], x), Math.min(box[1], y)];
    }}
  canvas.dispatchEvent(new PointerEvent('pointerleave'));
  return Object.entries(boxes).map(([text, [left, top, right, bottom]]) => {{
    const [x, y] = [(left + right) >> 1, (top + bottom) >> 1];
    return {{ text, box: [left, top, right, bottom], color: [...context.getImageData(x, y, 1, 1).data].slice(0, 3) }};
  }});
}}"""
PIXELS = f"([label, ...box]) => [...({FIND})(label).getContext('2d').getImageData(...box).data]"
DRAWN = "() => performance.getEntriesByName('headscope:view').length"
WAIT = """() => new Promise((resolve, reject) => {
  const start = performance.now();
  const check = () => {
    if (CONDITION) resolve();
    else if (performance.now() - start > 6e4) reject(new Error('the viewer never did what is waited for'));
    else setTimeout(check, 5);
  };
  check();
})"""
SETTLE = f"""async () => {{
  const [count, frame] = [{DRAWN}, () => new Promise(resolve => requestAnimationFrame(resolve))];
  for (let before = 0; performance.now() < 6e4; await frame(), await frame()) {{
    if (before && before === count()) return;
    before = count();
  }}
  throw new Error('nothing was drawn');
}}"""
TABLE = """() => [...document.querySelectorAll('.hs-table tr')]
  .map(row => [...row.children].map(cell => cell.textContent))"""


@dataclass(frozen=True)
class Spot:
    """A part of a canvas with one tooltip: its lines, its box in pixels, and the color of its middle."""

    lines: list[str]
    box: tuple[int, int, int, int]
    color: tuple[int, int, int]


@dataclass
class Shown:
    """A page of the viewer in Chromium."""

    page: Page
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def open(self, path: Path, **state: Any) -> "Shown":
        """Open a file in a state of its address, and wait until it is drawn, and not drawn again for its size."""
        self.page.goto("about:blank")
        self.requests.clear()
        self.problems.clear()
        self.page.goto(f"{path.resolve().as_uri()}#{urlencode(state)}")
        self.page.evaluate(SETTLE)
        return self

    def wait(self, condition: str) -> "Shown":
        """Wait until an expression is true; `wait_for_function` would evaluate it, which the page forbids."""
        self.page.evaluate(WAIT.replace("CONDITION", condition))
        return self

    def act(self, action: Callable[[], Any]) -> "Shown":
        """Do something, and wait until the view is drawn again."""
        before = self.page.evaluate(DRAWN)
        action()
        return self.wait(f"({DRAWN})() > {before}")

    def press(self, *keys: str) -> "Shown":
        """Press keys one after the other, each of which draws the view again."""
        for key in keys:
            self.act(lambda key=key: self.page.keyboard.press(key))
        return self

    def scan(self, label: str, xs: list[int] | None = None, ys: list[int] | None = None) -> list[Spot]:
        """Point at all of a canvas, or at a range (start, end, step) of it."""
        found = self.page.evaluate(SCAN, [label, xs, ys])
        return [Spot(each["text"].split("\n"), tuple(each["box"]), tuple(each["color"])) for each in found]

    def pixel(self, label: str, x: float, y: float) -> tuple[int, int, int]:
        """Return the color at a place of a canvas."""
        red, green, blue = self.column(label, x, y, 1)[0].tolist()
        return red, green, blue

    def column(self, label: str, x: float, y: float, height: int) -> Any:
        """Return the colors of some pixels of a canvas, one below the other."""
        found = self.page.evaluate(PIXELS, [label, int(x), int(y), 1, height])
        return np.reshape(found, (height, 4))[:, :3]

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return self.page.locator(selector).first.text_content() or ""

    @property
    def reading(self) -> str:
        """The sentence above the picture."""
        return self.text(".hs-reading").replace("\N{NO-BREAK SPACE}", " ")

    @property
    def state(self) -> dict[str, str]:
        """What the address holds."""
        return dict(part.split("=", 1) for part in self.page.url.partition("#")[2].split("&") if part)

    def table(self) -> list[list[str]]:
        """Return the lines of the table, which must be open."""
        self.page.wait_for_selector(".hs-table td")
        lines: list[list[str]] = self.page.evaluate(TABLE)
        return lines

    def export(self, item: str) -> bytes:
        """Choose an item of the menu of exports, and return the file that is saved."""
        with self.page.expect_download() as saving:
            self._choose(item)
        return Path(saving.value.path()).read_bytes()

    def export_csv(self) -> list[dict[str, str]]:
        """Return the lines of the CSV."""
        return list(csv.DictReader(io.StringIO(self.export("Numbers (CSV)").decode("utf-8-sig"))))

    def copy(self, item: str = "Copy the Python lines") -> str:
        """Choose an item that copies text, and return the text."""
        self._choose(item)
        self.wait("document.querySelector('.hs-reading').textContent.includes('clipboard')")
        text: str = self.page.evaluate("() => navigator.clipboard.readText()")
        return text

    def _choose(self, item: str) -> None:
        self.page.keyboard.press("e")
        self.page.get_by_role("button", name=item).press("Enter")


@contextmanager
def launch() -> Iterator[Browser]:
    """Start Chromium."""
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def open_tab(browser: Browser, **options: Any) -> Shown:
    """Return an empty page that writes down its requests and errors."""
    context = browser.new_context(viewport=WINDOW, permissions=["clipboard-read", "clipboard-write"], **options)
    shown = Shown(context.new_page())
    shown.page.set_default_timeout(20_000)
    shown.page.on("request", lambda request: shown.requests.append(request.url))
    shown.page.on("pageerror", lambda error: shown.problems.append(str(error)))
    shown.page.on("console", lambda message: message.type == "error" and shown.problems.append(message.text))
    return shown


def colors_of(weights: Any, limit: float, *, signed: bool = False, theme: str = "light") -> Any:
    """Return red, green and blue of weights by the table of the figures."""
    table = LinearSegmentedColormap.from_list("table", COLORS[theme]["signed" if signed else "weights"], N=1024)
    shares = np.asarray(weights) / limit
    return np.asarray(table((shares + 1) / 2 if signed else shares, bytes=True))[..., :3].astype(int)


def is_color(found: Any, expected: Any, tolerance: int = 4) -> bool:
    """Tell whether two colors are the same but for a step of the table of 256."""
    return bool(np.abs(np.asarray(found, int) - np.asarray(expected, int)).max() <= tolerance)

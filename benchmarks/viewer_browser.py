"""What pages of attention maps cost in a browser: the same clock, frames and counts for BertViz and headscope.

A picture counts as visible once the frame that shows it was painted. Work is CPU time of the page's main thread, from
Chromium's own metrics, so that other processes of the machine do not count.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

HEADS = 144
MOVES = 40
LONGEST_MS = 1_200_000  # BertViz draws 128 tokens for minutes on a busy machine
WINDOW = {"width": 1280, "height": 800}
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
SCRIPTS = {
    "require.min.js": ("requirejs@2.3.6", "requirejs/require.js"),
    "jquery.min.js": ("jquery@2.1.0", "jquery/dist/jquery.min.js"),  # of 2.0.0, which it asks for, there is no package
    "d3.min.js": ("d3@5.7.0", "d3/dist/d3.min.js"),
}
"""Packages and their files that stand for what BertViz loads from the network."""

PAINTED = """
window.painted = condition => new Promise(resolve => {
  const check = () => {
    if (!condition()) return requestAnimationFrame(check);
    const channel = new MessageChannel();  // its message comes after the frame that follows this check
    channel.port1.onmessage = () => resolve(performance.now());
    channel.port2.postMessage(0);
  };
  requestAnimationFrame(check);
});
"""
HEADSCOPE_SHOWN = 'performance.getEntriesByName("headscope:grid").length > 0'
HEADSCOPE_HEAD_SHOWN = 'performance.getEntriesByName("headscope:view").length > 0'
MODEL_VIEW_SHOWN = 'document.querySelectorAll(".attn_background").length === HEADS'
HEAD_VIEW_SHOWN = 'document.querySelector("#attention line") !== null'
CHANGE_SELECT = """async layer => {
  const [select, start] = [document.querySelector("select#layer"), performance.now()];
  select.value = String(layer);
  select.dispatchEvent(new Event("change", {bubbles: true}));
  return await painted(() => true) - start;
}"""
EXPECT_KEY = """layer => {
  window.changed = new Promise(resolve => addEventListener("keydown", async event => {
    const drawn = mark => mark.startTime >= event.timeStamp && mark.detail.layer === layer;
    resolve(await painted(() => performance.getEntriesByName("headscope:view").some(drawn)) - event.timeStamp);
  }, {once: true, capture: true}));
}"""
VISIBLE_BOX = """label => {
  const canvas = [...document.querySelectorAll("canvas")].find(each => each.ariaLabel?.startsWith(label));
  const [inner, outer] = [canvas.getBoundingClientRect(), canvas.parentElement.getBoundingClientRect()];
  const [x, y] = [Math.max(inner.x, outer.x), Math.max(inner.y, outer.y)];
  const right = Math.min(inner.right, outer.right, innerWidth);
  const bottom = Math.min(inner.bottom, outer.bottom, innerHeight);
  return [x, y, right - x, bottom - y];
}"""
COUNT_HOVERS = '() => performance.getEntriesByName("headscope:hover").length'
LEFT_TOKENS = """() => [...document.querySelectorAll("#left .background")].map(token => {
  const {x, y, width, height} = token.getBoundingClientRect();
  return [x + width / 2, y + height / 2];
}).filter(([x, y]) => y > 0 && y < innerHeight)"""


@dataclass(frozen=True)
class Shown:
    """What it took until all heads were visible."""

    wall_s: float
    work_s: float  # CPU time of the main thread
    nodes: int
    requests: int  # that are neither file: nor data: nor blob:


@dataclass(frozen=True)
class Handled:
    """What it takes to look around in one head or layer."""

    hover_ms: float  # CPU time of the main thread per move of the mouse
    first_ms: float  # from the key or the choice until the other layer is painted
    again_ms: float  # the same for a layer that was shown before
    nodes: int


@dataclass
class Opened:
    """An open page, with what it asked the network for."""

    page: Any
    metrics: Any
    requests: list[str] = field(default_factory=list)

    def work(self) -> float:
        """Return the CPU seconds of the page's main thread."""
        found = {metric["name"]: metric["value"] for metric in self.metrics.send("Performance.getMetrics")["metrics"]}
        return float(found["ThreadTime"])

    def wait(self) -> None:
        """Wait until the page shows something and is read to its end: what it does later is not reading."""
        self.page.evaluate("() => window.shown")
        self.page.wait_for_load_state("load")

    def count_nodes(self) -> int:
        """Return the elements of the page."""
        return int(self.page.evaluate("() => document.querySelectorAll('*').length"))


def find_chromium() -> str:
    """Return where Chromium is."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        raise SystemExit("This benchmark opens pages in Chromium, which is not installed here: make browser.")
    return found


@contextmanager
def launch() -> Iterator[Any]:
    """Start Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def install_scripts(folder: Path) -> dict[str, Path]:
    """Return the scripts that BertViz's page loads, from npm."""
    files = {name: folder / "node_modules" / file for name, (_, file) in SCRIPTS.items()}
    if not all(file.is_file() for file in files.values()):
        packages = [package for package, _ in SCRIPTS.values()]
        if shutil.which("npm") is None:
            raise SystemExit(
                f"BertViz loads scripts from the network; npm is missing to install {', '.join(packages)}."
            )
        options = ["--silent", "--no-save", "--no-package-lock", "--prefix", str(folder)]
        subprocess.run(["npm", "install", *options, *packages], check=True)
    return files


@contextmanager
def open_page(
    browser: Any, path: Path, shown: str, *, fragment: str = "", scripts: dict[str, Path]
) -> Iterator[Opened]:
    """Open a file in a fresh context; `window.shown` is when the expression `shown` was true and painted."""
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    page.set_default_timeout(LONGEST_MS)
    opened = Opened(page, context.new_cdp_session(page))
    opened.metrics.send("Performance.enable")
    page.on("request", lambda request: opened.requests.append(request.url))
    for name, file in scripts.items():
        page.route(f"https://**/{name}", partial(_serve, file))
    condition = shown.replace("HEADS", str(HEADS))
    page.add_init_script(f"{PAINTED} window.shown = painted(() => {condition});")
    page.goto(f"{path.resolve().as_uri()}{fragment}", wait_until="commit")
    try:
        yield opened
    finally:
        context.close()


def _serve(file: Path, route: Any) -> None:
    route.fulfill(path=file, content_type="text/javascript")


def opens_from(browser: Any, path: Path, count: int) -> bool:
    """Tell whether the first bytes of headscope's page, alone, show all heads."""
    start = path.with_name("start.html")
    start.write_bytes(path.read_bytes()[:count])
    with open_page(browser, start, HEADSCOPE_SHOWN, scripts={}) as opened:
        return bool(
            opened.page.evaluate("() => Promise.race([window.shown, new Promise(end => setTimeout(end, 2e4))])")
        )


def list_foreign(requests: Sequence[str]) -> list[str]:
    """Return the requests that leave the page."""
    return [address for address in requests if not address.startswith(("file:", "data:", "blob:"))]


def measure_shown(browser: Any, path: Path, shown: str, scripts: dict[str, Path]) -> Shown:
    """Open a page and wait until all heads are visible."""
    with open_page(browser, path, shown, scripts=scripts) as opened:
        wall = opened.page.evaluate("() => window.shown") / 1e3
        work = opened.work()
        return Shown(wall, work, opened.count_nodes(), len(list_foreign(opened.requests)))


def measure_headscope(browser: Any, path: Path, layers: int) -> Handled:
    """Point at cells of a head, go through its layers with the keyboard, and back."""
    with open_page(browser, path, HEADSCOPE_HEAD_SHOWN, fragment="#view=head&layer=0&head=0", scripts={}) as opened:
        opened.wait()
        hover = _hover_over(opened, "Attention map")
        opened.page.mouse.move(2, 2)
        first = [_press(opened.page, "ArrowDown", layer) for layer in range(1, layers)]
        again = [_press(opened.page, "ArrowUp", layer) for layer in reversed(range(layers - 1))]
        return Handled(hover, median(first), median(again), opened.count_nodes())


def _hover_over(opened: Opened, label: str) -> float:
    """Return the milliseconds of work per move over a canvas, which must have answered to nearly every one."""
    x, y, width, height = opened.page.evaluate(VISIBLE_BOX, label)
    places = [(x + width * _fold(0.31 * move), y + height * _fold(0.17 * move)) for move in range(1, MOVES + 1)]
    before = opened.page.evaluate(COUNT_HOVERS)
    spent = measure_hover(opened, places)
    answered = opened.page.evaluate(COUNT_HOVERS) - before
    if answered < 0.8 * MOVES:
        raise RuntimeError(f"The canvas '{label}' answered to {answered} of {MOVES} moves: nothing was measured.")
    return spent


def _fold(place: float) -> float:
    """Return a place between a fifth and four fifths of a side."""
    return 0.2 + 0.6 * (place % 1)


def _press(page: Any, key: str, layer: int) -> float:
    page.evaluate(EXPECT_KEY, layer)
    page.keyboard.press(key)
    return float(page.evaluate("() => window.changed"))


def measure_bertviz(browser: Any, path: Path, layers: Sequence[int], scripts: dict[str, Path]) -> Handled:
    """Point at tokens of BertViz's head view, choose layers, and the same ones again."""
    with open_page(browser, path, HEAD_VIEW_SHOWN, scripts=scripts) as opened:
        opened.wait()
        tokens = opened.page.evaluate(LEFT_TOKENS)
        hover = measure_hover(opened, [tokens[(7 * move) % len(tokens)] for move in range(MOVES)])
        opened.page.mouse.move(2, 2)
        first, again = ([opened.page.evaluate(CHANGE_SELECT, layer) for layer in layers] for _ in range(2))
        return Handled(hover, median(first), median(again), opened.count_nodes())


def measure_hover(opened: Opened, places: Sequence[Sequence[float]]) -> float:
    """Return the milliseconds of main-thread work per move, less those of as many frames without one."""
    opened.page.mouse.move(*places[-1])
    waited = _measure_work(opened, [lambda: None] * len(places))
    moved = _measure_work(opened, [lambda place=place: opened.page.mouse.move(*place) for place in places])
    return 1e3 * (moved - waited) / len(places)


def _measure_work(opened: Opened, actions: Sequence[Callable[[], Any]]) -> float:
    opened.page.evaluate("() => painted(() => true)")
    before = opened.work()
    for act in actions:
        act()
        opened.page.evaluate("() => painted(() => true)")
    return opened.work() - before

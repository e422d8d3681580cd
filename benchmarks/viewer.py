"""The viewer's page beside BertViz's, both opened in Chromium.

python -m benchmarks.viewer [--quick] [--out FILE.json]

Real attention of 12 layers × 12 heads: the default model with its six layers twice, on the bundled paragraphs. BertViz
shows all heads in its model_view, and hover and a choice of layer in its head_view; it loads require.js, jQuery and d3
from the network, which are served from npm here. It does not open 512 tokens: what it takes to make that page is
extrapolated from 128 tokens, times (512 / 128)². A page of headscope holds raw attention in one byte a weight (sqrt8)
or in two (float16), or raw, effective and norm in one byte.

Making a page is measured in a child process: CPU time, and its peak of memory over what it held before. All heads are
visible when the frame that shows them was painted; work is CPU time of the page's main thread. Medians of turns in
which all pages take part. --quick measures headscope only.
"""

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.timing import show
from benchmarks.viewer_browser import (
    HEADSCOPE_SHOWN,
    MODEL_VIEW_SHOWN,
    Handled,
    Shown,
    find_chromium,
    install_scripts,
    launch,
    measure_bertviz,
    measure_headscope,
    measure_shown,
    opens_from,
)
from benchmarks.viewer_pages import (
    Cost,
    capture_text,
    count_first_bytes,
    load_deep_model,
    make_bertviz_page,
    make_headscope_page,
    measure_cost,
)
from headscope.core.trace import Trace

LAYERS = 12
LONGEST_BERTVIZ = 128
CHANGED_LAYERS = range(1, 6)  # of BertViz, which takes seconds for each
BUSY = 0.7  # load, above which times of the browser are noise
PAGES: dict[str, Any] = {
    "sqrt8": ("sqrt8", ("raw",)),
    "float16": ("float16", ("raw",)),
    "3 lenses": ("sqrt8", ("raw", "effective", "norm")),
}
BERTVIZ, HEAD_VIEW = "BertViz", "BertViz head_view"
SCRIPTS = Path("out/viewer_benchmark")
Key = tuple[str, int]  # a page and its tokens


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    tokens: Sequence[int] = (32, 128, 512)
    turns: int = 3
    pages: Sequence[str] = tuple(PAGES)
    bertviz: bool = True


QUICK = Plan(tokens=(12,), turns=1, pages=("3 lenses",), bertviz=False)


@dataclass(frozen=True)
class Row:
    """What one page costs; None where it was not measured."""

    page: str
    tokens: int
    size: float  # bytes
    first_size: float | None  # bytes until all heads can be shown
    cpu_s: float
    wall_s: float
    peak_mb: float
    shown_s: float | None = None
    shown_work_s: float | None = None
    hover_ms: float | None = None
    first_ms: float | None = None
    again_ms: float | None = None
    nodes: int | None = None
    requests: int | None = None
    extrapolated: bool = False


@dataclass(frozen=True)
class Bar:
    """A figure that must be reached."""

    what: str
    unit: str
    most: bool  # whether the limit is the most that is allowed, or the least
    limit: float
    value: float

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.value <= self.limit if self.most else self.value >= self.limit


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="headscope's pages of a short text, to see that it runs")
    parser.add_argument("--out", type=Path, help="where to write the figures")
    options = parser.parse_args()
    find_chromium()
    plan, load = QUICK if options.quick else Plan(), os.getloadavg()[0]
    if plan.bertviz:
        check_bertviz()
    with TemporaryDirectory() as folder:
        rows, chromium = measure(Path(folder), plan)
    bars = judge(rows) if plan.bertviz else []
    print_tables(rows, bars)
    if options.out:
        found = {"rows": [asdict(row) for row in rows], "bars": [{**asdict(bar), "met": bar.met} for bar in bars]}
        text = json.dumps({**describe_run(plan, load, chromium), **found}, indent=1, ensure_ascii=False)
        options.out.write_text(text + "\n", encoding="utf-8")


def check_bertviz() -> None:
    """Say what to install where BertViz is missing."""
    try:
        version("bertviz")
    except PackageNotFoundError:
        install = "pip install -c constraints.txt --no-deps bertviz"
        raise SystemExit(f"The peer of this benchmark, BertViz, is not installed here: {install}") from None


def describe_run(plan: Plan, load: float, chromium: str) -> dict[str, Any]:
    """Return what made the figures."""
    device = f"{os.cpu_count()} cores of an {platform.machine()} CPU, Chromium {chromium.partition('.')[0]}, no GPU"
    packages = ("playwright", *(("bertviz",) if plan.bertviz else ()))
    facts = {"command": "python -m benchmarks.viewer", "device": device, "torch": torch.__version__}
    facts |= {"turns": plan.turns, "versions": {name: version(name) for name in packages}, "load": load}
    return facts | ({"note": f"The machine was busy: its load was {load:.1f} at the start."} if load > BUSY else {})


def measure(folder: Path, plan: Plan) -> tuple[list[Row], str]:
    """Make the pages of all lengths, then open them; return the rows, and Chromium's version."""
    model, made = load_deep_model(), {}
    for tokens in plan.tokens:
        made |= _make_in_turns(capture_text(model, tokens), tokens, folder, plan)
    with launch() as browser:
        openers = _list_openers(browser, folder, plan)
        opened: dict[Key, list[tuple[Shown, Handled]]] = {key: [] for key in openers}
        for _ in range(plan.turns):
            for key, open_once in openers.items():
                opened[key].append(open_once())
        rows = [_make_row(key, _count_bytes(browser, folder, key), made[key], turns) for key, turns in opened.items()]
        return sorted([*rows, *_extrapolate_peers(rows, plan)], key=lambda row: row.tokens), browser.version


def _make_in_turns(trace: Trace, tokens: int, folder: Path, plan: Plan) -> dict[Key, list[Cost]]:
    makers = {page: make_headscope_page(*PAGES[page]) for page in plan.pages}
    if plan.bertviz and tokens <= LONGEST_BERTVIZ:
        makers = {BERTVIZ: make_bertviz_page("model_view"), HEAD_VIEW: make_bertviz_page("head_view"), **makers}
    costs: dict[Key, list[Cost]] = {(page, tokens): [] for page in makers}
    for _ in range(plan.turns):
        for page, make in makers.items():
            costs[page, tokens].append(measure_cost(make, trace, _name_file(folder, page, tokens)))
    return costs


def _name_file(folder: Path, page: str, tokens: int) -> Path:
    return folder / f"{page.replace(' ', '_')}_{tokens}.html"


def _list_openers(browser: Any, folder: Path, plan: Plan) -> dict[Key, Callable[[], tuple[Shown, Handled]]]:
    """Return what opens each page once and looks around in it."""
    scripts = install_scripts(SCRIPTS) if plan.bertviz else {}

    def open_headscope(page: str, tokens: int) -> tuple[Shown, Handled]:
        path = _name_file(folder, page, tokens)
        return measure_shown(browser, path, HEADSCOPE_SHOWN, {}), measure_headscope(browser, path, LAYERS)

    def open_bertviz(tokens: int) -> tuple[Shown, Handled]:
        model, head = (_name_file(folder, page, tokens) for page in (BERTVIZ, HEAD_VIEW))
        shown = measure_shown(browser, model, MODEL_VIEW_SHOWN, scripts)
        return shown, measure_bertviz(browser, head, CHANGED_LAYERS, scripts)

    openers: dict[Key, Callable[[], tuple[Shown, Handled]]] = {}
    for tokens in plan.tokens:
        if plan.bertviz and tokens <= LONGEST_BERTVIZ:
            openers[BERTVIZ, tokens] = partial(open_bertviz, tokens)
        openers |= {(page, tokens): partial(open_headscope, page, tokens) for page in plan.pages}
    return openers


def _count_bytes(browser: Any, folder: Path, key: Key) -> tuple[int, int]:
    """Return the bytes of a page, and of those that are needed to show all heads: for BertViz, its scripts, too."""
    path = _name_file(folder, *key)
    size = path.stat().st_size
    if key[0] == BERTVIZ:
        return size, size + sum(file.stat().st_size for file in install_scripts(SCRIPTS).values())
    first = count_first_bytes(path.read_bytes())
    if not opens_from(browser, path, first):
        raise RuntimeError(f"The first {first:,} bytes of {path.name} do not show all heads.")
    return size, first


def _make_row(key: Key, sizes: tuple[int, int], costs: Sequence[Cost], turns: Sequence[tuple[Shown, Handled]]) -> Row:
    shown, handled = zip(*turns, strict=True)
    return Row(
        *key,
        *sizes,
        **_take_medians(costs),
        shown_s=median(each.wall_s for each in shown),
        shown_work_s=median(each.work_s for each in shown),
        **{name: value for name, value in _take_medians(handled).items() if name != "nodes"},
        nodes=max(each.nodes for each in (*shown, *handled)),
        requests=max(each.requests for each in shown),
    )


def _take_medians(runs: Sequence[Any]) -> dict[str, float]:
    """Return the median of every field over the turns."""
    return {each.name: median(getattr(run, each.name) for run in runs) for each in fields(runs[0])}


def _extrapolate_peers(rows: Sequence[Row], plan: Plan) -> list[Row]:
    peers = [row for row in rows if row.page == BERTVIZ]
    return [extrapolate(peers[-1], tokens) for tokens in plan.tokens if peers and tokens > LONGEST_BERTVIZ]


def extrapolate(row: Row, tokens: int) -> Row:
    """Return what it would take to make a page of more tokens: all of it grows with their square."""
    factor = (tokens / row.tokens) ** 2
    grown = {name: factor * getattr(row, name) for name in ("size", "cpu_s", "wall_s", "peak_mb")}
    return Row(page=row.page, tokens=tokens, first_size=None, **grown, extrapolated=True)


def judge(rows: Sequence[Row]) -> list[Bar]:
    """Compare the rows with what the viewer must reach."""
    found = {(row.page, row.tokens): row for row in rows}
    ours = [row for row in rows if row.page != BERTVIZ]
    longest = [row for row in ours if row.tokens == max(row.tokens for row in ours)]
    peer = found[BERTVIZ, LONGEST_BERTVIZ]
    small, large = found["sqrt8", LONGEST_BERTVIZ], found["float16", LONGEST_BERTVIZ]
    return [
        Bar("page at 128 tokens, sqrt8", "× smaller", False, 40, peer.size / small.size),
        Bar("page at 128 tokens, float16", "× smaller", False, 18, peer.size / large.size),
        Bar("read before the first picture", "MB", True, 0.7, _largest(ours, "first_size") / 1e6),
        Bar("all heads visible at 128 tokens", "× faster", False, 50, (peer.shown_s or 0) / (small.shown_s or 1)),
        Bar("all heads visible at 512 tokens", "s", True, 1, _largest(longest, "shown_s")),
        Bar("main-thread work of a hover at 512 tokens", "ms", True, 16, _largest(longest, "hover_ms")),
        Bar("change of layer, first", "ms", True, 150, _largest(ours, "first_ms")),
        Bar("change of layer, again", "ms", True, 50, _largest(ours, "again_ms")),
        Bar("elements of the page", "", True, 2000, _largest(ours, "nodes")),
        Bar("CPU time to make the page at 512 tokens", "s", True, 5, _largest(longest, "cpu_s")),
        Bar("memory to make the page at 512 tokens", "GB", True, 1, _largest(longest, "peak_mb") / 1e3),
        Bar("requests that leave the page", "", True, 0, _largest(ours, "requests")),
    ]


def _largest(rows: Iterable[Row], name: str) -> float:
    return max(float(getattr(row, name)) for row in rows)


def print_tables(rows: Sequence[Row], bars: Sequence[Bar]) -> None:
    """Print what pages cost to make, to open and to look around in; then the bars."""
    show("Making a page: BertViz over headscope in brackets", MADE_COLUMNS, [_made_cells(row, rows) for row in rows])
    if any(row.extrapolated for row in rows):
        print(f"* extrapolated from {LONGEST_BERTVIZ} tokens", flush=True)
    opened = [row for row in rows if row.shown_s is not None]
    show("Opening it, and looking around", OPENED_COLUMNS, [_opened_cells(row, rows) for row in opened])
    if bars:
        show("Bars", ["", "bar", "measured", ""], [_bar_cells(bar) for bar in bars])


MADE_COLUMNS = ["tokens", "page", "MB", "first MB", "CPU s", "memory MB"]
OPENED_COLUMNS = ["tokens", "page", "all heads s", "hover ms", "layer ms", "again", "nodes", "requests"]


def _made_cells(row: Row, rows: Sequence[Row]) -> list[str]:
    first = "" if row.first_size is None else f"{row.first_size / 1e6:,.2f}"
    name = f"{row.page}*" if row.extrapolated else row.page
    size, cpu, memory = f"{row.size / 1e6:,.1f}", f"{row.cpu_s:.2f}", f"{row.peak_mb:,.0f}"
    cells = {"size": size, "cpu_s": cpu, "peak_mb": memory}
    size, cpu, memory = (f"{text}{_compare(row, rows, field)}" for field, text in cells.items())
    return [str(row.tokens), name, size, first, cpu, memory]


def _opened_cells(row: Row, rows: Sequence[Row]) -> list[str]:
    texts = {
        "shown_s": f"{row.shown_s:.2f}",
        "hover_ms": f"{row.hover_ms:.1f}",
        "first_ms": f"{row.first_ms:,.0f}",
        "again_ms": f"{row.again_ms:,.0f}",
    }
    cells = [f"{text}{_compare(row, rows, field)}" for field, text in texts.items()]
    return [str(row.tokens), row.page, *cells, f"{row.nodes:,}", str(row.requests)]


def _compare(row: Row, rows: Sequence[Row], field: str) -> str:
    """Return how many times as much BertViz takes for the same tokens."""
    peers = [peer for peer in rows if peer.page == BERTVIZ and peer.tokens == row.tokens]
    if row.page == BERTVIZ or not peers or getattr(peers[0], field) is None:
        return ""
    return f" ({getattr(peers[0], field) / getattr(row, field):,.0f}×)"


def _bar_cells(bar: Bar) -> list[str]:
    measured, limit = (f"{number:,.3g} {bar.unit}".strip() for number in (bar.value, bar.limit))
    return [bar.what, f"{'≤' if bar.most else '≥'} {limit}", measured, "met" if bar.met else "missed"]


if __name__ == "__main__":
    main()

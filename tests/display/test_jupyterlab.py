"""The example notebook in JupyterLab, in a real browser: every cell runs, and what it shows is there, once."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.browser import CHROMIUM, browser

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
pytestmark = [
    browser,
    pytest.mark.timeout(900),  # 20 seconds alone, minutes on a busy machine
]

SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},  # all cells are in the page
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
RUN_ALL = """async () => {
  const panel = window.jupyterapp.shell.currentWidget;
  await panel.context.ready;
  await panel.sessionContext.ready;
  await panel.sessionContext.session.kernel.info;
  return await window.jupyterapp.commands.execute("notebook:run-all-cells");
}"""
LOADED = """() => {
  const areas = window.jupyterapp.shell.currentWidget.content.widgets.map((cell) => cell.outputArea).filter(Boolean);
  const images = [...document.querySelectorAll('.jp-OutputArea img')];
  return areas.every((area) => area.widgets.length === area.model.length) && images.every((image) => image.complete);
}"""
VIEWER = 'viewer = hs.show([hs.view(trace, "raw"), maps], layer=3, head=7)\nviewer'
VIEW = ".headscope-viewer .hs-view canvas[aria-label^='Attention map']"
READING = "document.querySelector('.headscope-viewer .hs-reading').textContent"
COLORS_OF = """canvas => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""
ASK_PYTHON = """async ([code, expression]) => {
  const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
  const reply = await kernel.requestExecute({ code, user_expressions: { value: expression } }).done;
  return reply.content.user_expressions.value.data['text/plain'];
}"""
SAVE = "() => window.jupyterapp.shell.currentWidget.context.save()"
READ = """() => [...document.querySelectorAll('.jp-CodeCell')].map((cell) => {
  const area = cell.querySelector('.jp-Cell-outputArea').getBoundingClientRect();
  const images = [...cell.querySelectorAll('.jp-OutputArea img')];
  return {
    text: cell.querySelector('.jp-OutputArea').innerText,
    images: images.filter((image) => image.naturalWidth > 0).length,
    fits: images.every((image) => image.getBoundingClientRect().right <= area.right + 1),
    shape: images.every((image) => {
      const { width, height } = image.getBoundingClientRect();
      return Math.abs(width / height / (image.naturalWidth / image.naturalHeight) - 1) < 0.02;
    }),
    progress: [...cell.querySelectorAll('progress')].map((bar) => bar.position),
  };
})"""


def start_server(folder):
    """Start JupyterLab in a folder, with settings of its own, and return its address and process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    for name, content in SETTINGS.items():
        path = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(content))
    homes = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "JUPYTERLAB_WORKSPACES_DIR")
    settings = {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "OMP_NUM_THREADS": "1"}
    options = ["--no-browser", "--allow-root", "--expose-app-in-browser", "--IdentityProvider.token="]
    port = address.rpartition(":")[2]
    where = ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", f"--ServerApp.root_dir={folder}"]
    with (folder / "server.log").open("w") as log:
        environment = {**os.environ, **settings, **{name: str(folder / name.lower()) for name in homes}}
        command = [sys.executable, "-m", "jupyterlab", *options, *where]
        return address, subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def wait_for(address, server):
    while True:
        assert server.poll() is None, "JupyterLab has stopped"
        try:
            return urlopen(f"{address}/api", timeout=60).read()
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)


@dataclass(frozen=True)
class Lab:
    """An open notebook whose cells ran; the screenshot is page.png in the folder."""

    page: Page
    folder: Path
    sources: list[str]

    def read_cells(self):
        """Return what is shown below each cell, by its source."""
        before, shown = None, self.page.evaluate(READ)
        while shown != before:  # outputs are drawn after their cell has run, later on a busy machine
            self.page.wait_for_timeout(1000)
            before, shown = shown, self.page.evaluate(READ)
        return dict(zip(self.sources, shown, strict=True))

    def ask_python(self, code, expression):
        """Run code in the kernel, and return the repr of an expression."""
        return self.page.evaluate(ASK_PYTHON, [code, expression])

    def wait(self, condition):
        """Wait for an expression of the page."""
        self.page.wait_for_function(f"() => {condition}")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jupyterlab")
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    notebook["cells"].append({"cell_type": "code", "id": "viewer", "metadata": {}, "source": [VIEWER]})
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    (folder / "notebook.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    address, server = start_server(folder)
    try:
        wait_for(address, server)
        with sync_playwright() as browsers:
            browser = browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1000, "height": 7200})
            page.set_default_timeout(240_000)
            page.goto(f"{address}/doc/tree/notebook.ipynb")
            page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.sessionContext")
            page.evaluate(RUN_ALL)
            page.wait_for_function(LOADED)
            page.screenshot(path=folder / "page.png")
            yield Lab(page, folder, sources)
            browser.close()
    finally:
        server.terminate()
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.fixture(scope="module")
def cells(lab):
    """What the page shows below each cell after all of them ran."""
    return lab.read_cells()


def find(cells, *words):
    (found,) = [shown for source, shown in cells.items() if all(word in source for word in words)]
    return found


def test_every_cell_runs(cells):
    assert len(cells) > 8
    assert not [shown["text"] for shown in cells.values() if "Traceback" in shown["text"] or "Error" in shown["text"]]


def test_pictures_fit_their_cells_and_keep_their_shape(cells):
    assert all(shown["fits"] and shown["shape"] for shown in cells.values())


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (("hs.load",), ["Model sentence-transformers/all-MiniLM-L6-v2", "6 layers × 12 heads"]),
        (("hs.capture",), ["Trace", "holds", "mean of 12 heads"]),
        (("hs.view", "\nmaps"), ["Maps", "effective share", "heads 0 to 11 across"]),
        (("hs.view", "class Sharpened"), ["sharpened:power=3.0"]),
    ],
)
def test_objects_show_what_they_are(cells, words, texts):
    shown = find(cells, *words)
    assert all(text in shown["text"] for text in texts)
    assert shown["images"] == (0 if "Model" in texts[0] else 1)


@pytest.mark.parametrize("words", [("compare",), ("plt.subplots",), ("arcs",), ('"heads"',), ("FirstToken",)])
def test_a_figure_is_shown_once(cells, words):
    assert find(cells, *words)["images"] == 1


@pytest.mark.parametrize("words", [('"heads"',), ("FirstToken",)])
def test_measuring_shows_its_progress(cells, words):
    shown = find(cells, *words)
    assert shown["progress"] == [1]
    assert "5 of 5 examples" in shown["text"]


class TestViewer:
    def test_it_is_drawn_once_at_the_chosen_head(self, lab):
        lab.wait(f"{READING}.startsWith('L3H7, raw: ')")
        assert lab.page.locator(".headscope-viewer").count() == 1
        assert lab.page.locator(VIEW).evaluate(COLORS_OF) > 50
        box, cell = (lab.page.locator(place).last.bounding_box() for place in (".headscope-viewer", ".jp-CodeCell"))
        assert box["x"] + box["width"] <= cell["x"] + cell["width"]

    def test_its_numbers_are_those_of_python(self, lab):
        lab.page.locator(VIEW).focus()
        for _ in range(2):
            lab.page.keyboard.press("Shift+ArrowDown")
        said = lab.page.evaluate(f"() => {READING}")
        weight = float(lab.ask_python("", "float(hs.view(trace, 'raw')[3, 7].values[1, 0])"))
        assert abs(float(said.rpartition(": ")[2]) - weight) <= max(6e-5, 6e-3 * weight)

    def test_what_python_sets_is_shown(self, lab):
        lab.ask_python("viewer.layer, viewer.head, viewer.token, viewer.lens = 2, 5, 4, 'effective'", "None")
        lab.wait(f"{READING}.startsWith('L2H5, effective: “')")
        token = lab.ask_python("", "trace.queries.text[0][4]").strip("'")
        assert f"“{token}” attends to" in lab.page.evaluate(f"() => {READING}")

    def test_what_the_keyboard_chooses_is_known_to_python(self, lab):
        cells = lab.page.locator(".jp-Cell").count()
        lab.page.locator(VIEW).focus()
        for key in ("ArrowRight", "ArrowDown", ".", "x"):  # which would cut the cell
            lab.page.keyboard.press(key)
        lab.wait(f"{READING}.startsWith('L3H6, effective: ')")
        asked = "(viewer.layer, viewer.head, viewer.token, viewer.lens, viewer.view)"
        expected = "(3, 6, 5, 'effective', 'head')"
        known, end = lab.ask_python("", asked), time.monotonic() + 120
        while known != expected and time.monotonic() < end:  # the browser sends a choice when the kernel is idle
            lab.page.wait_for_timeout(200)
            known = lab.ask_python("", asked)
        assert known == expected
        assert lab.page.locator(".jp-Cell").count() == cells

    def test_a_saved_notebook_holds_a_picture(self, lab):
        lab.page.evaluate(SAVE)
        saved = json.loads((lab.folder / "notebook.ipynb").read_text(encoding="utf-8"))
        (output,) = [output for output in saved["cells"][-1]["outputs"] if "data" in output]
        assert output["data"]["image/png"].startswith("iVBORw0KGgo")
        assert "Run the cell to use it" in "".join(output["data"]["text/html"])
        assert "application/vnd.jupyter.widget-view+json" in output["data"]

"""The example notebook in JupyterLab, in a real browser: every cell runs, and what it shows is there, once."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import sync_playwright

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
LOADED = "() => [...document.querySelectorAll('.jp-OutputArea img')].every((image) => image.complete)"
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
        except (URLError, ConnectionError):
            time.sleep(0.1)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """What the page shows below each cell after all of them ran; the screenshot is page.png in the folder."""
    folder = tmp_path_factory.mktemp("jupyterlab")
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    (folder / "notebook.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    address, server = start_server(folder)
    try:
        wait_for(address, server)
        with sync_playwright() as browsers:
            browser = browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1000, "height": 5000})
            page.set_default_timeout(240_000)
            page.goto(f"{address}/doc/tree/notebook.ipynb")
            page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.sessionContext")
            page.evaluate(RUN_ALL)
            page.wait_for_function(LOADED)
            page.screenshot(path=folder / "page.png")
            shown = page.evaluate(READ)
            browser.close()
    finally:
        server.terminate()
        server.wait(60)
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return dict(zip(sources, shown, strict=True))


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


@pytest.mark.parametrize("words", [("compare",), ("plt.subplots",), ("hs.show",), ('"heads"',), ("FirstToken",)])
def test_a_figure_is_shown_once(cells, words):
    assert find(cells, *words)["images"] == 1


@pytest.mark.parametrize("words", [('"heads"',), ("FirstToken",)])
def test_measuring_shows_its_progress(cells, words):
    shown = find(cells, *words)
    assert shown["progress"] == [1]
    assert "5 of 5 examples" in shown["text"]

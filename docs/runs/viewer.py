"""Take the pictures of the viewer for the README and the docs: a page in Chromium, in both themes.

    python docs/runs/viewer.py

Writes docs/pictures/viewer_*.png. Needs playwright and Chromium (make browser).
"""

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

import headscope as hs

PICTURES = Path(__file__).parents[1] / "pictures"
LAYER, HEAD = 3, 4  # of which the README speaks
SHOTS = {
    "viewer_grid": f"view=grid&lens=effective&scalar=share&layer={LAYER}&head={HEAD}",
    "viewer_head": f"view=head&lens=effective&layer={LAYER}&head={HEAD}&tokens=20",
    "viewer_compare": f"view=compare&layer={LAYER}&head={HEAD}&shared=0",
}
"""States of the viewer, as its address holds them."""


def write_page(folder: Path) -> Path:
    """Write the page of a paragraph."""
    trace = hs.capture(hs.load(), hs.read("sample")[1])
    return hs.save([hs.view(trace, lens) for lens in ("raw", "effective", "norm", "rollout")], folder / "page.html")


def take(page: Page, address: str, state: str, theme: str, path: Path) -> None:
    """Write a screenshot of one state in one theme."""
    page.emulate_media(color_scheme=theme)
    page.goto("about:blank")
    page.goto(f"{address}#{state}")
    page.wait_for_function("() => performance.getEntriesByName('headscope:view').length > 0")
    page.wait_for_load_state("networkidle")
    height = page.evaluate("() => document.querySelector('.hs-about').getBoundingClientRect().top")
    page.screenshot(path=path, clip={"x": 0, "y": 0, "width": 1280, "height": min(800, height)})
    Image.open(path).convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE).save(path, optimize=True)


def main() -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium") or sys.exit("Chromium is needed: make browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        address = write_page(Path(folder)).as_uri()
        browser = browsers.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        for name, state in SHOTS.items():
            for theme in ("light", "dark"):
                suffix = "" if theme == "light" else "_dark"
                take(page, address, state, theme, PICTURES / f"{name}{suffix}.png")
        browser.close()


if __name__ == "__main__":
    main()

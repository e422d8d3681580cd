"""Take the picture of the atlas for the docs: every head of the default model over a bundled corpus, in both themes.

    python docs/runs/atlas.py

Writes docs/pictures/atlas.png and atlas_dark.png. Needs playwright and Chromium (make browser).
"""

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import headscope as hs

PICTURES = Path(__file__).parents[1] / "pictures"
STATE = "head=L4H6"
"""What is chosen, as the address of the atlas holds it."""


def main() -> None:
    """Write the atlas, and take its picture."""
    chromium = shutil.which("chromium") or sys.exit("Chromium is needed: make browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        hs.atlas(hs.load(), "gap:validation", out=Path(folder) / "atlas")
        browser = browsers.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        for theme, name in (("light", "atlas.png"), ("dark", "atlas_dark.png")):
            page.emulate_media(color_scheme=theme)
            page.goto(f"{(Path(folder) / 'atlas' / 'index.html').as_uri()}#{STATE}")
            page.wait_for_selector(".hs-card")
            page.screenshot(path=PICTURES / name)
            picture = Image.open(PICTURES / name).convert("RGB")
            picture.quantize(256, method=Image.Quantize.FASTOCTREE).save(PICTURES / name, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()

"""Run the tutorials and store what their cells show, so that two runs differ in nothing but what changed.

    python tools/run_notebooks.py                 # all of docs/tutorials
    python tools/run_notebooks.py first_look ...  # some

Each notebook runs in a folder of its own that is deleted afterwards. Progress bars are not stored, because they hold
times, nor are metadata of editors. Pictures get 128 colors. A cell that fails or warns is an error, and so is one that
shows an absolute path.
"""

import argparse
import base64
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
COLORS = 128
ABSOLUTE = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|work|usr|opt|var|Users|content)/")
SHARP = 'get_config().InlineBackend.figure_formats = {"retina"}'  # figures of pyplot, too, at twice the resolution
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


def run(path: Path) -> Any:
    """Execute a notebook in an empty folder, with one thread and no network, and return it as it is to be stored."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        settings = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "IPYTHONDIR": f"{folder}/ipython"}
        work, profile = Path(folder, "work"), Path(folder, "ipython", "profile_default")
        work.mkdir()
        profile.mkdir(parents=True)
        (profile / "ipython_kernel_config.py").write_text(SHARP)
        client = NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(work)}}
        )
        client.execute(env={**os.environ, **settings})
    return normalize(notebook)


def normalize(notebook: Any) -> Any:
    """Return the notebook without what differs from run to run; raise ValueError for what must not be stored."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat_minor = 5
    count = 0
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02}"
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        kept = [part for part in cell.outputs if not _is_progress(part)]
        cell.outputs = [_normalize_output(part, count) for part in join_streams(kept)]
    return notebook


def join_streams(outputs: list[Any]) -> list[Any]:
    """Return outputs in which what was printed is one piece, however the kernel has cut it."""
    joined: list[Any] = []
    for part in outputs:
        if part.output_type == "stream" and joined and joined[-1].get("name") == part.name:
            joined[-1].text += part.text
        else:
            joined.append(part)
    return joined


def _is_progress(part: Any) -> bool:
    return "<progress" in part.get("data", {}).get("text/html", "")


def _normalize_output(part: Any, count: int) -> Any:
    if part.output_type == "error" or part.get("name") == "stderr":
        raise ValueError(f"Code cell {count} wrote what must not be stored: {part.get('text') or part.get('evalue')}")
    if "execution_count" in part:
        part.execution_count = count
    data = part.get("data", {})
    if any(kind.startswith("application/vnd.") for kind in data):
        raise ValueError(f"Code cell {count} shows a widget, which a stored notebook cannot.")
    for kind, content in data.items():
        if kind == "image/png":
            data[kind] = shrink(content)
        elif isinstance(content, str) and ABSOLUTE.search(content):
            raise ValueError(f"Code cell {count} shows an absolute path: {content[:200]}")
    if ABSOLUTE.search(part.get("text", "")):
        raise ValueError(f"Code cell {count} prints an absolute path: {part.text[:200]}")
    return part


def shrink(png: str) -> str:
    """Return a picture, in base64, with few colors: a third of the size, and the same to the eye."""
    picture = Image.open(io.BytesIO(base64.b64decode(png)))
    if picture.mode == "P":
        return png  # it was shrunk before
    content = io.BytesIO()
    picture.convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        content, "PNG", optimize=True
    )
    return base64.b64encode(content.getvalue()).decode()


def main() -> None:
    """Run the notebooks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="notebooks of docs/tutorials, without .ipynb")
    names = parser.parse_args().names or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    for name in names:
        path = FOLDER / f"{name}.ipynb"
        nbformat.write(run(path), path)
        sys.stdout.write(f"{name}: {path.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()

"""Write the reports of all studies from their committed results: an HTML page for each model, and all tables.

python docs/reports.py                   into out/reports
python docs/reports.py --out FOLDER
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from headscope.experiments.pages.generate import StudyPages, find_pages
from headscope.reporting.write import write_document


def write_study(pages: StudyPages, out: Path) -> Iterator[Path]:
    """Write the reports of a study and its tables; yield the path of each page."""
    for name, document in pages.reports():
        yield write_document(document, out / name, overwrite=True)
    for name, generate in pages.tables.items():
        for file, content in generate():
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            (out / file).write_bytes(content)
        yield out / f"{name}.md"


def main() -> None:
    """Write all reports."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=Path("out/reports"), help="where the reports go")
    out = options.parse_args().out
    for pages in find_pages().values():
        for path in write_study(pages, out):
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()

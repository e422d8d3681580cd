"""Write the reports of all studies from their committed results: an HTML page for each model, and all tables.

python docs/reports.py                   into out/reports
python docs/reports.py --out FOLDER
"""

import argparse
import sys
from pathlib import Path

from headscope.experiments.pages.generate import find_pages
from headscope.reporting.write import write_document


def main() -> None:
    """Write all reports."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=Path("out/reports"), help="where the reports go")
    out = options.parse_args().out
    for pages in find_pages().values():
        for name, document in pages.reports():
            sys.stdout.write(f"{write_document(document, out / name, overwrite=True)}\n")
        for name, generate in pages.tables.items():
            for file, content in generate():
                (out / file).parent.mkdir(parents=True, exist_ok=True)
                (out / file).write_bytes(content)
            sys.stdout.write(f"{out / name}.md\n")


if __name__ == "__main__":
    main()

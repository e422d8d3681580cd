"""Compare all numbers of two versions of pages: which left a page, and which are new on it.

    python tools/compare_numbers.py OLD NEW

OLD and NEW are folders with pages (.md, .html) under the same names, such as the docs of two commits and the output of
`make reports` of both. Paths and the addresses of links are no numbers, nor are pictures that are inlined in a page.
"""

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-−+]?\d+)?(?![\w])")


def read_numbers(page: Path) -> Counter[str]:
    """Return how often each number stands on a page."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".html":
        text = re.sub(r"<(svg|style|script)\b.*?</\1>", " ", text, flags=re.DOTALL)
        text = re.sub(r"<[^>]*>", " ", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"\S*[/_]\S*", " ", text)  # paths, file names and variables
    return Counter(number.rstrip(",") for number in NUMBER.findall(text))


def list_pages(folder: Path) -> dict[str, Path]:
    """Return the pages of a folder by their paths in it."""
    paths = [*folder.rglob("*.md"), *folder.rglob("*.html")]
    return {str(path.relative_to(folder)): path for path in sorted(paths)}


def main() -> None:
    """Print the differences of every page, and fail where there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args()
    old, new = list_pages(options.old), list_pages(options.new)
    same = total = 0
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            sys.stdout.write(f"{name}: only in {'NEW' if name in new else 'OLD'}\n")
            continue
        before, after = read_numbers(old[name]), read_numbers(new[name])
        total += before.total()
        same += (before & after).total()
        for title, counts in (("left", before - after), ("new", after - before)):
            if counts:
                listed = ", ".join(f"{number} (×{count})" if count > 1 else number for number, count in counts.items())
                sys.stdout.write(f"{name}: {title}: {listed}\n")
    sys.stdout.write(f"{same:,} of {total:,} numbers are the same.\n")
    sys.exit(same != total)


if __name__ == "__main__":
    main()

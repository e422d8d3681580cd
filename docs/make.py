"""Make what the docs show: pictures from the result files beside them, tables from the code.

    python docs/make.py            write them
    python docs/make.py --check    say what would change, and fail if anything would

The result files in docs/results are stamped with the command that made them.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import effective_attention_page  # beside this file
import heads_page
import padding_page
import patterns_page
import training_page
import words_page

from headscope.core.catalog import families
from headscope.plotting.draw import draw
from headscope.results.stamp import read_provenance
from headscope.results.store import open_result, save

DOCS = Path(__file__).parent
PICTURES = {"compare.svg": ("what_reaches.nc", "compare")}


def pictures() -> Iterator[tuple[Path, bytes]]:
    """Each picture's place, and what belongs there."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (result, figure) in PICTURES.items():
            made = save(draw(open_result(DOCS / "results" / result), figure), Path(folder) / name)
            yield DOCS / "pictures" / name, made.read_bytes()
        others = {"padding.svg": padding_page.picture(), **heads_page.pictures(), **patterns_page.pictures()}
        others |= effective_attention_page.drawn(effective_attention_page.results())
        for name, figure in others.items():
            yield DOCS / "pictures" / name, save(figure, Path(folder) / name).read_bytes()


def filled(page: Path, name: str, text: str) -> tuple[Path, bytes]:
    """A page with this text between its marks of that name."""
    parts = re.split(rf"(<!-- {name} -->\n|<!-- /{name} -->)", page.read_text(encoding="utf-8"))
    parts[2] = text
    return page, "".join(parts).encode()


def measured_edits() -> tuple[Path, bytes]:
    """The page on edits, with what the run over the bundled paragraphs measured."""
    data = open_result(DOCS / "results" / "edits.nc")
    paper = data.relative.sel(keys="paper")
    model, largest = read_provenance(data)["model"].rpartition("/")[2], float(data.largest.sel(keys="visible").max())
    text = (
        f"Measured with {model} in float32 on the {data.sizes['example']} bundled paragraphs, last hidden states of "
        f"real\ntokens: with `visible` no number moves by more than {largest:.1e}. With `paper`, padded and cut to 128 "
        f"tokens,\nthe change is {float(paper.median()):.1%} in the median paragraph (‖difference‖ / ‖output‖) and "
        f"{float(paper.max()):.1%} at most.\n"
    )
    return filled(DOCS / "edits.md", "measured", text)


def family_table() -> tuple[Path, bytes]:
    """The page that lists every kind of model, with its table as the code has it."""
    known = [(name, families.find(name)) for name in families.names()]
    rows = "".join(
        f"| {name} | {', '.join(each.kinds)} | {'hooks' if each.hooks else 'interface'} |\n"
        for name, each in known
        if each.kinds
    )
    return filled(DOCS / "capture.md", "families", rows)


def main() -> None:
    """Write or check everything."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true")
    check = options.parse_args().check
    made = (*pictures(), family_table(), measured_edits(), (DOCS / "padding.md", padding_page.page()),
            (DOCS / "heads.md", heads_page.page()),
            filled(DOCS / "words.md", "tagger", words_page.table()),
            filled(DOCS / "training.md", "tuned", training_page.table()),
            (DOCS / "patterns.md", patterns_page.page()), *effective_attention_page.made())  # fmt: skip
    stale = [(path, wanted) for path, wanted in made if not path.is_file() or path.read_bytes() != wanted]
    for path, wanted in stale:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted)
        sys.stdout.write(f"{'stale' if check else 'wrote'}: {path.relative_to(DOCS.parent)}\n")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()

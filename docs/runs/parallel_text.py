"""Build parallel text from the message catalogues of programs: short messages and their translations.

    apt-get download gimp-data evolution-common libreoffice-l10n-fr …
    for package in *.deb; do dpkg-deb -x $package catalogues/${package%%_*}; done
    python docs/runs/parallel_text.py catalogues parallel --language fr

Reads every `…/fr/…/*.mo` below a folder, cleans the messages, and writes train.tsv, dev.tsv and test.tsv with the
columns text and pair, and sources.tsv with the number of messages of each catalogue. No two files share a message, also
not in another case or with other punctuation. The licences are those of the packages, in their files `copyright`.
"""

import argparse
import hashlib
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import headscope as hs
from headscope.core.errors import InputError
from headscope.core.progress import print_status
from headscope.results.hashes import fingerprint_examples

HELD_OUT = {"test": 2000, "dev": 2000}
WORDS = (2, 20)  # of a message
RATIO = 2.5  # of the lengths of a message and its translation, in characters
LETTERS = 0.75  # share of letters and spaces in both texts
MARKUP = re.compile(r"[<>{}%\\|@#$=\n\t\x00-\x1f\ufffd]|://|--")
QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", "…": "...", "\xa0": " ", "\u202f": " "})


def main() -> None:
    """Read the catalogues, and write the three files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--language", default="fr")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    translations, sources = collect(options.folder, options.language)
    for name, pairs in split(choose(translations)).items():
        path = options.out / f"{name}.tsv"
        path.write_text("".join(f"{text}\t{pair}\n" for text, pair in [("text", "pair"), *pairs]), encoding="utf-8")
        words = [sum(len(pair[side].split()) for pair in pairs) / len(pairs) for side in (0, 1)]
        digest = fingerprint_examples(hs.read(path), labels=True)
        print_status(f"{path}: {len(pairs):,} pairs, {words[0]:.1f} and {words[1]:.1f} words on average, {digest}")
    lines = (f"{name}\t{count}\n" for name, count in sources.items())
    (options.out / "sources.tsv").write_text("catalogue\tmessages\n" + "".join(lines), encoding="utf-8")
    print_status(f"{len(sources):,} catalogues, {sum(sources.values()):,} messages.")


def collect(folder: Path, language: str) -> tuple[dict[str, Counter[tuple[str, str]]], dict[str, int]]:
    """Return the clean pairs by key, with how often each occurs, and the number of messages of each catalogue."""
    translations, sources = defaultdict[str, Counter[tuple[str, str]]](Counter), dict[str, int]()
    for path in sorted(path for path in folder.rglob("*.mo") if language in path.relative_to(folder).parts):
        try:
            examples = hs.read(path)
        except InputError as error:
            warnings.warn(str(error), stacklevel=1)
            continue
        sources[str(path.relative_to(folder))] = len(examples)
        for example in examples:
            text, pair = clean(example.text), clean(example.pair)
            if is_usable(text, pair):
                translations[make_key(text)][text, pair] += 1
    return translations, sources


def clean(text: str) -> str:
    """Remove marks of keyboard shortcuts, and write quotation marks and spaces in one way."""
    text = re.sub(r"(?<!\w)[_&~](?=\w)|(?<=\w)[_&~](?=\w)", "", text.translate(QUOTES))
    text = text.replace("« ", '"').replace(" »", '"').replace("«", '"').replace("»", '"')
    return " ".join(text.split())


def is_usable(text: str, pair: str) -> bool:
    """Return whether both texts are mostly words, of similar length, different, and without markup or placeholders."""
    count, ratio = len(text.split()), len(text) / max(1, len(pair))
    return (
        WORDS[0] <= count <= WORDS[1]
        and 1 / RATIO <= ratio <= RATIO
        and make_key(text) != make_key(pair)
        and not MARKUP.search(text + pair)
        and all(sum(sign.isalpha() or sign == " " for sign in part) >= LETTERS * len(part) for part in (text, pair))
    )


def make_key(text: str) -> str:
    """Return what equal messages share: the letters and digits in lower case."""
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


def choose(translations: dict[str, Counter[tuple[str, str]]]) -> Iterator[tuple[str, str, str]]:
    """Yield the key of each message with its most frequent pair, the first in alphabetical order among equals."""
    for key, counts in translations.items():
        text, pair = min(counts, key=lambda pair: (-counts[pair], pair))
        yield key, text, pair


def split(chosen: Iterator[tuple[str, str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Return the pairs of train, dev and test, in an order that depends on the messages only."""
    ordered = sorted(chosen, key=lambda row: hashlib.sha256(row[0].encode()).digest())
    pairs, parts = [(text, pair) for _, text, pair in ordered], {}
    for name, count in HELD_OUT.items():
        parts[name], pairs = pairs[:count], pairs[count:]
    return {"train": pairs, **parts}


if __name__ == "__main__":
    main()

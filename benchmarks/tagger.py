"""Speed of the built-in tagger for English.

python -m benchmarks.tagger [--quick]

CPU time on one thread over the bundled paragraphs, five times, each with empty caches: minimum and median.
"""

import argparse
import time
from statistics import median

from benchmarks.timing import show
from headscope.data.reading.read import read
from headscope.data.tagging.linear_model import LinearTagger, read_weights
from headscope.data.tokenizing.words import split_words

BAR = 20_000  # words a second


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only a few paragraphs, as a smoke test")
    texts = [example.text for example in read("sample")[: 3 if parser.parse_args().quick else None]]
    weights, speeds = read_weights(), []
    for _ in range(5):
        tagger, start = LinearTagger(weights), time.process_time()
        count = sum(len(tagger.tag([text[start:end] for start, end in split_words(text)])) for text in texts)
        speeds.append(count / (time.process_time() - start))
    verdict = "met" if median(speeds) >= BAR else "missed"
    row = [f"{count:,}", f"{min(speeds):,.0f} / {median(speeds):,.0f}", f"≥{BAR:,} {verdict}"]
    show("The built-in tagger, words split and tagged per second: minimum / median", ["words", "speed", "bar"], [row])


if __name__ == "__main__":
    main()

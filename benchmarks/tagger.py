"""How fast the built-in tagger splits and tags English.

python -m benchmarks.tagger [--quick]

CPU time on one thread over the bundled paragraphs, five times, each with nothing known from the last. Least and median.
"""

import argparse
import time
from statistics import median

from benchmarks.timing import show
from headscope.data.bundled.sample import paragraphs
from headscope.data.tagging.perceptron import Tagger
from headscope.data.tagging.weights import read_weights
from headscope.data.tokenizing.words import split

BAR = 20_000  # words a second


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few paragraphs, to see that it runs")
    texts = [each.text for each in paragraphs()[: 3 if parser.parse_args().quick else None]]
    weights, speeds = read_weights(), []
    for _ in range(5):
        tagger, start = Tagger(weights), time.process_time()
        many = sum(len(tagger.tag([text[start:end] for start, end in split(text)])) for text in texts)
        speeds.append(many / (time.process_time() - start))
    verdict = "met" if median(speeds) >= BAR else "missed"
    row = [f"{many:,}", f"{min(speeds):,.0f} / {median(speeds):,.0f}", f"≥{BAR:,} {verdict}"]
    show("The built-in tagger, words split and tagged a second: least / median", ["words", "speed", "bar"], [row])


if __name__ == "__main__":
    main()

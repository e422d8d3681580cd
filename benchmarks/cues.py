"""Speed of `hs.cues`: every word and bigram of short labelled texts.

PYTHONPATH=src python -m benchmarks.cues [--quick] [--data glue:sst-2:train@GLUE] [--out FILE.json]

CPU time on one thread, five turns. Peers count the texts with each cue, by label, without intervals, tests or stamp:
*plain loop* sets and counters over the same words; *CountVectorizer* of scikit-learn with the same words, and *default*
with its own words, which leaves out punctuation and single letters. By default the texts are the reasons and warrants
of ARCT, in the package.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import sklearn
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks.timing import show
from headscope.audit.cues import cues
from headscope.audit.words import list_words
from headscope.core.example import Example
from headscope.data.reading.read import read
from headscope.experiments.timing import time_interleaved

BAR = 20_000  # texts a second


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only a few texts, as a smoke test")
    parser.add_argument("--data", help="labelled texts")
    parser.add_argument("--out", type=Path, help="where to write the times")
    options = parser.parse_args()
    examples = (read(options.data) if options.data else _bundled())[: 200 if options.quick else None]
    turns = 2 if options.quick else 5
    rivals = {
        "headscope": lambda: cues(examples),
        "plain loop": lambda: _loop(examples),
        "CountVectorizer": lambda: _vectorize(examples, CountVectorizer(analyzer=_list_cues, binary=True)),
        "default": lambda: _vectorize(examples, CountVectorizer(ngram_range=(1, 2), binary=True)),
    }
    times = time_interleaved(rivals, turns=turns, clock=time.process_time)
    speeds = {name: len(examples) / median(seconds) for name, seconds in times.items()}
    words = sum(len(example.text.split()) for example in examples) / len(examples)
    verdict = "met" if speeds["headscope"] >= BAR else "missed"
    row = [*(f"{speed:,.0f}" for speed in speeds.values()), f"≥{BAR:,} {verdict}"]
    title = f"Cues of {len(examples):,} texts of {words:.1f} words, texts a second (median)"
    show(title, [*speeds, "bar"], [row])
    if options.out:
        source = (options.data or "arct").partition("@")[0]
        facts: dict[str, Any] = {"command": "python -m benchmarks.cues", "data": source, "bar": BAR}
        facts |= {"device": "x86_64 CPU, one thread, CPU time", "numpy": np.__version__, "sklearn": sklearn.__version__}
        facts |= {"texts": len(examples), "words": words, "turns": turns, "speeds": speeds, "apart": _compare(examples)}
        options.out.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _bundled() -> list[Example]:
    """Return the reasons and warrants of ARCT, labelled in turn."""
    rows = [example for split in ("train", "dev", "test") for example in read(f"arct:{split}")]
    texts = [text for row in rows for text in (row.columns["reason"], *row.columns["choices"])]
    return [Example(str(number), text, label=number % 2) for number, text in enumerate(texts)]


def _list_cues(text: str) -> list[str]:
    words = list_words(text)
    return [*words, *map(" ".join, pairwise(words))]


def _loop(examples: Sequence[Example]) -> dict[Any, Counter[str]]:
    """Return the number of texts with each cue, by label."""
    counts: dict[Any, Counter[str]] = {example.label: Counter() for example in examples}
    for example in examples:
        counts[example.label].update(set(_list_cues(example.text)))
    return counts


def _vectorize(examples: Sequence[Example], vectorizer: CountVectorizer) -> dict[str, int]:
    """Return the number of texts with each cue; counts by label are one product more."""
    matrix = vectorizer.fit_transform([example.text for example in examples])
    labels = np.array([example.label for example in examples])
    (np.stack([labels == label for label in np.unique(labels)]).astype(np.int64) @ matrix).sum()
    return dict(zip(vectorizer.get_feature_names_out(), np.asarray(matrix.sum(0)).ravel().tolist(), strict=True))


def _compare(examples: Sequence[Example]) -> int:
    """Return the largest difference between the counts of headscope, the loop and the CountVectorizer."""
    data = cues(examples)
    counts = dict(zip(data["cue"].values, data["applicability"].values.tolist(), strict=True))
    loop = sum(_loop(examples).values(), Counter())
    matrix = _vectorize(examples, CountVectorizer(analyzer=_list_cues, binary=True))
    names = counts.keys() | loop.keys() | matrix.keys()
    return max(abs(counts.get(name, 0) - other.get(name, 0)) for name in names for other in (loop, matrix))


if __name__ == "__main__":
    main()

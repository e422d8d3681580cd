"""Train the English tagger on a treebank, and measure it on others.

python docs/runs/tagger.py en_ewt-train.conllu --test ewt=en_ewt-dev.conllu --test gum=en_gum-dev.conllu \
    --model src/headscope/data/bundled/english_tagger.npz --out docs/results/tagger.nc

Training is logistic regression by AdaGrad, word by word from left to right with the tags predicted so far; a part of
what is seen is hidden at random, a part of the sentences comes again in small letters, weights are averaged over time
and over three runs. The same treebank and seed give the same file; it takes about two minutes.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import process_time

import numba
import numpy as np
import xarray as xr

import headscope as hs
from headscope.data.tagging.features import END, START, Features, kind_of
from headscope.data.tagging.perceptron import NO_TAG, Tagger
from headscope.data.tagging.weights import Weights, read_weights, write_weights
from headscope.data.tokenizing.words import split
from headscope.results.stamp import fingerprint, stamp

TAGS = ("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ",
        "SYM", "VERB", "X")  # fmt: skip
NONE = len(TAGS)  # the tag of what stands before the first word, as a place in the tables here
TYPES = {"noun": ["NOUN"], "verb": ["VERB"], "pronoun": ["PRON"], "punctuation": ["PUNCT"]}
WIDER = {**TYPES, "noun": ["NOUN", "PROPN"], "verb": ["VERB", "AUX"]}
SMALLEST, LARGEST = 0.12, 2.5  # weights below the first are left out; above the second they are cut

Sentence = list[tuple[str, str]]


def treebank(path: Path) -> Iterator[tuple[str, Sentence]]:
    """Every sentence of a CoNLL-U file: its text, and its words with their universal tags."""
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        lines = block.split("\n")
        text = next(line[9:] for line in lines if line.startswith("# text = "))
        rows = [line.split("\t") for line in lines if not line.startswith("#")]
        yield text, [(row[1], row[3]) for row in rows if row[0].isdigit()]


def classes_of(sentences: list[Sentence]) -> dict[str, str]:
    """The tags that each word had, at least twice seen, as letters; rare ones of a frequent word left out."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for word, tag in sentence:
            seen[word.lower()][tag] += 1
    found = {}
    for word, tags in seen.items():
        kept = [tag for tag, many in sorted(tags.items(), key=lambda each: (-each[1], each[0]))
                if many >= 0.02 * tags.total()]  # fmt: skip
        if tags.total() > 1:
            found[word] = "".join(chr(ord("A") + TAGS.index(tag)) for tag in kept)
    return found


def sure_of(sentences: list[Sentence], least: int) -> dict[str, int]:
    """Frequent words that had the same tag in at least 199 of 200 cases."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for word, tag in sentence:
            seen[word][tag] += 1
    best = {word: (tags.most_common(1)[0], tags.total()) for word, tags in seen.items()}
    return {
        word: TAGS.index(tag) for word, ((tag, many), all_) in best.items() if all_ >= least and many >= 0.995 * all_
    }


@dataclass
class Coded:
    """A treebank as numbers: one row per word."""

    names: dict[str, int]
    static: np.ndarray  # word name: what does not depend on tags
    hidden: np.ndarray  # word name: whether it tells which word it is
    word: np.ndarray  # the row of `words` for each word
    following: np.ndarray
    words: np.ndarray  # word tag name
    nexts: np.ndarray  # word tag name
    history: np.ndarray  # tag tag name
    gold: np.ndarray
    sure: np.ndarray
    ends: np.ndarray


def coded(sentences: list[Sentence], features: Features, sure: dict[str, int]) -> Coded:
    """Names that hold for only one word of the treebank are left out."""
    names: dict[str, int] = {}
    number = lambda many: [names.setdefault(name, len(names)) for name in many]  # noqa: E731
    static, gold, known, ends, first, second = [], [], [], [0], [], []
    places: dict[str, int] = {}
    for sentence in sentences:
        words = [START, START, *(word for word, _ in sentence), END, END]
        kind = kind_of(words[2:-2])
        for place, (word, tag) in enumerate(sentence, 2):
            older, last, _, following, later = words[place - 2 : place + 3]
            around = (features.around(each) for each in (last, following, older, later))
            pairs = (features.pair((last, word))[0], features.pair((word, following))[1])
            groups = (features.own((kind, word)), *pairs, *(each[side] for side, each in enumerate(around)))
            static.append(number(name for group in groups for name in group))
            first.append(places.setdefault(word.lower(), len(places)))
            second.append(places.setdefault(following.lower(), len(places)))
            gold.append(TAGS.index(tag))
            known.append(word in sure)
        ends.append(len(gold))
    table = np.array(static)
    count = np.bincount(table.ravel(), minlength=len(names))
    hidden = np.array([name[:1] in "bcdklrst" for name in names])[table]
    every = [*range(NONE), NO_TAG]
    return Coded(
        static=np.where(count[table] > 1, table, -1),
        hidden=hidden,
        word=np.array(first),
        following=np.array(second),
        words=np.array([[number(features.word_history((word, tag))) for tag in every] for word in places]),
        nexts=np.array([[number(features.next_history((word, tag))) for tag in every] for word in places]),
        history=np.array([[number(features.history((tag, older))) for older in every] for tag in every]),
        gold=np.array(gold),
        sure=np.array(known),
        ends=np.array(ends),
        names=names,
    )


@numba.njit
def epoch(data, order, rate, hide_name, hide_word, clock, weights, squares, sums, stamps):
    """Go through all sentences once; `sums` holds every weight times how long it was that, up to `stamps`."""
    static, hidden, word, following, words, nexts, history, gold, sure, ends = data
    held, scores = np.empty(static.shape[1] + 6, np.int64), np.empty(weights.shape[1], np.float32)
    for sentence in order:
        last, older = NONE, NONE
        for place in range(ends[sentence], ends[sentence + 1]):
            if sure[place]:
                last, older = gold[place], last
                continue
            clock += 1
            without = np.random.random() < hide_word
            many = 0
            for column in range(held.size):
                known = column < static.shape[1]
                if known:
                    name = static[place, column]
                elif column < static.shape[1] + 2:
                    name = words[word[place], last, column - static.shape[1]]
                elif column < static.shape[1] + 3:
                    name = nexts[following[place], last, 0]
                else:
                    name = history[last, older, column - static.shape[1] - 3]
                tells = hidden[place, column] if known else column < static.shape[1] + 2
                if name >= 0 and not (without and tells) and np.random.random() >= hide_name:
                    held[many] = name
                    many += 1
            scores[:] = 0
            for name in held[:many]:
                scores += weights[name]
            scores /= 1 - hide_name
            best = np.argmax(scores)
            wrong = np.exp(scores - scores[best])
            wrong /= wrong.sum()
            wrong[gold[place]] -= 1
            for name in held[:many]:
                for tag in range(wrong.size):
                    if abs(wrong[tag]) > 1e-3:
                        sums[name, tag] += weights[name, tag] * (clock - stamps[name, tag])
                        stamps[name, tag] = clock
                        squares[name, tag] += wrong[tag] ** 2
                        weights[name, tag] -= rate * wrong[tag] / np.sqrt(squares[name, tag] + 0.1)
            last, older = best, last
    return clock


@numba.njit
def seeded(seed):
    """Compiled code draws from numbers of its own."""
    np.random.seed(seed)


def trained(sentences: list[Sentence], options: argparse.Namespace) -> Weights:
    """The mean of several runs, as whole numbers: the mean of linear models is one, and a steadier one."""
    draw = np.random.default_rng(options.seed)
    features, sure = Features(classes_of(sentences)), sure_of(sentences, options.sure)
    small = [[(word.lower(), tag) for word, tag in each] for each in sentences if draw.random() < options.small]
    data = coded([*sentences, *small], features, sure)
    average = np.mean([run(data, options.seed + each, options) for each in range(options.runs)], axis=0)
    average[np.abs(average) < SMALLEST] = 0
    table = np.round(average.clip(-LARGEST, LARGEST) * 127 / LARGEST).astype(np.int8)
    used = table.any(1)
    names = [name for name, place in data.names.items() if used[place]]
    return Weights(TAGS, {name: row for row, name in enumerate(names)}, table[used], features.classes, sure)


def run(data: Coded, seed: int, options: argparse.Namespace) -> np.ndarray:
    """The weights of one run over all epochs, averaged over time."""
    fields = (data.static, data.hidden, data.word, data.following, data.words, data.nexts, data.history, data.gold,
              data.sure, data.ends)  # fmt: skip
    shape, clock, draw = (len(data.names), len(TAGS)), 0, np.random.default_rng(seed)
    weights, squares = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    sums, stamps = np.zeros(shape), np.zeros(shape)
    seeded(seed)
    for _ in range(options.epochs):
        order = draw.permutation(len(data.ends) - 1)
        clock = epoch(fields, order, np.float32(0.1), options.hide, 0.1, clock, weights, squares, sums, stamps)
    return (sums + weights * (clock - stamps)) / clock


def f1(pairs: list[tuple[str, str]], types: dict[str, list[str]]) -> dict[str, float]:
    """F1 of each type from pairs of gold and found tags; "" stands for a word that the other side does not have."""
    found = {}
    for name, tags in types.items():
        both = sum(gold in tags and tag in tags for gold, tag in pairs)
        found[name] = 2 * both / sum((gold in tags) + (tag in tags) for gold, tag in pairs)
    return {**found, "macro": float(np.mean(list(found.values())))}


def on_gold_words(tagger: Tagger, sentences: list[tuple[str, Sentence]]) -> list[tuple[str, str]]:
    """Gold and found tags of every word of the treebank."""
    pairs = []
    for _, sentence in sentences:
        pairs += zip((tag for _, tag in sentence), tagger.tag([word for word, _ in sentence]), strict=True)
    return pairs


def on_own_words(tagger: Tagger, sentences: list[tuple[str, Sentence]]) -> list[tuple[str, str]]:
    """The same from the text alone; a word is right only if both ends are."""
    pairs = []
    for text, sentence in sentences:
        spans, at, gold = split(text), 0, {}
        for word, tag in sentence:
            start = text.index(word, at)
            at = start + len(word)
            gold[start, at] = tag
        found = dict(zip(spans, tagger.tag([text[start:end] for start, end in spans]), strict=True))
        pairs += [(gold.get(span, ""), found.get(span, "")) for span in {*gold, *found}]
    return pairs


def measured(tagger: Tagger, tests: dict[str, Path]) -> xr.Dataset:
    """F1 of every type on every treebank, on gold words, on our own, and on gold words in small letters."""
    words = {"gold": on_gold_words, "own": on_own_words, "small": lambda tagger, sentences: on_gold_words(
        tagger, [(text, [(word.lower(), tag) for word, tag in each]) for text, each in sentences])}  # fmt: skip
    table = [
        [[list(f1(pairs(tagger, sentences), types).values()) for types in (TYPES, WIDER)] for pairs in words.values()]
        for sentences in (list(treebank(path)) for path in tests.values())
    ]
    many = [sum(len(each) for _, each in treebank(path)) for path in tests.values()]
    coords = {"treebank": list(tests), "words": list(words), "tags": ["strict", "wide"], "type": [*TYPES, "macro"]}
    return xr.Dataset({"f1": (tuple(coords), np.array(table)), "n": ("treebank", many)}, coords=coords)


def main() -> None:
    """Train, write, read back and measure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("train", type=Path)
    options.add_argument("--test", action="append", default=[], metavar="NAME=FILE")
    options.add_argument("--model", type=Path, required=True)
    options.add_argument("--out", type=Path)
    options.add_argument("--epochs", type=int, default=40)
    options.add_argument("--runs", type=int, default=3, help="how many runs to take the mean of")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--small", type=float, default=0.2, help="share of sentences that come again in small letters")
    options.add_argument("--hide", type=float, default=0.3, help="share of names that are hidden at each step")
    options.add_argument("--sure", type=int, default=10, help="how often a word must be seen to be always the same")
    given = options.parse_args()
    sentences = [sentence for _, sentence in treebank(given.train)]
    write_weights(trained(sentences, given), given.model)
    tagger = Tagger(read_weights(given.model))
    tests = {name: Path(path) for name, _, path in (each.partition("=") for each in given.test)}
    data = measured(tagger, tests)
    words = [[word for word, _ in sentence] for path in tests.values() for _, sentence in treebank(path)]
    fresh, start = Tagger(read_weights(given.model)), process_time()
    for each in words:
        fresh.tag(each)
    speed = sum(map(len, words)) / (process_time() - start)
    table = data.f1.to_series().unstack("type").round(4).to_string()
    sys.stdout.write(f"{table}\n{given.model.stat().st_size / 1e6:.2f} MB, {speed:,.0f} words/s\n")
    if given.out:
        facts = {"command": "docs/runs/tagger.py", "model": given.model.name, "seed": given.seed,
                 "weights_hash": sha256(given.model.read_bytes()).hexdigest()}  # fmt: skip
        texts = fingerprint(text for path in tests.values() for text, _ in treebank(path))
        hs.save(stamp(data, **facts, data=texts, n=int(data.n.sum())), given.out)


if __name__ == "__main__":
    main()

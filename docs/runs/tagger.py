"""Train the English tagger on a treebank, and evaluate it on others.

python docs/runs/tagger.py en_ewt-train.conllu --test ewt=en_ewt-dev.conllu --test gum=en_gum-dev.conllu \
    --model src/headscope/data/bundled/english_tagger.npz --out docs/results/tagger.nc

Training is logistic regression by AdaGrad, word by word from left to right with the tags predicted so far. Features are
dropped out at random, a part of the sentences is repeated in lower case, and weights are averaged over all steps and
over three runs. The same treebank and seed give the same file; training takes about two minutes.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import process_time

import numba
import numpy as np
import xarray as xr

import headscope as hs
from headscope.core.provenance import stamp
from headscope.data.tagging.features import END, START, Features, sentence_style
from headscope.data.tagging.linear_model import NO_TAG, LinearTagger, Weights, read_weights, write_weights
from headscope.data.tokenizing.words import split_words
from headscope.results.hashes import fingerprint

TAGS = (
    "ADJ",
    "ADP",
    "ADV",
    "AUX",
    "CCONJ",
    "DET",
    "INTJ",
    "NOUN",
    "NUM",
    "PART",
    "PRON",
    "PROPN",
    "PUNCT",
    "SCONJ",
    "SYM",
    "VERB",
    "X",
)
NONE = len(TAGS)  # the index of NO_TAG in the arrays of this script
TYPES = {"noun": ["NOUN"], "verb": ["VERB"], "pronoun": ["PRON"], "punctuation": ["PUNCT"]}
WIDER = {**TYPES, "noun": ["NOUN", "PROPN"], "verb": ["VERB", "AUX"]}
SMALLEST, LARGEST = 0.12, 2.5  # smaller weights are set to zero, larger ones are clipped

Sentence = list[tuple[str, str]]


def read_treebank(path: Path) -> Iterator[tuple[str, Sentence]]:
    """Yield every sentence of a CoNLL-U file: its text, and its words with their universal tags."""
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        lines = block.split("\n")
        text = next(line[9:] for line in lines if line.startswith("# text = "))
        rows = [line.split("\t") for line in lines if not line.startswith("#")]
        yield text, [(row[1], row[3]) for row in rows if row[0].isdigit()]


def count_tags(words: Iterable[tuple[str, str]]) -> dict[str, Counter[str]]:
    """Return how often each word has each tag."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for word, tag in words:
        counts[word][tag] += 1
    return counts


def find_classes(sentences: list[Sentence]) -> dict[str, str]:
    """Return the tags of each word that occurs twice or more, as letters, without tags below 2 % of its occurrences."""
    classes = {}
    for word, tags in count_tags((word.lower(), tag) for sentence in sentences for word, tag in sentence).items():
        frequent = [
            tag
            for tag, count in sorted(tags.items(), key=lambda item: (-item[1], item[0]))
            if count >= 0.02 * tags.total()
        ]
        if tags.total() > 1:
            classes[word] = "".join(chr(ord("A") + TAGS.index(tag)) for tag in frequent)
    return classes


def find_fixed_tags(sentences: list[Sentence], min_count: int) -> dict[str, int]:
    """Return the tag of frequent words that have the same tag in at least 99.5 % of their occurrences."""
    counts = count_tags(word for sentence in sentences for word in sentence)
    best = {word: (*tags.most_common(1)[0], tags.total()) for word, tags in counts.items()}
    return {
        word: TAGS.index(tag)
        for word, (tag, count, total) in best.items()
        if total >= min_count and count >= 0.995 * total
    }


@dataclass
class TrainingData:
    """A treebank as arrays: one row per word."""

    names: dict[str, int]
    static: np.ndarray  # word feature: those that do not depend on tags
    lexical: np.ndarray  # word feature: whether it identifies the word
    word: np.ndarray  # the row of `words` for each word
    following: np.ndarray
    words: np.ndarray  # word tag feature
    nexts: np.ndarray  # word tag feature
    history: np.ndarray  # tag tag feature
    gold: np.ndarray
    fixed: np.ndarray
    ends: np.ndarray


def make_arrays(sentences: list[Sentence], features: Features, fixed_tags: dict[str, int]) -> TrainingData:
    """Number all features; those of only one word of the treebank are left out."""
    names: dict[str, int] = {}
    number = lambda group: [names.setdefault(name, len(names)) for name in group]  # noqa: E731
    static, gold, fixed, ends, current, following_rows = [], [], [], [0], [], []
    rows: dict[str, int] = {}
    for sentence in sentences:
        words = [START, START, *(word for word, _ in sentence), END, END]
        style = sentence_style(words[2:-2])
        for index, (word, tag) in enumerate(sentence, 2):
            older, last, _, following, later = words[index - 2 : index + 3]
            around = (features.around(neighbour) for neighbour in (last, following, older, later))
            pairs = (features.pair((last, word))[0], features.pair((word, following))[1])
            groups = (features.own((style, word)), *pairs, *(groups[side] for side, groups in enumerate(around)))
            static.append(number(name for group in groups for name in group))
            current.append(rows.setdefault(word.lower(), len(rows)))
            following_rows.append(rows.setdefault(following.lower(), len(rows)))
            gold.append(TAGS.index(tag))
            fixed.append(word in fixed_tags)
        ends.append(len(gold))
    table = np.array(static)
    count = np.bincount(table.ravel(), minlength=len(names))
    lexical = np.array([name[:1] in "bcdklrst" for name in names])[table]
    tags = [*range(NONE), NO_TAG]
    return TrainingData(
        static=np.where(count[table] > 1, table, -1),
        lexical=lexical,
        word=np.array(current),
        following=np.array(following_rows),
        words=np.array([[number(features.word_history((word, tag))) for tag in tags] for word in rows]),
        nexts=np.array([[number(features.next_history((word, tag))) for tag in tags] for word in rows]),
        history=np.array([[number(features.history((tag, older))) for older in tags] for tag in tags]),
        gold=np.array(gold),
        fixed=np.array(fixed),
        ends=np.array(ends),
        names=names,
    )


@numba.njit
def run_epoch(data, order, rate, dropout, word_dropout, step, weights, squares, sums, stamps):
    """Train on all sentences once; `sums` holds the sum of every weight over all steps up to `stamps`."""
    static, lexical, word, following, words, nexts, history, gold, fixed, ends = data
    active, scores = np.empty(static.shape[1] + 6, np.int64), np.empty(weights.shape[1], np.float32)
    for sentence in order:
        last, older = NONE, NONE
        for index in range(ends[sentence], ends[sentence + 1]):
            if fixed[index]:
                last, older = gold[index], last
                continue
            step += 1
            no_word = np.random.random() < word_dropout
            count = 0
            for column in range(active.size):
                is_static = column < static.shape[1]
                if is_static:
                    name = static[index, column]
                elif column < static.shape[1] + 2:
                    name = words[word[index], last, column - static.shape[1]]
                elif column < static.shape[1] + 3:
                    name = nexts[following[index], last, 0]
                else:
                    name = history[last, older, column - static.shape[1] - 3]
                identifies_word = lexical[index, column] if is_static else column < static.shape[1] + 2
                if name >= 0 and not (no_word and identifies_word) and np.random.random() >= dropout:
                    active[count] = name
                    count += 1
            scores[:] = 0
            for name in active[:count]:
                scores += weights[name]
            scores /= 1 - dropout
            best = np.argmax(scores)
            gradient = np.exp(scores - scores[best])
            gradient /= gradient.sum()
            gradient[gold[index]] -= 1
            for name in active[:count]:
                for tag in range(gradient.size):
                    if abs(gradient[tag]) > 1e-3:
                        sums[name, tag] += weights[name, tag] * (step - stamps[name, tag])
                        stamps[name, tag] = step
                        squares[name, tag] += gradient[tag] ** 2
                        weights[name, tag] -= rate * gradient[tag] / np.sqrt(squares[name, tag] + 0.1)
            last, older = best, last
    return step


@numba.njit
def set_seed(seed):
    """Seed the random numbers of compiled code, which has its own generator."""
    np.random.seed(seed)


def train(sentences: list[Sentence], options: argparse.Namespace) -> Weights:
    """Return the mean weights of several runs, rounded to 8-bit integers."""
    draw = np.random.default_rng(options.seed)
    features, fixed_tags = Features(find_classes(sentences)), find_fixed_tags(sentences, options.min_count)
    lower = [[(word.lower(), tag) for word, tag in each] for each in sentences if draw.random() < options.lowercase]
    data = make_arrays([*sentences, *lower], features, fixed_tags)
    average = np.mean([run(data, options.seed + number, options) for number in range(options.runs)], axis=0)
    average[np.abs(average) < SMALLEST] = 0
    table = np.round(average.clip(-LARGEST, LARGEST) * 127 / LARGEST).astype(np.int8)
    used = table.any(1)
    names = [name for name, row in data.names.items() if used[row]]
    return Weights(TAGS, {name: row for row, name in enumerate(names)}, table[used], features.classes, fixed_tags)


def run(data: TrainingData, seed: int, options: argparse.Namespace) -> np.ndarray:
    """Train for all epochs, and return the weights averaged over all steps."""
    fields = (
        data.static,
        data.lexical,
        data.word,
        data.following,
        data.words,
        data.nexts,
        data.history,
        data.gold,
        data.fixed,
        data.ends,
    )
    shape, step, draw = (len(data.names), len(TAGS)), 0, np.random.default_rng(seed)
    weights, squares = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    sums, stamps = np.zeros(shape), np.zeros(shape)
    set_seed(seed)
    for _ in range(options.epochs):
        order = draw.permutation(len(data.ends) - 1)
        step = run_epoch(fields, order, np.float32(0.1), options.dropout, 0.1, step, weights, squares, sums, stamps)
    return (sums + weights * (step - stamps)) / step


def f1(pairs: list[tuple[str, str]], types: dict[str, list[str]]) -> dict[str, float]:
    """Return the F1 of each type from pairs of gold and predicted tags; "" means that one side lacks the word."""
    scores = {}
    for name, tags in types.items():
        both = sum(gold in tags and tag in tags for gold, tag in pairs)
        scores[name] = 2 * both / sum((gold in tags) + (tag in tags) for gold, tag in pairs)
    return {**scores, "macro": float(np.mean(list(scores.values())))}


def on_gold_words(tagger: LinearTagger, sentences: list[tuple[str, Sentence]]) -> list[tuple[str, str]]:
    """Return gold and predicted tags of every word of the treebank."""
    pairs = []
    for _, sentence in sentences:
        pairs += zip((tag for _, tag in sentence), tagger.tag([word for word, _ in sentence]), strict=True)
    return pairs


def on_own_words(tagger: LinearTagger, sentences: list[tuple[str, Sentence]]) -> list[tuple[str, str]]:
    """Return the same from the text alone; a word counts only if its start and end are those of the treebank."""
    pairs = []
    for text, sentence in sentences:
        spans, end, gold = split_words(text), 0, {}
        for word, tag in sentence:
            start = text.index(word, end)
            end = start + len(word)
            gold[start, end] = tag
        tags = dict(zip(spans, tagger.tag([text[start:end] for start, end in spans]), strict=True))
        pairs += [(gold.get(span, ""), tags.get(span, "")) for span in {*gold, *tags}]
    return pairs


def on_lower_case(tagger: LinearTagger, sentences: list[tuple[str, Sentence]]) -> list[tuple[str, str]]:
    """Return gold and predicted tags of every word of the treebank in lower case."""
    return on_gold_words(tagger, [(text, [(word.lower(), tag) for word, tag in words]) for text, words in sentences])


def evaluate(tagger: LinearTagger, tests: dict[str, Path]) -> xr.Dataset:
    """Return the F1 of every type on every treebank: on gold words, on our own words, and in lower case."""
    words = {"gold": on_gold_words, "own": on_own_words, "small": on_lower_case}
    table = [
        [[list(f1(pairs(tagger, sentences), types).values()) for types in (TYPES, WIDER)] for pairs in words.values()]
        for sentences in (list(read_treebank(path)) for path in tests.values())
    ]
    counts = [sum(len(sentence) for _, sentence in read_treebank(path)) for path in tests.values()]
    coords = {"treebank": list(tests), "words": list(words), "tags": ["strict", "wide"], "type": [*TYPES, "macro"]}
    return xr.Dataset({"f1": (tuple(coords), np.array(table)), "n": ("treebank", counts)}, coords=coords)


def main() -> None:
    """Train, write, read back and evaluate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("--test", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--runs", type=int, default=3, help="number of runs to average")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lowercase", type=float, default=0.2, help="share of sentences repeated in lower case")
    parser.add_argument("--dropout", type=float, default=0.3, help="share of features dropped at each step")
    parser.add_argument("--min-count", type=int, default=10, help="occurrences of a word before its tag can be fixed")
    options = parser.parse_args()
    sentences = [sentence for _, sentence in read_treebank(options.train)]
    write_weights(train(sentences, options), options.model)
    tests = {name: Path(path) for name, _, path in (test.partition("=") for test in options.test)}
    data = evaluate(LinearTagger(read_weights(options.model)), tests)
    words = [[word for word, _ in sentence] for path in tests.values() for _, sentence in read_treebank(path)]
    tagger, start = LinearTagger(read_weights(options.model)), process_time()
    for sentence in words:
        tagger.tag(sentence)
    speed = sum(map(len, words)) / (process_time() - start)
    table = data.f1.to_series().unstack("type").round(4).to_string()
    sys.stdout.write(f"{table}\n{options.model.stat().st_size / 1e6:.2f} MB, {speed:,.0f} words/s\n")
    if options.out:
        facts = {
            "command": "docs/runs/tagger.py",
            "model": options.model.name,
            "seed": options.seed,
            "weights_hash": sha256(options.model.read_bytes()).hexdigest(),
        }
        texts = fingerprint(text for path in tests.values() for text, _ in read_treebank(path))
        hs.save(stamp(data, **facts, data=texts, n=int(data.n.sum())), options.out, overwrite=True)


if __name__ == "__main__":
    main()

"""Attention maps drawn at random, to be labelled by looking: the source of src/headscope/patterns/labels/bundled.

One run for each model, pretrained or fine-tuned, then the random part and what was chosen for rare classes:

    python docs/runs/pattern_maps.py draw --model MODEL --name all-MiniLM-L6-v2 --place DATA --out maps/a
    python docs/runs/pattern_maps.py draw --model TUNED --name e5-small --tuned mrpc --place DATA --out maps/b
    python docs/runs/pattern_maps.py choose maps/* --out chosen.txt
    python docs/runs/pattern_maps.py join maps/* --chosen chosen.txt --out src/headscope/patterns/labels/bundled

The list that was chosen is docs/runs/pattern_maps_chosen.txt. `DATA` holds gap-development.tsv, dev.tsv of ARCT,
all_sentences.tsv of Winogender and en_ewt-dev.conllu. Which map is drawn depends on the seed alone: a model, a text, a
lens, a layer and a head, each with equal chances.
"""

import argparse
import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import headscope as hs
from headscope.engine.sample_maps import pattern_map
from headscope.patterns.labels.labelled import PatternMap, open_labelled, save_maps
from headscope.patterns.labels.sheet import row_shares

SEED = 2021
RANDOM, POOL = 1000, 2000
LAYERS = {"all-MiniLM-L6-v2": 6, "e5-small": 12}
HEADS = 12
TUNED = ("", "mrpc", "rte", "sst2")
LENSES = ("raw", "effective")
SHORTEST, LONGEST = 20, 128
MANY = {"gap": 40, "gap-pair": 40, "arct-pair": 40, "winogender-pair": 25, "ewt": 40, "ewt-pair": 35}


@dataclass(frozen=True)
class Pick:
    """One map that is drawn."""

    id: str
    model: str
    tuned: str
    text: str
    lens: str
    layer: int
    head: int


def picks(texts: list[hs.Example], seed: int = SEED) -> list[Pick]:
    """The random part, then the pool from which rare classes are topped up; no map twice."""
    chance, found = random.Random(seed), {}
    while len(found) < RANDOM + POOL:
        model, tuned = chance.choice(list(LAYERS)), chance.choice(TUNED)
        where = (
            chance.choice(texts).id,
            chance.choice(LENSES),
            chance.randrange(LAYERS[model]),
            chance.randrange(HEADS),
        )
        place = len(found)
        name = f"r{place:04}" if place < RANDOM else f"p{place - RANDOM:04}"
        found.setdefault((model, tuned, *where), Pick(name, model, tuned, *where))
    return list(found.values())


def texts(folder: Path, tokenizer: Any) -> list[hs.Example]:
    """Single texts and pairs of each corpus, of 20 to 128 tokens."""
    chance, found = random.Random(SEED), []
    for corpus, many in MANY.items():
        every = [each for each in CORPORA[corpus](folder) if SHORTEST <= _length(each, tokenizer) <= LONGEST]
        found += [replace(each, columns={"corpus": corpus}) for each in chance.sample(every, many)]
    return found


def _length(example: hs.Example, tokenizer: Any) -> int:
    return len(tokenizer(example.text, example.pair)["input_ids"])


def gap(folder: Path) -> Iterator[hs.Example]:
    """Snippets as they are."""
    for each in hs.read(f"gap@{folder / 'gap-development.tsv'}"):
        yield hs.Example(each.id, each.text)


def gap_pairs(folder: Path) -> Iterator[hs.Example]:
    """The first sentence of a snippet and the rest."""
    for each in hs.read(f"gap@{folder / 'gap-development.tsv'}"):
        first, *rest = re.split(r"(?<=[a-z]{3}\.) (?=[A-Z])", each.text)
        if rest:
            yield hs.Example(f"{each.id}-pair", first, " ".join(rest))


def arct_pairs(folder: Path) -> Iterator[hs.Example]:
    """Reason and claim, and the right warrant."""
    for each in hs.read(f"arct@{folder / 'dev.tsv'}"):
        yield hs.Example(each.id, each.text, each.columns["choices"][int(each.label or 0)])


def winogender_pairs(folder: Path) -> Iterator[hs.Example]:
    """Two sentences about the same people."""
    rows = hs.read(str(folder / "all_sentences.tsv"), text="sentence")
    for first, second in pairwise(rows):
        yield hs.Example(f"winogender-{first.id}-pair", first.text, second.text)


def ewt(folder: Path) -> Iterator[hs.Example]:
    """Single sentences."""
    for each in hs.read(str(folder / "en_ewt-dev.conllu")):
        yield hs.Example(each.id, each.text)


def ewt_pairs(folder: Path) -> Iterator[hs.Example]:
    """Sentences that follow one another in a document."""
    for first, second in pairwise(hs.read(str(folder / "en_ewt-dev.conllu"))):
        if first.id.rpartition("-")[0] == second.id.rpartition("-")[0]:
            yield hs.Example(f"{first.id}-pair", first.text, second.text)


CORPORA = {
    "gap": gap,
    "gap-pair": gap_pairs,
    "arct-pair": arct_pairs,
    "winogender-pair": winogender_pairs,
    "ewt": ewt,
    "ewt-pair": ewt_pairs,
}


def draw(chosen: argparse.Namespace) -> None:
    """The maps of one model."""
    warnings.simplefilter("ignore", hs.DataWarning)  # the head of a fine-tuned model plays no part
    model = hs.load(chosen.model, dtype="float32")
    known = {each.id: each for each in texts(chosen.place, model.tokenizer)}
    mine: dict[str, list[Pick]] = {}
    for each in picks(list(known.values()), chosen.seed):
        if (each.model, each.tuned) == (chosen.name, chosen.tuned):
            mine.setdefault(each.text, []).append(each)
    maps = [found for text, wanted in mine.items() for found in _seen(model, known[text], wanted)]
    save_maps(sorted(maps, key=lambda each: each.source.id), chosen.out)


def _seen(model: hs.Model, example: hs.Example, wanted: list[Pick]) -> Iterator[PatternMap]:
    """The maps of one text."""
    trace = hs.capture(model, example.text, example.pair, keep=("attention", "values"))
    views = {lens: hs.view(trace, lens) for lens in {each.lens for each in wanted}}
    for each in wanted:
        part = "random" if each.id.startswith("r") else "topped_up"
        origin = {"model": each.model, "tuned": each.tuned, "data": example.columns["corpus"], "text": example.id}
        yield pattern_map(views[each.lens], (each.layer, each.head), id=each.id, part=part, **origin)


def choose(chosen: argparse.Namespace) -> None:
    """The ids of the pool that may be of a rare class, by where their weight lies; labelled like all others."""
    every = [each for folder in chosen.folders for each in open_labelled(folder).maps]
    found = sorted(each.source.id for each in every if each.source.part != "random" and rare(each))
    chosen.out.write_text("\n".join(found) + "\n", encoding="utf-8")


def rare(each: PatternMap) -> bool:
    """Whether three neighbouring distances hold much, or the texts of a pair far more than an even share."""
    shares, segments = row_shares(each.weights), np.array(each.source.segments)
    near = [np.trace(shares, offset) / len(shares) for offset in range(-5, 6)]
    band = max(sum(near[start : start + 3]) for start in range(9))
    same = segments[:, None] == segments
    inside = (shares * same).sum() / len(shares) - same.mean() if segments.any() else -1.0
    return bool(band > 0.35 or (inside > 0.2 and band < 0.25))


def join(chosen: argparse.Namespace) -> None:
    """The random part, and those of the pool that were chosen, in one folder."""
    extra = set(chosen.chosen.read_text(encoding="utf-8").split()) if chosen.chosen else set()
    every = [each for folder in chosen.folders for each in open_labelled(folder).maps]
    kept = [each for each in every if each.source.part == "random" or each.source.id in extra]
    save_maps(sorted(kept, key=lambda each: (each.source.part, each.source.id)), chosen.out)


def main() -> None:
    """Draw, choose or join."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs: Any = options.add_subparsers(required=True)
    drawing = verbs.add_parser("draw")
    drawing.add_argument("--model", help="a hub id or a folder; nothing: the default")
    drawing.add_argument("--name", choices=LAYERS, required=True, help="the pretrained model it is or comes from")
    drawing.add_argument("--tuned", choices=TUNED, default="", help="the task it was fine-tuned on")
    drawing.add_argument("--place", type=Path, required=True, help="the folder with the data")
    drawing.add_argument("--seed", type=int, default=SEED)
    drawing.add_argument("--out", type=Path, required=True)
    drawing.set_defaults(what=draw)
    choosing = verbs.add_parser("choose")
    choosing.add_argument("folders", type=Path, nargs="+")
    choosing.add_argument("--out", type=Path, required=True)
    choosing.set_defaults(what=choose)
    joining = verbs.add_parser("join")
    joining.add_argument("folders", type=Path, nargs="+")
    joining.add_argument("--chosen", type=Path, help="the ids of the pool that are kept, one a line")
    joining.add_argument("--out", type=Path, required=True)
    joining.set_defaults(what=join)
    chosen = options.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()

"""Sample attention maps for labelling: the source of studies/headscope_patterns/labels/bundled.

In studies/headscope_patterns, one run for each model, pretrained or fine-tuned, then the random part and the maps
selected for rare classes:

    python runs/maps.py draw --model MODEL --name all-MiniLM-L6-v2 --place DATA --out maps/a
    python runs/maps.py draw --model TUNED --name e5-small --tuned mrpc --place DATA --out maps/b
    python runs/maps.py choose maps/* --out chosen.txt
    python runs/maps.py join maps/* --chosen chosen.txt --out labels/bundled

The ids that were selected are in maps_chosen.txt beside this file. `DATA` holds gap-development.tsv, dev.tsv of
ARCT, all_sentences.tsv of Winogender and en_ewt-dev.conllu. The sample depends on the seed alone: model, text, lens,
layer and head are uniform.

`draw --sample second` samples what the first sample left out: effective attention over padding, short texts, models
tuned on QNLI and STS-B, and all-mpnet-base-v2. `STRATA` says how many maps of each; within a stratum model, task, text,
lens, layer and head are uniform. All inputs are padded to 128 tokens, and maps are cropped to real tokens.
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
from headscope.experiments.runs import add_commands, call_command, make_parser
from headscope_patterns.labels.labelled_maps import PatternMap, read_labelled_maps, save_maps
from headscope_patterns.labels.render import row_shares
from headscope_patterns.labels.sample_maps import make_pattern_map

SEEDS = {"first": 2021, "second": 2026}
RANDOM, POOL = 1000, 2000
LAYERS = {"all-MiniLM-L6-v2": 6, "e5-small": 12, "all-mpnet-base-v2": 12}
HEADS = 12
SMALL = ("all-MiniLM-L6-v2", "e5-small")
TUNED = {"first": ("", "mrpc", "rte", "sst2"), "second": ("", "qnli", "stsb")}
LENSES = ("raw", "effective")
PADDED, PAPER = "effective:keys=padded", "effective:keys=paper"
MIN_TOKENS, MAX_TOKENS = 20, 128
MIN_SHORT = 6
TEXTS = {"gap": 40, "gap-pair": 40, "arct-pair": 40, "winogender-pair": 25, "ewt": 40, "ewt-pair": 35}
SHORT_TEXTS = {"arct": 20, "winogender": 20, "ewt": 20, "ewt-pair": 20}


@dataclass(frozen=True)
class SampledMap:
    """One sampled map."""

    id: str
    model: str
    tuned: str
    text: str
    lens: str
    layer: int
    head: int


@dataclass(frozen=True)
class Stratum:
    """A part of the second sample: the number of maps, and what they are sampled from."""

    count: int
    models: tuple[str, ...] = SMALL
    tuned: tuple[str, ...] = TUNED["second"]
    lenses: tuple[str, ...] = (*LENSES, PADDED, PAPER)
    lengths: tuple[str, ...] = ("long",)


STRATA = {
    "padded": Stratum(100, lenses=(PADDED,)),
    "paper": Stratum(100, lenses=(PAPER,)),
    "short": Stratum(84, lengths=("short",)),
    "tuned": Stratum(80, tuned=("qnli", "stsb"), lenses=LENSES),
    "mpnet": Stratum(80, models=("all-mpnet-base-v2",), tuned=("",), lengths=("long", "short")),
}


def sample_strata(texts: dict[str, list[hs.Example]], seed: int) -> list[SampledMap]:
    """Sample the maps of every stratum without replacement; a stratum does not depend on the others."""
    maps = []
    for name, stratum in STRATA.items():
        rng, sampled = random.Random(f"{seed} {name}"), {}
        pool = [example.id for length in stratum.lengths for example in texts[length]]
        while len(sampled) < stratum.count:
            model, tuned = rng.choice(stratum.models), rng.choice(stratum.tuned)
            text, lens = rng.choice(pool), rng.choice(stratum.lenses)
            key = (model, tuned, text, lens, rng.randrange(LAYERS[model]), rng.randrange(HEADS))
            sampled.setdefault(key, SampledMap(f"{name}{len(sampled):03}", *key))
        maps += sampled.values()
    return maps


def sample(texts: list[hs.Example], seed: int) -> list[SampledMap]:
    """Sample the random part, then the pool for rare classes, without replacement."""
    rng, sampled = random.Random(seed), {}
    while len(sampled) < RANDOM + POOL:
        model, tuned = rng.choice(SMALL), rng.choice(TUNED["first"])
        text, lens = rng.choice(texts).id, rng.choice(LENSES)
        key = (model, tuned, text, lens, rng.randrange(LAYERS[model]), rng.randrange(HEADS))
        index = len(sampled)
        map_id = f"r{index:04}" if index < RANDOM else f"p{index - RANDOM:04}"
        sampled.setdefault(key, SampledMap(map_id, *key))
    return list(sampled.values())


def sample_texts(
    folder: Path, tokenizer: Any, seed: int, counts: dict[str, int], low: int = MIN_TOKENS, high: int = MAX_TOKENS
) -> list[hs.Example]:
    """Sample single texts and pairs of `low` to `high` tokens from each corpus."""

    def length(example: hs.Example) -> int:
        return len(tokenizer(example.text, example.pair)["input_ids"])

    rng, sampled = random.Random(seed), []
    for corpus, count in counts.items():
        examples = [example for example in CORPORA[corpus](folder) if low <= length(example) <= high]
        sampled += [replace(example, columns={"corpus": corpus}) for example in rng.sample(examples, count)]
    return sampled


def gap(folder: Path) -> Iterator[hs.Example]:
    """Yield snippets."""
    for row in hs.read(f"gap@{folder / 'gap-development.tsv'}"):
        yield hs.Example(row.id, row.text)


def gap_pairs(folder: Path) -> Iterator[hs.Example]:
    """Yield the first sentence of a snippet and the rest."""
    for row in hs.read(f"gap@{folder / 'gap-development.tsv'}"):
        first, *rest = re.split(r"(?<=[a-z]{3}\.) (?=[A-Z])", row.text)
        if rest:
            yield hs.Example(f"{row.id}-pair", first, " ".join(rest))


def arct(folder: Path) -> Iterator[hs.Example]:
    """Yield the correct warrant."""
    for row in hs.read(f"arct@{folder / 'dev.tsv'}"):
        yield hs.Example(f"{row.id}-warrant", row.columns["choices"][int(row.label or 0)])


def arct_pairs(folder: Path) -> Iterator[hs.Example]:
    """Yield reason and claim, and the correct warrant."""
    for row in hs.read(f"arct@{folder / 'dev.tsv'}"):
        yield hs.Example(row.id, row.text, row.columns["choices"][int(row.label or 0)])


def winogender(folder: Path) -> Iterator[hs.Example]:
    """Yield single sentences."""
    for row in hs.read(str(folder / "all_sentences.tsv"), text="sentence"):
        yield hs.Example(f"winogender-{row.id}", row.text)


def winogender_pairs(folder: Path) -> Iterator[hs.Example]:
    """Yield two sentences about the same people."""
    rows = hs.read(str(folder / "all_sentences.tsv"), text="sentence")
    for first, second in pairwise(rows):
        yield hs.Example(f"winogender-{first.id}-pair", first.text, second.text)


def ewt(folder: Path) -> Iterator[hs.Example]:
    """Yield single sentences."""
    for row in hs.read(str(folder / "en_ewt-dev.conllu")):
        yield hs.Example(row.id, row.text)


def ewt_pairs(folder: Path) -> Iterator[hs.Example]:
    """Yield consecutive sentences of a document."""
    for first, second in pairwise(hs.read(str(folder / "en_ewt-dev.conllu"))):
        if first.id.rpartition("-")[0] == second.id.rpartition("-")[0]:
            yield hs.Example(f"{first.id}-pair", first.text, second.text)


CORPORA = {
    "gap": gap,
    "gap-pair": gap_pairs,
    "arct": arct,
    "arct-pair": arct_pairs,
    "winogender": winogender,
    "winogender-pair": winogender_pairs,
    "ewt": ewt,
    "ewt-pair": ewt_pairs,
}


def draw(options: argparse.Namespace) -> None:
    """Compute and save the sampled maps of one model."""
    warnings.simplefilter("ignore", hs.DataWarning)  # the task head of a fine-tuned model is not used
    model = hs.load(options.model, dtype="float32")
    seed = SEEDS[options.sample] if options.seed is None else options.seed
    texts = {"long": sample_texts(options.place, model.tokenizer, seed, TEXTS)}
    if options.sample == "first":
        sampled = sample(texts["long"], seed)
    else:
        texts["short"] = sample_texts(
            options.place, model.tokenizer, seed, SHORT_TEXTS, low=MIN_SHORT, high=MIN_TOKENS - 1
        )
        sampled = sample_strata(texts, seed)
    examples = {example.id: example for pool in texts.values() for example in pool}
    by_text: dict[str, list[SampledMap]] = {}
    for item in sampled:
        if (item.model, item.tuned) == (options.name, options.tuned):
            by_text.setdefault(item.text, []).append(item)
    if not by_text:
        raise SystemExit(f"The {options.sample} sample has no map of {options.name} tuned on '{options.tuned}'.")
    pad_to = MAX_TOKENS if options.sample == "second" else None
    maps = [item for text, items in by_text.items() for item in _compute_maps(model, examples[text], items, pad_to)]
    save_maps(sorted(maps, key=lambda item: item.source.id), options.out)


def _compute_maps(
    model: hs.Model, example: hs.Example, sampled: list[SampledMap], pad_to: int | None
) -> Iterator[PatternMap]:
    layers, keep = sorted({item.layer for item in sampled}), ("attention", "values", "pads")
    trace = hs.capture(model, example.text, example.pair, layers=layers, keep=keep, pad_to=pad_to)
    views = {lens: hs.view(trace, lens) for lens in {item.lens for item in sampled}}
    for item in sampled:
        part = {"r": "random", "p": "topped_up"}[item.id[0]] if item.id[1:].isdigit() else "test"
        origin = {"model": item.model, "tuned": item.tuned, "data": example.columns["corpus"], "text": example.id}
        yield make_pattern_map(views[item.lens], item.layer, item.head, id=item.id, part=part, **origin)


def choose(options: argparse.Namespace) -> None:
    """Write the ids of the pool that may be of a rare class, by the distribution of their weight."""
    ids = sorted(item.source.id for item in _read(options.folders) if item.source.part == "topped_up" and is_rare(item))
    options.out.write_text("\n".join(ids) + "\n", encoding="utf-8")


def is_rare(item: PatternMap) -> bool:
    """Return whether three neighbouring offsets hold much weight, or the texts of a pair far more than uniform."""
    weights, segments = row_shares(item.weights), np.array(item.source.segments)
    offsets = [np.trace(weights, offset) / len(weights) for offset in range(-5, 6)]
    band = max(sum(offsets[start : start + 3]) for start in range(9))
    same = segments[:, None] == segments
    inside = (weights * same).sum() / len(weights) - same.mean() if segments.any() else -1.0
    return bool(band > 0.35 or (inside > 0.2 and band < 0.25))


def join(options: argparse.Namespace) -> None:
    """Write all but the maps of the pool that were not selected to one folder."""
    ids = set(options.chosen.read_text(encoding="utf-8").split()) if options.chosen else set()
    maps = [item for item in _read(options.folders) if item.source.part != "topped_up" or item.source.id in ids]
    save_maps(sorted(maps, key=lambda item: (item.source.part, item.source.id)), options.out)


def _read(folders: list[Path]) -> list[PatternMap]:
    return [item for folder in folders for item in read_labelled_maps(folder).maps]


def main() -> None:
    """Run draw, choose or join."""
    parser = make_parser(__doc__)
    drawing, choosing, joining = add_commands(parser, draw=draw, choose=choose, join=join)
    drawing.add_argument("--model", help="a hub id or a folder; by default a small BERT")
    drawing.add_argument("--name", choices=LAYERS, required=True, help="the pretrained model it is or comes from")
    drawing.add_argument("--sample", choices=SEEDS, default="first", help="which of the two samples")
    drawing.add_argument(
        "--tuned", choices=sorted({*TUNED["first"], *TUNED["second"]}), default="", help="the task it was fine-tuned on"
    )
    drawing.add_argument("--place", type=Path, required=True, help="the folder with the data")
    drawing.add_argument("--seed", type=int, help="by default that of the sample")
    choosing.add_argument("folders", type=Path, nargs="+")
    joining.add_argument("folders", type=Path, nargs="+")
    joining.add_argument("--chosen", type=Path, help="a file with the ids of the pool to include, one per line")
    call_command(parser)


if __name__ == "__main__":
    main()

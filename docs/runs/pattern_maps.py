"""Sample attention maps for labelling: the source of src/headscope/patterns/labels/bundled.

One run for each model, pretrained or fine-tuned, then the random part and the maps selected for rare classes:

    python docs/runs/pattern_maps.py draw --model MODEL --name all-MiniLM-L6-v2 --place DATA --out maps/a
    python docs/runs/pattern_maps.py draw --model TUNED --name e5-small --tuned mrpc --place DATA --out maps/b
    python docs/runs/pattern_maps.py choose maps/* --out chosen.txt
    python docs/runs/pattern_maps.py join maps/* --chosen chosen.txt --out src/headscope/patterns/labels/bundled

The ids that were selected are in docs/runs/pattern_maps_chosen.txt. `DATA` holds gap-development.tsv, dev.tsv of ARCT,
all_sentences.tsv of Winogender and en_ewt-dev.conllu. The sample depends on the seed alone: model, text, lens, layer
and head are uniform.
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
from headscope.engine.sample_maps import make_pattern_map
from headscope.patterns.labels.labelled_maps import PatternMap, read_labelled_maps, save_maps
from headscope.patterns.labels.render import row_shares

SEED = 2021
RANDOM, POOL = 1000, 2000
LAYERS = {"all-MiniLM-L6-v2": 6, "e5-small": 12}
HEADS = 12
TUNED = ("", "mrpc", "rte", "sst2")
LENSES = ("raw", "effective")
MIN_TOKENS, MAX_TOKENS = 20, 128
TEXTS = {"gap": 40, "gap-pair": 40, "arct-pair": 40, "winogender-pair": 25, "ewt": 40, "ewt-pair": 35}


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


def sample(texts: list[hs.Example], seed: int = SEED) -> list[SampledMap]:
    """Sample the random part, then the pool for rare classes, without replacement."""
    rng, sampled = random.Random(seed), {}
    while len(sampled) < RANDOM + POOL:
        model, tuned = rng.choice(list(LAYERS)), rng.choice(TUNED)
        text, lens = rng.choice(texts).id, rng.choice(LENSES)
        key = (model, tuned, text, lens, rng.randrange(LAYERS[model]), rng.randrange(HEADS))
        index = len(sampled)
        map_id = f"r{index:04}" if index < RANDOM else f"p{index - RANDOM:04}"
        sampled.setdefault(key, SampledMap(map_id, *key))
    return list(sampled.values())


def sample_texts(folder: Path, tokenizer: Any) -> list[hs.Example]:
    """Sample single texts and pairs of 20 to 128 tokens from each corpus."""

    def length(example: hs.Example) -> int:
        return len(tokenizer(example.text, example.pair)["input_ids"])

    rng, sampled = random.Random(SEED), []
    for corpus, count in TEXTS.items():
        examples = [example for example in CORPORA[corpus](folder) if MIN_TOKENS <= length(example) <= MAX_TOKENS]
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


def arct_pairs(folder: Path) -> Iterator[hs.Example]:
    """Yield reason and claim, and the correct warrant."""
    for row in hs.read(f"arct@{folder / 'dev.tsv'}"):
        yield hs.Example(row.id, row.text, row.columns["choices"][int(row.label or 0)])


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
    "arct-pair": arct_pairs,
    "winogender-pair": winogender_pairs,
    "ewt": ewt,
    "ewt-pair": ewt_pairs,
}


def draw(options: argparse.Namespace) -> None:
    """Compute and save the sampled maps of one model."""
    warnings.simplefilter("ignore", hs.DataWarning)  # the task head of a fine-tuned model is not used
    model = hs.load(options.model, dtype="float32")
    examples = {example.id: example for example in sample_texts(options.place, model.tokenizer)}
    by_text: dict[str, list[SampledMap]] = {}
    for item in sample(list(examples.values()), options.seed):
        if (item.model, item.tuned) == (options.name, options.tuned):
            by_text.setdefault(item.text, []).append(item)
    maps = [item for text, sampled in by_text.items() for item in _compute_maps(model, examples[text], sampled)]
    save_maps(sorted(maps, key=lambda item: item.source.id), options.out)


def _compute_maps(model: hs.Model, example: hs.Example, sampled: list[SampledMap]) -> Iterator[PatternMap]:
    trace = hs.capture(model, example.text, example.pair, keep=("attention", "values"))
    views = {lens: hs.view(trace, lens) for lens in {item.lens for item in sampled}}
    for item in sampled:
        part = "random" if item.id.startswith("r") else "topped_up"
        origin = {"model": item.model, "tuned": item.tuned, "data": example.columns["corpus"], "text": example.id}
        yield make_pattern_map(views[item.lens], item.layer, item.head, id=item.id, part=part, **origin)


def choose(options: argparse.Namespace) -> None:
    """Write the ids of the pool that may be of a rare class, by the distribution of their weight."""
    ids = sorted(item.source.id for item in _read(options.folders) if item.source.part != "random" and is_rare(item))
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
    """Write the random part and the selected maps of the pool to one folder."""
    ids = set(options.chosen.read_text(encoding="utf-8").split()) if options.chosen else set()
    maps = [item for item in _read(options.folders) if item.source.part == "random" or item.source.id in ids]
    save_maps(sorted(maps, key=lambda item: (item.source.part, item.source.id)), options.out)


def _read(folders: list[Path]) -> list[PatternMap]:
    return [item for folder in folders for item in read_labelled_maps(folder).maps]


def main() -> None:
    """Run draw, choose or join."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands: Any = parser.add_subparsers(required=True)
    drawing, choosing, joining = (commands.add_parser(command.__name__) for command in (draw, choose, join))
    drawing.add_argument("--model", help="a hub id or a folder; by default a small BERT")
    drawing.add_argument("--name", choices=LAYERS, required=True, help="the pretrained model it is or comes from")
    drawing.add_argument("--tuned", choices=TUNED, default="", help="the task it was fine-tuned on")
    drawing.add_argument("--place", type=Path, required=True, help="the folder with the data")
    drawing.add_argument("--seed", type=int, default=SEED)
    choosing.add_argument("folders", type=Path, nargs="+")
    joining.add_argument("folders", type=Path, nargs="+")
    joining.add_argument("--chosen", type=Path, help="a file with the ids of the pool to include, one per line")
    for command, function in ((drawing, draw), (choosing, choose), (joining, join)):
        command.add_argument("--out", type=Path, required=True)
        command.set_defaults(run=function)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()

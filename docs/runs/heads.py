"""Every statistic of every head over two corpora, raw and effective: the source of docs/measuring.md.

One run for each corpus and model, then all of them in one small file:

    python docs/runs/heads.py run sst2 --place GLUE --out sst2-minilm.state
    python docs/runs/heads.py run wikitext --place TEXT --model e5-small --out wikitext-e5.state
    python docs/runs/heads.py join *.state --out docs/results/heads.nc

`wikitext` are 1,000 inputs of two paragraphs that follow one another, cut to 128 tokens, as in Clark et al. (2019).
"""

import argparse
import random
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.measuring.checkpoint import read_checkpoint
from headscope.results.stamp import stamp

STATISTICS = (
    "entropy",
    "peak",
    "distance",
    "offsets",
    "special_tokens",
    "token_types",
    "effective_share",
    "lens_agreement",
    "head_distance",
)
LENSES = ("raw", "effective")
LENGTH, INPUTS = 128, 1000


def sst2(folder: Path) -> list[hs.Example]:
    """The sentences of SST-2's dev set."""
    return hs.read(f"glue:sst-2:dev@{folder}")


def wikitext(folder: Path) -> list[hs.Example]:
    """Two paragraphs that follow one another in an article, at random."""
    pairs = [
        pair
        for name in ("valid.txt", "test.txt")
        for article in _articles((folder / name).read_text(encoding="utf-8"))
        for pair in pairwise(article)
    ]
    chosen = random.Random(0).sample(pairs, INPUTS)
    return [hs.Example(f"wikitext-{place}", first, second) for place, (first, second) in enumerate(chosen)]


def _articles(text: str) -> Iterator[list[str]]:
    """Paragraphs that follow one another in an article, without headings.

    One in which more than one word in twenty is unknown is left out, and what comes after it begins anew.
    """
    together: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if re.match("= [^=]", line) or line.count("<unk>") * 20 > len(line.split()):
            yield together
            together = []
        elif line and not line.startswith("="):
            together.append(_plain(line))
    yield together


def _plain(line: str) -> str:
    """Undo what the corpus did to unknown words, numbers, hyphens and punctuation."""
    line = line.replace("<unk>", "[UNK]")
    line = re.sub(r" @([-,.])@ ", r"\1", line)
    line = re.sub(r" ([,.;:!?)\]%]|'s|'t|n't|'re|'ve|'ll|'d|'m)(?= |$)", r"\1", line)
    line = re.sub(r"([(\[$£]) ", r"\1", line)
    return re.sub(r'" ([^"]*?) "', r'"\1"', line)


CORPORA = {"sst2": sst2, "wikitext": wikitext}


def run(chosen: argparse.Namespace) -> None:
    """Measure one corpus with one model."""
    warnings.simplefilter("ignore", hs.DataWarning)  # paragraphs are cut on purpose
    hs.measure(
        hs.load(chosen.model, dtype="float32"),
        CORPORA[chosen.corpus](chosen.place),
        lens=list(LENSES),
        statistics=list(STATISTICS),
        max_length=LENGTH,
        limit=chosen.limit,
        out=chosen.out,
        resume=True,
    )


def join(chosen: argparse.Namespace) -> None:
    """All runs along `corpus` and `model`, as small as they can be without losing what is shown."""
    parts: dict[str, list[xr.Dataset]] = {}
    facts = {}
    for path in chosen.states:
        corpus, data, known = path.name.partition("-")[0], hs.merge(path), read_checkpoint(path).facts
        label = Path(str(known["model"])).name
        facts[f"{corpus} {label}"] = {name: known[name] for name in ("weights_hash", "data", "n", "device", "dtype")}
        parts.setdefault(corpus, []).append(_small(data).expand_dims(corpus=[corpus], model=[label]))
    rows = [xr.concat(each, "model", data_vars="all", join="outer") for each in parts.values()]
    whole = xr.concat(rows, "corpus", data_vars="all", join="outer")
    command = "docs/runs/heads.py over SST-2 dev and 1,000 pairs of paragraphs of WikiText-2"
    models = {name.partition(" ")[2]: each["weights_hash"] for name, each in facts.items()}
    origin = {
        "model": sorted(models),
        "weights_hash": models,
        "data": {name: each["data"] for name, each in facts.items()},
    }
    settings = {**origin} | {name: known[name] for name in ("lenses", "statistics", "max_length", "tagger", "units")}
    hs.save(
        stamp(whole, command=command, runs=facts, n=sum(each["n"] for each in facts.values()), **settings), chosen.out
    )


def _small(data: xr.Dataset) -> xr.Dataset:
    """Single precision, and of the distance between heads only its mean."""
    dropped = [f"head_distance_{end}" for end in ("sd", "n", "low", "high") if f"head_distance_{end}" in data]
    return (
        data.drop_vars(dropped)
        .map(lambda table: table.astype(np.float32), keep_attrs=True)
        .assign_attrs(headscope="{}")
    )


def main() -> None:
    """Run or join."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs: Any = options.add_subparsers(required=True)
    running = verbs.add_parser("run")
    running.add_argument("corpus", choices=CORPORA)
    running.add_argument("--place", type=Path, required=True, help="the folder with the data")
    running.add_argument("--model", help="a hub id or a folder; nothing: the default")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--limit", type=int)
    running.set_defaults(what=run)
    joining = verbs.add_parser("join")
    joining.add_argument("states", type=Path, nargs="+", help="called CORPUS-MODEL.state")
    joining.add_argument("--out", type=Path, required=True)
    joining.set_defaults(what=join)
    chosen = options.parse_args()
    chosen.what(chosen)


if __name__ == "__main__":
    main()

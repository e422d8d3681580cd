"""Measure every statistic of every head over two corpora, raw and effective: the source of docs/heads.md.

One run for each corpus and model, then all of them in one small file:

    python docs/runs/heads.py run sst2 --data GLUE --out sst2-minilm.state
    python docs/runs/heads.py run wikitext --data TEXT --model e5-small --out wikitext-e5.state
    python docs/runs/heads.py join *.state --out docs/results/heads.nc

`wikitext` is 1,000 pairs of consecutive paragraphs, truncated to 128 tokens, as in Clark et al. (2019).
"""

import argparse
import random
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import xarray as xr

import headscope as hs
from headscope.core.provenance import stamp
from headscope.experiments.runs import run_or_join
from headscope.measuring.checkpoint import read_checkpoint

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


def read_sst2(folder: Path) -> list[hs.Example]:
    """Return the sentences of SST-2's dev set."""
    return hs.read(f"glue:sst-2:dev@{folder}")


def read_wikitext(folder: Path) -> list[hs.Example]:
    """Return a random sample of pairs of consecutive paragraphs of an article."""
    pairs = [
        pair
        for name in ("valid.txt", "test.txt")
        for article in _split_articles((folder / name).read_text(encoding="utf-8"))
        for pair in pairwise(article)
    ]
    sample = random.Random(0).sample(pairs, INPUTS)
    return [hs.Example(f"wikitext-{index}", first, second) for index, (first, second) in enumerate(sample)]


def _split_articles(text: str) -> Iterator[list[str]]:
    """Yield runs of consecutive paragraphs of an article, without headings.

    A paragraph in which more than one word in twenty is unknown is left out and ends its run.
    """
    paragraphs: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if re.match("= [^=]", line) or line.count("<unk>") * 20 > len(line.split()):
            yield paragraphs
            paragraphs = []
        elif line and not line.startswith("="):
            paragraphs.append(_detokenise(line))
    yield paragraphs


def _detokenise(line: str) -> str:
    """Undo the corpus's changes to unknown words, numbers, hyphens and punctuation."""
    line = line.replace("<unk>", "[UNK]")
    line = re.sub(r" @([-,.])@ ", r"\1", line)
    line = re.sub(r" ([,.;:!?)\]%]|'s|'t|n't|'re|'ve|'ll|'d|'m)(?= |$)", r"\1", line)
    line = re.sub(r"([(\[$£]) ", r"\1", line)
    return re.sub(r'" ([^"]*?) "', r'"\1"', line)


CORPORA = {"sst2": read_sst2, "wikitext": read_wikitext}


def run(options: argparse.Namespace) -> None:
    """Measure one corpus with one model."""
    warnings.simplefilter("ignore", hs.DataWarning)  # paragraphs are truncated on purpose
    hs.measure(
        hs.load(options.model, dtype="float32"),
        CORPORA[options.corpus](options.data),
        lens=list(LENSES),
        statistics=list(STATISTICS),
        max_length=LENGTH,
        limit=options.limit,
        out=options.out,
        resume=True,
    )


def join(options: argparse.Namespace) -> None:
    """Save all runs along `corpus` and `model`, without what docs/heads.md does not show."""
    parts: dict[str, list[xr.Dataset]] = {}
    runs = {}
    for path in options.paths:  # CORPUS-MODEL.state
        corpus, data, facts = path.name.partition("-")[0], hs.merge(path), read_checkpoint(path).facts
        model = Path(str(facts["model"])).name
        runs[f"{corpus} {model}"] = {name: facts[name] for name in ("weights_hash", "data", "n", "device", "dtype")}
        parts.setdefault(corpus, []).append(_reduce_size(data).expand_dims(corpus=[corpus], model=[model]))
    rows = [xr.concat(models, "model", data_vars="all", join="outer") for models in parts.values()]
    hashes = {name.partition(" ")[2]: run["weights_hash"] for name, run in runs.items()}
    joined = stamp(
        xr.concat(rows, "corpus", data_vars="all", join="outer"),
        command="docs/runs/heads.py over SST-2 dev and 1,000 pairs of paragraphs of WikiText-2",
        runs=runs,
        model=sorted(hashes),
        weights_hash=hashes,
        data={name: run["data"] for name, run in runs.items()},
        n=sum(run["n"] for run in runs.values()),
        **{name: facts[name] for name in ("lenses", "statistics", "max_length", "tagger", "units")},
    )
    hs.save(joined, options.out, overwrite=True)


def _reduce_size(data: xr.Dataset) -> xr.Dataset:
    """Return the data in single precision, and of the distance between heads only its mean."""
    dropped = [f"head_distance_{end}" for end in ("sd", "n", "low", "high") if f"head_distance_{end}" in data]
    return (
        data.drop_vars(dropped)
        .map(lambda table: table.astype(np.float32), keep_attrs=True)
        .assign_attrs(headscope="{}")
    )


if __name__ == "__main__":
    run_or_join(__doc__, run, join, argument="corpus", choices=CORPORA)

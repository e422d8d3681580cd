"""Audit ARCT, RTE and SST-2: cues, beside the paper's; and what is left of them in balanced data.

PYTHONPATH=src python docs/runs/cues.py --data DATA --out docs/results

DATA holds arct/adversarial (with claim_map.csv) and glue/RTE, glue/SST-2; ARCT itself is in the package. Writes
cues_arct.nc (all cues of the training set) and cues.nc (everything else). Takes about a minute on one core.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

import headscope as hs
from headscope.audit.add_negated import SUFFIX
from headscope.audit.words import list_words
from headscope.core.example import Example
from headscope.core.provenance import stamp
from headscope.kinds.cues import count_off_chance
from headscope.results.hashes import fingerprint_examples
from headscope.uncertainty.intervals import wilson_interval

NEGATION = {"not, apart from cannot": r"\bnot\b", "not or n't": r"\b(?:can)?not\b|n't\b"}
WORDS = ("not", "n't", *NEGATION)
PAIR = "not in claim & not in choices"
OFTEN = 10
VARIANTS = ("exclusive", "either")
SPLITS = ("train", "dev", "test")
TOP, FOLDS = 12, 5
RATES = ("productivity", "productivity_low", "productivity_high", "coverage", "coverage_low", "coverage_high")
COUNTS = ("applicability", "chance", "gain", "pmi", "productivity_p", "productivity_p_adjusted")


def main() -> None:
    """Run everything, and save it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of arct and glue")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    options = parser.parse_args()
    splits = {split: hs.read(f"arct:{split}") for split in SPLITS}
    splits["all"] = [example for split in SPLITS for example in splits[split]]
    hs.save(hs.cues(splits["train"]), options.out / "cues_arct.nc", overwrite=True)
    tasks = {
        "ARCT": (splits["train"], "choices"),
        "RTE": (hs.read(f"glue:rte:train@{options.data / 'glue'}"), ("text", "pair")),
        "RTE, second text": (hs.read(f"glue:rte:train@{options.data / 'glue'}"), "pair"),
        "SST-2": (hs.read(f"glue:sst-2:train@{options.data / 'glue'}"), "text"),
    }
    arct = options.data / "arct"
    table = xr.merge([known_values(splits), audit(tasks), left_of_cues(tasks, arct), count_pairs(splits, arct)])
    table = table.drop_attrs()
    every = [example for examples, _ in tasks.values() for example in examples]
    facts = {"n": len(every), "folds": FOLDS, "data": fingerprint_examples(every, labels=True)}
    hs.save(stamp(table, command="docs/runs/cues.py", **facts), options.out / "cues.nc", overwrite=True)


def known_values(splits: dict[str, list[Example]]) -> xr.Dataset:
    """Return the rates of negations in the splits of ARCT, by variant."""
    rows = []
    for variant in VARIANTS:
        parts = [hs.cues(examples, ngrams=(1,), patterns=NEGATION, variant=variant) for examples in splits.values()]
        chosen = [part.sel(cue=list(WORDS))[[*RATES, "applicability"]].drop_vars("words") for part in parts]
        rows.append(xr.concat([part.rename(cue="word") for part in chosen], "split"))
    data = xr.concat(rows, "variant").assign_coords(variant=list(VARIANTS), split=list(splits))
    sizes = ("split", [len(examples) for examples in splits.values()])
    return data.rename({name: f"known_{name}" for name in data.data_vars}).assign(known_n=sizes)


def audit(tasks: dict[str, tuple[list[Example], Any]]) -> xr.Dataset:
    """Return the cues with the largest gain in every task."""
    parts = []
    for examples, where in tasks.values():
        data = hs.cues(examples, parts=where)
        best = data.isel(cue=slice(TOP))
        labels = best["label"].values if "label" in best.coords else np.full(TOP, "", object)
        values = {name: ("rank", best[name].values) for name in (*RATES, *COUNTS)}
        texts = {"cue": ("rank", best["cue"].values.astype(object)), "label": ("rank", labels.astype(object))}
        parts.append(
            xr.Dataset(values | texts).assign(cues=data.sizes["cue"], significant=count_sure(data), n=data["n"])
        )
    joined = xr.concat(parts, "task").assign_coords(task=list(tasks), rank=np.arange(1, TOP + 1))
    return joined.rename({name: f"best_{name}" for name in joined.data_vars})


def left_of_cues(tasks: dict[str, tuple[list[Example], Any]], arct: Path) -> xr.Dataset:
    """Return how many cues are off chance in balanced data, and how well all words together tell the label."""
    train = tasks["ARCT"][0]
    sets: dict[str, tuple[Sequence[Example], Any]] = {
        "ARCT": tasks["ARCT"],
        "ARCT, negated copies": (hs.add_negated(train, arct / "adversarial" / "claim_map.csv"), "choices"),
        "ARCT, published adversarial": (hs.read(f"arct:train-adv-negated@{arct}"), "choices"),
        **{
            f"ARCT {split}, published adversarial": (hs.read(f"arct:{split}-adv-negated@{arct}"), "choices")
            for split in ("dev", "test")
        },
        "ARCT, balanced": (hs.balance(train), "choices"),
    }
    for name in ("RTE", "SST-2"):
        examples, where = tasks[name]
        sets |= {name: tasks[name], f"{name}, balanced": (hs.balance(examples, parts=where), where)}
    examples, where = tasks["RTE"]
    labels = np.random.default_rng(0).permutation([example.label for example in examples])
    shuffled = [replace(example, label=int(label)) for example, label in zip(examples, labels, strict=True)]
    sets |= {"RTE, shuffled labels": (shuffled, where)}
    sets |= {"RTE, shuffled labels, balanced": (hs.balance(shuffled, parts=where), where)}
    rows = []
    for examples, where in sets.values():
        data = hs.cues(examples, parts=where)
        right = cross_validate(examples, where)
        low, high = wilson_interval(int(right.sum()), len(right))
        away = np.abs(data["productivity"] - data["chance"])
        values = {"n": int(data["n"]), "cues": data.sizes["cue"], "off": count_off_chance(data)}
        values |= {"significant": count_sure(data), "gain": float(np.abs(data["gain"]).max())}
        values |= {"largest_deviation": float(away.max()), "accuracy": right.mean()}
        rows.append(xr.Dataset(values | {"accuracy_low": low, "accuracy_high": high}))
    joined = xr.concat(rows, "set").assign_coords(set=list(sets))
    return joined.rename({name: f"left_{name}" for name in joined.data_vars})


def count_pairs(splits: dict[str, list[Example]], arct: Path) -> xr.Dataset:
    """Return how well pairs of words, one in the claim and one in a warrant, tell the answer."""
    options: dict[str, Any] = {"ngrams": (1,), "pairs": ("claim", "choices")}
    sets = {f"ARCT {split}": splits[split] for split in SPLITS}
    adversarial = {split: hs.read(f"arct:{split}-adv-negated@{arct}") for split in SPLITS}
    sets |= {f"ARCT {split}, published adversarial": examples for split, examples in adversarial.items()}
    sets |= {"ARCT train, balanced pairs": hs.balance(splits["train"], **options)}
    rows = []
    for examples in sets.values():
        data = hs.cues(examples, min_count=OFTEN, **options)
        best = hs.cues(examples, **options)[["productivity", "productivity_low", "productivity_high", "applicability"]]
        counts = {"n": data["n"], "cues": data.sizes["cue"], "significant": count_sure(data)}
        counts |= {"off": count_off_chance(data), "gain": float(np.abs(data["gain"]).max())}
        rows.append(best.sel(cue=PAIR, drop=True).reset_coords(drop=True).assign(counts))
    joined = xr.concat(rows, "pair_set").assign_coords(pair_set=list(sets))
    return joined.rename({name: f"pair_{name}" for name in joined.data_vars})


def count_sure(data: xr.Dataset) -> int:
    """Return the number of cues that are significant after the correction."""
    return int(data["productivity_significant"].sum())


def cross_validate(examples: Sequence[Example], where: Any) -> np.ndarray[Any, Any]:
    """Return for each example whether logistic regression on its words and bigrams is right; copies stay together."""
    labels = np.array([example.label for example in examples])
    groups = np.unique([example.id.removesuffix(SUFFIX) for example in examples], return_inverse=True)[1]
    analyze = CountVectorizer(analyzer=list_cues, binary=True)
    if where == "choices":
        sides = [
            analyze.fit([text for e in examples for text in e.columns["choices"]]).transform(
                [example.columns["choices"][side] for example in examples]
            )
            for side in (0, 1)
        ]
        features = (sides[1] - sides[0]).tocsr()
    else:
        parts = [where] if isinstance(where, str) else where
        features = analyze.fit_transform(["\n".join(getattr(example, part) for part in parts) for example in examples])
    right = np.zeros(len(examples), bool)
    for train, test in GroupKFold(FOLDS, shuffle=True, random_state=0).split(features, labels, groups):
        model = LogisticRegression(C=0.1, max_iter=1000, fit_intercept=where != "choices")
        right[test] = model.fit(features[train], labels[train]).predict(features[test]) == labels[test]
    return right


def list_cues(text: str) -> list[str]:
    """Return the words and bigrams of a text, line by line."""
    lines = [list_words(line) for line in text.split("\n")]
    return [cue for words in lines for cue in (*words, *map(" ".join, pairwise(words)))]


if __name__ == "__main__":
    main()

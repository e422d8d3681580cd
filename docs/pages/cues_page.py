"""The tables of docs/cues.md, from docs/results/cues.nc, cues_arct.nc and performance_cues.json."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.core.estimate import estimate
from headscope.core.prose import join_words
from headscope.core.provenance import read_provenance
from headscope.plotting.draw import draw
from headscope.results.store import open_result

DOCS = Path(__file__).parents[1]
PRINTED = {"train": (0.65, 0.66), "dev": (0.62, 0.44), "test": (0.52, 0.77), "all": (0.61, 0.64)}
"""Productivity and coverage of "not" in the paper."""

CLOSE = 0.005
"""The rounding of the printed figures."""

APART = "not, apart from cannot"

TASKS = {"ARCT": "warrants", "RTE": "both texts", "RTE, second text": "second text", "SST-2": "text"}
SHOWN = 6


def pictures() -> dict[str, Figure]:
    """Return the picture of the page."""
    data = open_result(DOCS / "results" / "cues_arct.nc")
    return {"cues.svg": draw(data, "cues", size=6.9, title="Cues in the warrants of ARCT, training set")}


def parts() -> dict[str, str]:
    """Return the texts of the page by their marks."""
    data = open_result(DOCS / "results" / "cues.nc")
    return {
        "known": known(data),
        "audit": audit(data),
        "balance": balance(data),
        "pairs": pairs(data),
        "speed": speed(),
    }


def known(data: xr.Dataset) -> str:
    """Return the rates of negations beside those of the paper."""
    splits = [str(split) for split in data["split"].values]
    sizes = [f"{split} ({int(n):,})" for split, n in zip(splits, data["known_n"].values, strict=True)]
    lines = [f"| cue | variant | {' | '.join(sizes)} | mean difference |", "|---" * (3 + len(splits)) + "|"]
    printed = " | ".join(f"{first:.2f} / {second:.2f}" for first, second in PRINTED.values())
    lines.append(f"| *not*, printed in the paper | | {printed} | |")
    away = {}
    for word in map(str, data["word"].values):
        for variant in map(str, data["variant"].values):
            row = data.sel(word=word, variant=variant)
            found = np.stack([row["known_productivity"].values, row["known_coverage"].values], 1)
            away[word, variant] = float(np.abs(found - np.array(list(PRINTED.values()))).mean())
            cells = " | ".join(f"{first:.3f} / {second:.3f}" for first, second in found)
            lines.append(f"| *{word}* | `{variant}` | {cells} | {away[word, variant]:.3f} |")
    word, variant = min(away, key=away.__getitem__)
    _, low, high = estimate(data, "known_productivity").sel(word="not", variant="exclusive").ends
    ends = zip(splits, low.values, high.values, strict=True)
    text = (
        f"Productivity / coverage in the warrants of ARCT. {_reproduced(data)} Of those tried here, the nearest is "
        f"*{word}*, `{variant}`, by the mean absolute difference of the eight figures, but it is no reproduction "
        "either: it is another cue. 95 % intervals of the productivity of *not*, `exclusive`: "
        f"{join_words(f'{s} {a:.3f} to {b:.3f}' for s, a, b in ends)}. *Cannot* is the two words *can not*, as in the "
        f"Penn Treebank; *{APART}* leaves it out."
    )
    return f"{text}\n\n" + "\n".join(lines) + f"\n\nMade by {read_provenance(data)['command']}.\n"


def _reproduced(data: xr.Dataset) -> str:
    """Say which printed figures come out for the word and a variant."""
    matched, missed = [], []
    for index, name in enumerate(("productivity", "coverage")):
        for split, rates in PRINTED.items():
            found = data[f"known_{name}"].sel(word="not", split=split).values
            close = np.abs(found - rates[index]).min() <= CLOSE + 1e-9
            (matched if close else missed).append(f"{name} {rates[index]:.2f} ({split})")
    if not matched:
        return f"**None of the {len(missed)} printed figures for *not* comes out from the data, in either variant.**"
    return f"Of the printed figures for *not*, {join_words(missed)} do not come out; {join_words(matched)} do."


def audit(data: xr.Dataset) -> str:
    """Return the cues with the largest gain in each task."""
    lines = ["| data | cue | label | applies to | productivity | coverage | chance | PMI | p |", "|---" * 9 + "|"]
    sentences = []
    for task, where in TASKS.items():
        rows = data.sel(task=task)
        name = task.partition(",")[0]
        total, sure, n = (int(rows[f"best_{part}"]) for part in ("cues", "significant", "n"))
        sentences.append(f"{name} ({where}, {n:,} examples): {sure:,} of {total:,}")
        lines += [_audit_row(rows.isel(rank=rank), f"{name}, {where}" if not rank else "") for rank in range(SHOWN)]
    text = (
        f"Training sets, the {SHOWN} words and bigrams with the largest gain. Significant after Holm's correction for "
        f"all cues are: {'; '.join(sentences)}. In SST-2 words are what the label is about: *bad* is no artefact "
        "there; and its rows are phrases, many of them parts of one sentence, so that its intervals are too narrow. "
        "Brackets: 95 % intervals. p is corrected."
    )
    return f"{text}\n\n" + "\n".join(lines) + f"\n\nMade by {read_provenance(data)['command']}.\n"


def _audit_row(row: xr.Dataset, name: str) -> str:
    rates = [estimate(row, f"best_{rate}").format(".3f") for rate in ("productivity", "coverage")]
    numbers = f"{float(row['best_chance']):.3f} | {float(row['best_pmi']):.2f}".replace("-", "−")
    p = float(row["best_productivity_p_adjusted"])
    label = str(row["best_label"].item()) or "right"
    cue = str(row["best_cue"].item()).replace("|", "\\|")
    return (
        f"| {name} | `{cue}` | {label.replace('_', ' ')} | {int(row['best_applicability']):,} | {' | '.join(rates)} | "
        f"{numbers} | {'< 1e-9' if p < 1e-9 else f'{p:.2g}'} |"
    )


def balance(data: xr.Dataset) -> str:
    """Return what is left of cues in balanced data."""
    header = "| data | examples | cues | off chance | significant | largest gain | all words together |"
    lines = [header, "|---" * 7 + "|"]
    for name in map(str, data["set"].values):
        row = data.sel(set=name)
        counts = " | ".join(f"{int(row[f'left_{part}']):,}" for part in ("n", "cues", "off", "significant"))
        lines.append(
            f"| {name} | {counts} | {float(row['left_gain']):.4f} | {estimate(row, 'left_accuracy').format('.3f')} |"
        )
    adversarial = [name for name in map(str, data["set"].values) if "adversarial" in name or "negated" in name]
    deviation = float(data["left_largest_deviation"].sel(set=adversarial).max())
    off = int(data["left_off"].sel(set=adversarial).sum())
    rte = float(data["left_accuracy"].sel(set="RTE, balanced"))
    text = (
        f"*Off chance* are cues whose interval does not hold chance. In all {len(adversarial)} adversarial sets these "
        f"are {off}, and the largest distance of a productivity from chance is {deviation:g}. *All words together* is "
        f"the accuracy of logistic regression on all words and bigrams, in {read_provenance(data)['folds']}-fold "
        "cross-validation, where copies of an example stay together: it uses many weak cues at once, which balancing "
        "single cues does not remove. "
    )
    shuffled = float(data["left_accuracy"].sel(set="RTE, shuffled labels, balanced"))
    if max(rte, shuffled) < 0.5:
        text += (
            f"In the balanced RTE it is below one half, {rte:.3f}, which is an artefact of balancing and "
            f"cross-validation: it is {shuffled:.3f} with shuffled labels, too. Where the counts of a cue are equal "
            "in the whole, those of four folds lean against those of the fifth. "
        )
    text += (
        "The training rows of SST-2 are phrases, many of them parts of one sentence, so that its intervals are too "
        "narrow and its accuracy is too high. Training sets unless named otherwise."
    )
    return f"{text}\n\n" + "\n".join(lines) + f"\n\nMade by {read_provenance(data)['command']}.\n"


def pairs(data: xr.Dataset) -> str:
    """Return how well pairs of words tell the answer, before and after balancing."""
    header = "| data | examples | *not* in claim and warrant | is right in | pairs | off chance | significant |"
    lines = [header, "|---" * 7 + "|"]
    for name in map(str, data["pair_set"].values):
        row = data.sel(pair_set=name)
        n, applies, *counts = (
            int(row[f"pair_{part}"]) for part in ("n", "applicability", "cues", "off", "significant")
        )
        rate = estimate(row, "pair_productivity").format(".3f")
        lines.append(f"| {name} | {n:,} | {applies:,} | {rate} | {' | '.join(f'{count:,}' for count in counts)} |")
    text = (
        "Pairs of words, one in the claim and one in one warrant alone. The last three columns count pairs that apply "
        "to at least 10 examples; *significant* is corrected for them (Holm). Brackets: 95 % intervals."
    )
    return f"{text}\n\n" + "\n".join(lines) + f"\n\nMade by {read_provenance(data)['command']}.\n"


def speed() -> str:
    """Return the texts a second, beside peers."""
    run: dict[str, Any] = json.loads((DOCS / "results" / "performance_cues.json").read_text(encoding="utf-8"))
    speeds = {name: f"{round(value, -2):,.0f}" for name, value in run["speeds"].items()}
    names = {
        "headscope": "`hs.cues`, with intervals, tests and stamp",
        "plain loop": "sets and counters of Python, the same words, counts alone",
        "CountVectorizer": "scikit-learn's CountVectorizer, the same words, counts alone",
        "default": "the same with its own words, which leaves out punctuation and single letters",
    }
    lines = ["| | texts a second |", "|---|---|", *(f"| {names[name]} | {value} |" for name, value in speeds.items())]
    text = (
        f"`{run['command']}` on {run['texts']:,} texts of {run['words']:.1f} words ({run['data']}), {run['device']}, "
        f"medians of {run['turns']} turns, scikit-learn {run['sklearn']}. The bar is {run['bar']:,} texts a second. "
        f"The counts of the first three differ by {run['apart']}."
    )
    return f"{text}\n\n" + "\n".join(lines) + "\n"

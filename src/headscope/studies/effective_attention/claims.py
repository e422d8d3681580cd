"""The paper's claims, each judged for each task on the tuned model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.prose import join_words
from headscope.experiments.verdict import (
    Answer,
    Interval,
    Verdict,
    alike,
    both,
    falls,
    mostly,
    opposite,
    overall,
    rises,
    verdict,
)
from headscope.studies.effective_attention.names import ATTENTIONS
from headscope.studies.effective_attention.paper import SHARES
from headscope.studies.effective_attention.speed import ratios
from headscope.uncertainty.intervals import Array

SHARE = 0.02
"""A share of maps that changes by two points changes."""

MUCH_SHARE = max(abs(one[3] - other[3]) for one, other in SHARES.values()) / 100
"""It changes notably if it does by more than any in the paper's own column of heterogeneous maps, said not to."""

WEIGHT, MUCH_WEIGHT = 0.10, 0.25
"""A weight that changes by a tenth of what it was changes; by a quarter, it is no longer alike."""

TWICE = (1.75, 2.25)
"""Within these, evaluation takes twice the time."""

TWINS = 1e-3
"""Two weights that differ by less than this share are the same."""


@dataclass(frozen=True)
class Judged:
    """What is to be said of one claim for one task, with the numbers behind it."""

    task: str
    verdict: Verdict
    figures: str


@dataclass(frozen=True)
class Claim:
    """A claim in words, and what was found for each task."""

    text: str
    judged: tuple[Judged, ...]

    @property
    def verdict(self) -> str:
        """For all tasks together."""
        return overall([each.verdict for each in self.judged])

    @property
    def sentence(self) -> str:
        """The tasks of each verdict with their numbers, in one sentence."""
        kinds = list(dict.fromkeys(each.verdict for each in self.judged))
        parts = []
        for kind in kinds:
            of = [each for each in self.judged if each.verdict == kind]
            parts.append(f"{_WORDS[kind]} on {join_words([f'{each.task} ({each.figures})' for each in of])}")
        said = "; ".join(parts)
        return f"{said[:1].upper()}{said[1:]}."


SAME_PLACE = "[CLS] and [SEP] have the same weight"

_WORDS: Mapping[Verdict, str] = {
    "holds": "holds",
    "does not hold": "does not hold",
    "only with padding": "holds only with padding",
    "only without padding": "holds only without padding",
    "cannot be said": "cannot be said",
    "does not apply": "does not apply",
}


def claims(numbers: xr.Dataset, times: xr.Dataset | None = None) -> list[Claim]:
    """Every claim of the paper (its §3 and appendix B), judged on the tuned model."""
    tuned = numbers.sel(role="tuned", length="all")
    tasks = [tuned.sel(task=name) for name in numbers["task"].values]
    found = [*_pattern_claims(tasks), *_type_claims(tasks), *_token_claims(tasks), _layer_claim(tasks)]
    return found if times is None else [*found, *_time_claims(times)]


def _pattern_claims(tasks: Sequence[xr.Dataset]) -> list[Claim]:
    def claim(text: str, pattern: str, judge: Callable[[Interval, float], Answer], notable: float) -> Claim:
        def one(task: xr.Dataset) -> Judged:
            here = task.sel(pattern=pattern)
            exact, published = (
                judge(interval_of(here, "share_change", lens), notable) for lens in ("visible", "paper")
            )
            return Judged(_name(task), verdict(exact, published), _from_to(here["share"], percent=True))

        return Claim(text, tuple(map(one, tasks)))

    return [
        claim("Vertical patterns fall.", "vertical", falls, SHARE),
        claim("Vertical + diagonal patterns fall.", "vertical_diagonal", falls, SHARE),
        claim("Block patterns rise.", "block", rises, SHARE),
        claim("Diagonal patterns rise.", "diagonal", rises, SHARE),
        claim("Heterogeneous patterns do not change notably.", "heterogeneous", alike, MUCH_SHARE),
    ]


def _type_claims(tasks: Sequence[xr.Dataset]) -> list[Claim]:
    return [
        Claim("[SEP] is among the two types that [CLS] attends to most, on all tasks but QNLI.",
              tuple(map(_sep_leads, tasks))),
        Claim("With effective attention [SEP] loses that place (but on SST-2).", tuple(map(_sep_loses, tasks))),
        Claim("Punctuation loses weight too.", tuple(_type_changes(task, "punctuation", falls) for task in tasks)),
        *(Claim(f"{kind.capitalize()}s gain weight.", tuple(_type_changes(task, kind, rises) for task in tasks))
          for kind in ("noun", "pronoun", "verb")),
    ]  # fmt: skip


def told_apart(task: xr.Dataset) -> bool:
    """Whether [CLS] gives itself and [SEP] different weights in the last layer: in some models they are one vector."""
    here = task["type_weight"].sel(size="signed", lens="standard")
    one, other = (float(here.sel(type=kind)) for kind in ("cls", "sep"))
    return not abs(one - other) < TWINS * abs(one)


def _sep_leads(task: xr.Dataset) -> Judged:
    """Judged on standard attention, to which padding does nothing; for QNLI the paper says the opposite."""
    if not told_apart(task):
        return Judged(_name(task), "does not apply", SAME_PLACE)
    answer = mostly(float(task["sep_leads"].sel(lens="standard")))
    answer = opposite(answer) if _name(task) == "QNLI" else answer
    return Judged(_name(task), verdict(answer, answer), f"place {_place(task, 'standard')} of six")


def _sep_loses(task: xr.Dataset) -> Judged:
    """Where [SEP] did not lead, it has nothing to lose."""
    if not told_apart(task):
        return Judged(_name(task), "does not apply", SAME_PLACE)
    places = f"place {' → '.join(str(_place(task, lens)) for lens in ('standard', 'visible'))}"
    figures = f"{places}; published {_place(task, 'paper')}"
    if mostly(float(task["sep_leads"].sel(lens="standard"))) == "no":
        return Judged(_name(task), "does not apply", figures)
    exact, published = (opposite(mostly(float(task["sep_leads"].sel(lens=lens)))) for lens in ("visible", "paper"))
    exact, published = (opposite(each) if _name(task) == "SST-2" else each for each in (exact, published))
    return Judged(_name(task), verdict(exact, published), figures)


def _type_changes(task: xr.Dataset, kind: str, judge: Callable[[Interval, float], Answer]) -> Judged:
    here = task.sel(size="signed", type=kind)
    if not np.isfinite(standard_of(here, "type_weight")):
        return Judged(_name(task), "does not apply", f"no {kind} there")
    least = WEIGHT * standard_of(here, "type_weight")
    exact, published = (judge(interval_of(here, "type_weight_change", lens), least) for lens in ("visible", "paper"))
    return Judged(_name(task), verdict(exact, published), _from_to(here["type_weight"]))


def _token_claims(tasks: Sequence[xr.Dataset]) -> list[Claim]:
    def claim(text: str, token: str, judge: Callable[[Interval, float], Answer], notable: float) -> Claim:
        def one(task: xr.Dataset) -> Judged:
            here = task.sel(token=token, size="signed")
            least = notable * standard_of(here, "weight")
            exact, published = (judge(interval_of(here, "weight_change", lens), least) for lens in ("visible", "paper"))
            return Judged(_name(task), verdict(exact, published), _from_to(here["weight"]))

        return Claim(text, tuple(map(one, tasks)))

    return [
        claim("[SEP] loses weight from all other tokens.", "sep", falls, WEIGHT),
        claim("[CLS] is attended to alike.", "cls", alike, MUCH_WEIGHT),
    ]


def _layer_claim(tasks: Sequence[xr.Dataset]) -> Claim:
    def one(task: xr.Dataset) -> Judged:
        standard, visible, paper = (
            mostly(float(task["last_layers_change_most"].sel(lens=lens))) for lens in ("standard", "visible", "paper")
        )
        figures = ", ".join(f"{ATTENTIONS[lens]} {_least_alike(task, lens)}" for lens in ("standard", "visible"))
        return Judged(_name(task), verdict(both([standard, visible]), both([standard, paper])), figures)

    return Claim("The last two layers change most with fine-tuning, under both attentions.", tuple(map(one, tasks)))


def _time_claims(times: xr.Dataset) -> list[Claim]:
    """Of the published way and of ours; all tasks together, for inputs are filled up and tasks differ by chance.

    Judged with the smallest batch of each task, which is the paper's: by the middle half of all turns.
    """

    def claim(text: str, way: str) -> Claim:
        every = times["seconds"].sel(way=way) / times["seconds"].sel(way="standard")
        turns = np.concatenate([_first_batch(every.sel(task=task)) for task in times["task"].values])
        low, high = np.quantile(turns, (0.25, 0.75))
        inside, outside = TWICE[0] <= low and high <= TWICE[1], high < TWICE[0] or low > TWICE[1]
        kind: Verdict = "holds" if inside else "does not hold" if outside else "cannot be said"
        return Claim(
            text, tuple(Judged(str(task), kind, _times(times, str(task), way)) for task in times["task"].values)
        )

    return [
        claim("Evaluation takes twice the time, by full decomposition as published.", "svd"),
        claim("Evaluation takes twice the time, with our way in place.", "in place"),
    ]


def _first_batch(turns: xr.DataArray) -> Array:
    """The turns of the smallest batch that was timed."""
    for batch in turns["batch"].values:
        found: Array = turns.sel(batch=batch).dropna("turn").values
        if len(found):
            return found
    raise ValueError("nothing was timed")


def _times(times: xr.Dataset, task: str, way: str) -> str:
    here = ratios(times.sel(task=task))["ratio"].sel(way=way)
    timed = [(int(batch), float(here.sel(batch=batch))) for batch in here["batch"].values]
    return ", ".join(f"{ratio:.2f}× with {batch} at a time" for batch, ratio in timed if ratio == ratio)


def interval_of(here: xr.Dataset, name: str, lens: str) -> Interval:
    """A number of one attention with its ends."""
    one = here.sel(lens=lens)
    return Interval(*(float(one[f"{name}{end}"]) for end in ("", "_low", "_high")))


def standard_of(here: xr.Dataset, name: str) -> float:
    """How large it is with standard attention."""
    return abs(float(here[name].sel(lens="standard")))


def _place(task: xr.Dataset, lens: str) -> int:
    """The place of [SEP] among the types, the most attended first."""
    weights = abs(task["type_weight"].sel(lens=lens, size="signed"))
    return int((weights > weights.sel(type="sep")).sum()) + 1


def _least_alike(task: xr.Dataset, lens: str) -> str:
    table = task["similarity_layer"].sel(lens=lens)
    order = np.argsort(table.values)[:2]
    return " and ".join(f"L{int(table['layer'][place])}" for place in sorted(order))


def _from_to(table: xr.DataArray, *, percent: bool = False) -> str:
    """Standard, exact, and as published."""
    values = [float(table.sel(lens=lens)) for lens in ("standard", "visible", "paper")]
    one, two, three = (f"{100 * each:.1f}" if percent else f"{each:.3f}" for each in values)
    unit = " %" if percent else ""
    return f"{one} → {two}{unit}; published {three}{unit}"


def _name(task: xr.Dataset) -> str:
    return str(task["task"].values)

"""The claims of Sun & Marasović (2021), §3 and appendix B, as data."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.experiments.claims import Claim, JudgedClaim, judge, mostly
from headscope.experiments.summary import pool_ratios
from headscope.studies.effective_attention.paper import LETTERS, SECONDS, SHARES

SHARE = 0.02
MUCH_SHARE = max(abs(raw[3] - effective[3]) for raw, effective in SHARES.values()) / 100
WEIGHT, MUCH_WEIGHT = 0.10, 0.25
TWICE = (1.75, 2.25)
TWINS = 1e-3  # two weights that differ by a smaller fraction are the same
WHY_SHARE = "two points of a share of maps count as a change"
WHY_MUCH_SHARE = "no share in the paper's column of heterogeneous maps, said not to change notably, moves further"
WHY_WEIGHT, WHY_MUCH_WEIGHT = "a tenth of a weight counts as a change", "within a quarter a weight is alike"
WHY_TWICE = "a quarter around twice the time"
BOTH: dict[str, Any] = {"exact": ("effective",), "published": ("paper",), "contrast": "padding"}


def _claim_share(text: str, pattern: str, direction: Any, threshold: float = SHARE, reason: str = WHY_SHARE) -> Claim:
    column = list(LETTERS).index(pattern)
    theirs = {task: f"{raw[column]} → {effective[column]} %" for task, (raw, effective) in SHARES.items()}
    where = {"pattern": pattern}
    return Claim(text, "share", where, direction, threshold, reason, theirs=theirs, percent=True, **BOTH)


def _claim_weight(text: str, axis: str, label: str, direction: Any, threshold: float = WEIGHT) -> Claim:
    """A claim on the weight on a type of token from [CLS] in the last layer, or on a token from all others."""
    quantity = "type_weight" if axis == "type" else "weight"
    reason = WHY_WEIGHT if threshold == WEIGHT else WHY_MUCH_WEIGHT
    where = {axis: label, "size": "signed", "several": "max"}

    def applies(task: xr.Dataset) -> str:
        return "" if np.isfinite(float(task.sel(where)[quantity].sel(lens="raw"))) else f"no {label} there"

    return Claim(text, quantity, where, direction, threshold, reason, relative=True, applies=applies, **BOTH)


def find_twins(task: xr.Dataset) -> str:
    """Return that [CLS] gives itself and [SEP] the same weight in the last layer, where it does."""
    weights = task["type_weight"].sel(size="signed", several="max", lens="raw")
    cls, sep = (float(weights.sel(type=kind)) for kind in ("cls", "sep"))
    return "[CLS] and [SEP] have the same weight" if abs(cls - sep) < TWINS * abs(cls) else ""


def _rank_sep(task: xr.Dataset, lens: str) -> int:
    weights = abs(task["type_weight"].sel(lens=lens, size="signed", several="max"))
    return int((weights > weights.sel(type="sep")).sum()) + 1


def _format_ranks(task: xr.Dataset) -> str:
    raw, effective, paper = (_rank_sep(task, lens) for lens in ("raw", "effective", "paper"))
    return f"rank {raw} → {effective}; paper {paper}"


def _cannot_lose(task: xr.Dataset) -> str:
    """Where [SEP] does not lead, it has no rank to lose."""
    leads = mostly(float(task["sep_leads"].sel(lens="raw")))
    return find_twins(task) or (_format_ranks(task) if leads == "no" else "")


def _format_layers(task: xr.Dataset) -> str:
    def find_least(lens: str) -> str:
        similarity = task["similarity_layer"].sel(lens=lens)
        return " and ".join(f"L{int(similarity['layer'][at])}" for at in sorted(np.argsort(similarity.values)[:2]))

    return ", ".join(f"{lens} {find_least(lens)}" for lens in ("raw", "effective"))


PATTERNS = (
    _claim_share("Vertical patterns fall.", "vertical", "falls"),
    _claim_share("Vertical + diagonal patterns fall.", "vertical_diagonal", "falls"),
    _claim_share("Block patterns rise.", "block", "rises"),
    _claim_share("Diagonal patterns rise.", "diagonal", "rises"),
    _claim_share("Heterogeneous patterns do not change notably.", "heterogeneous", "same", MUCH_SHARE, WHY_MUCH_SHARE),
)
LOSES = {
    "[SEP]": _claim_weight("[SEP] loses weight from all other tokens.", "token", "sep", "falls"),
    "punctuation": _claim_weight("Punctuation loses weight too.", "type", "punctuation", "falls"),
    "[CLS]": _claim_weight("[CLS] loses weight from all other tokens.", "token", "cls", "falls"),  # not the paper's
}
LEADS = Claim(
    "[SEP] is among the two types that [CLS] attends to most, on all tasks but QNLI.", "sep_leads", direction="mostly",
    exact=("raw",), published=("raw",), but_on=("QNLI",), applies=find_twins,
    figures=lambda task: f"rank {_rank_sep(task, 'raw')} of six",
)  # fmt: skip
LOSES_LEAD = Claim(
    "With effective attention [SEP] loses that rank (but on SST-2).", "sep_leads", direction="rarely",
    but_on=("SST-2",), applies=_cannot_lose, figures=_format_ranks, **BOTH,
)  # fmt: skip
ALIKE = _claim_weight("[CLS] is attended to alike.", "token", "cls", "same", MUCH_WEIGHT)
LAYERS = Claim(
    "The last two layers change most with fine-tuning, under both attentions.", "last_layers_change_most",
    direction="mostly", exact=("raw", "effective"), published=("raw", "paper"), contrast="padding",
    figures=_format_layers,
)  # fmt: skip
GAINS = tuple(_claim_weight(f"{kind.capitalize()}s gain weight.", "type", kind, "rises")
              for kind in ("noun", "pronoun", "verb"))  # fmt: skip
CLAIMS = (*PATTERNS, LEADS, LOSES_LEAD, LOSES["punctuation"], *GAINS, LOSES["[SEP]"], ALIKE, LAYERS)
TIMES = tuple(
    Claim(
        f"Evaluation takes twice the time, {text}.", "ratio", {"way": way}, "within", TWICE, WHY_TWICE,
        theirs={task: f"{effective / raw:.2f}×" for task, (raw, effective) in SECONDS.items()},
        figures=lambda task, way=way: str(task["text"].sel(way=way).values),  # type: ignore[misc]  # mypy has no type for a default
    )
    for way, text in (("svd", "by full decomposition as in the paper"), ("in place", "with ours in place"))
)  # fmt: skip


def judge_claims(numbers: xr.Dataset, times: xr.Dataset | None = None) -> list[JudgedClaim]:
    """Judge every claim on the tuned model."""
    tuned = numbers.sel(role="tuned", length="all")
    judged = [judge(claim, tuned) for claim in CLAIMS]
    return judged if times is None else judged + [judge(claim, pool_ratios(times)) for claim in TIMES]

"""Mend results of earlier runs, by what they hold: the pattern shares of unchanged maps, and margins of orders.

Each attention has its own table of the classifier's errors, so that a map which effective attention leaves as it is got
another share than raw's. On inputs of at most d tokens nearly all maps are such; over all inputs the change is that of
the longer ones, by their number. A new run of `runs/effective_attention.py` stores what this needs map by map.

Intervals of margins, such as that of [SEP]'s rank, were those of bootstrap draws, which miss where several are tied.

    python runs/recount.py results
"""

import sys
from pathlib import Path

import xarray as xr

import headscope as hs
from headscope.core.estimate import interval_names
from headscope.core.provenance import read_provenance, stamp
from headscope.experiments.pattern_shares import COUNTS
from headscope.experiments.summary import compare_layers, compare_types

LENS = "effective"
UNCHANGED = 0.99  # of the maps of inputs of at most d tokens; the others widen intervals by their share
SHORT, LONGER, ALL = "at most d", "more than d", "all"
NOTE = "shares of unchanged maps are raw's, by length (runs/recount.py); intervals draw heads and inputs"
MARGINS = "from intervals of layers and types (runs/recount.py)"


def recount(numbers: xr.Dataset) -> xr.Dataset:
    """Return results whose shares of effective attention are raw's where at most a hundredth of maps changes."""
    same, n = numbers["same_heads"], numbers["n"]
    weight = (n.sel(length=LONGER) / n.sel(length=ALL)).where(same.sel(length=SHORT) >= UNCHANGED, 1.0)
    changes = []
    for name, side in zip(interval_names("share_change"), (0, -1, 1), strict=True):
        stored = numbers[name].sel(lens=LENS)
        change = xr.where(same >= UNCHANGED, side * (1 - same), stored)
        slack = side * (1 - weight) * (1 - same.sel(length=SHORT)).fillna(0)
        whole = weight * stored.sel(length=LONGER).fillna(0) + slack
        changes.append(xr.where((numbers["length"] == ALL) & (weight < 1), whole, change))
    mended = numbers.copy(deep=True)
    at = {"lens": LENS}
    for change, name, share in zip(changes, interval_names("share_change"), interval_names("share"), strict=True):
        touched = (same >= UNCHANGED) | ((numbers["length"] == ALL) & (weight < 1))
        for variable, values in ((name, change), (share, numbers[share].sel(lens="raw", drop=True) + change)):
            new = xr.where(touched, values, numbers[variable].sel(at, drop=True))
            mended[variable].loc[at] = new.transpose(*mended[variable].sel(at).dims)
    for name in interval_names("counted_change"):
        mended[name].loc[at] = numbers[name].sel(at).where(same != 1, 0).transpose(*numbers[name].sel(at).dims)
    return mended


def recompute_margins(numbers: xr.Dataset) -> xr.Dataset:
    """Return results with the intervals of margins that `summary` computes now, by task and length."""
    mended = numbers.copy(deep=True)
    for task in numbers["task"].values:
        one = numbers.sel(task=task)
        for length in numbers["length"].values:
            n = int(one["n"].sel(length=length).isel(seed=0))
            margins = compare_types(one.sel(length=length), n) if n > 1 else {}
            for name in margins:
                at = {"task": task, "length": length}
                mended[name].loc[at] = margins[name].transpose(*mended[name].sel(at).dims)
        for name, margin in compare_layers(one, int(one["n"].sel(length=ALL).isel(seed=0))).items():
            mended[name].loc[{"task": task}] = margin.transpose(*mended[name].sel(task=task).dims)
    return mended


def main() -> None:
    """Mend every result in a folder that was not mended and holds no counts."""
    for path in sorted(Path(sys.argv[1]).glob("effective_attention_*.nc")):
        numbers = hs.open_result(path)
        facts = read_provenance(numbers)
        if "counted" not in numbers or COUNTS[0] in numbers or "margins" in facts:
            continue
        mended = recompute_margins(numbers.load() if "patterns" in facts else recount(numbers.load()))
        numbers.close()
        hs.save(stamp(mended, **{**facts, "patterns": NOTE, "margins": MARGINS}), path, overwrite=True)


if __name__ == "__main__":
    main()

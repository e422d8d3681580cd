"""The strongest cues of the training data, and how they do in every set."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from headscope.audit.cues import cues
from headscope.audit.follow import has_cue, point_to_choice
from headscope.core.estimate import estimate, interval_names, name_ends
from headscope.uncertainty.corrections import LEVEL, correct_p_values
from headscope_studies.argument_cues.cue import MIN_COUNT, count_cues
from headscope_studies.argument_cues.data import AuditData

LISTED = 300
"""Cues that are listed: those with the largest gain."""

PAIRS = 20


def list_cues(data: AuditData, patterns: Mapping[str, str]) -> xr.Dataset:
    """Return the strongest cues of the training data with their numbers in every set.

    Where there are patterns, also productivity and coverage of these by split and over all, with both variants.
    """
    train = count_cues(data.train, data.texts)
    names = train["cue"].values[:LISTED]
    tables = [train.reset_coords("words").sel(cue=names).expand_dims(split=["train"])]
    for name, examples in data.sets.items():
        table = count_cues(examples, data.texts, min_count=1).reset_coords("words").reindex(cue=names)
        tables.append(_follow_train(table, tables[0]).expand_dims(split=[name]))
    listed = xr.concat(
        tables, "split", join="outer", data_vars="all", coords="minimal", compat="override", combine_attrs="drop"
    )
    kept = [*interval_names("productivity"), *interval_names("coverage")]
    kept += [f"productivity_{name}" for name in ("p", "p_adjusted", "significant")]
    listed = listed[[*kept, "applicability", "chance", "gain", "pmi", "n"]]
    if data.choice and data.texts and data.fair:
        listed = listed.merge(list_pairs(data))
    return listed.merge(count_patterns(data, patterns)) if patterns else listed


def list_pairs(data: AuditData) -> xr.Dataset:
    """Return the strongest pairs of words of the training data, one in a text and one in a choice, in every set.

    The text is the last, such as the claim of ARCT, which the adversarial sets negate. `pair_points` is the choice that
    the strongest pair points to in each point of the set in which no single cue tells the label, −1 where it does not
    apply. `pairs` and `pairs_significant` count those that apply to at least `MIN_COUNT` points of a set.
    """
    options: dict[str, Any] = {"pairs": (data.texts[-1], "choices"), "ngrams": 1}
    sets = {"train": data.train, **data.sets, **({"balanced train": data.balanced} if data.balanced else {})}
    counts = {name: cues(list(examples), **options) for name, examples in sets.items()}
    often = {name: table.isel(cue=table["applicability"].values >= MIN_COUNT) for name, table in counts.items()}
    names = often["train"]["cue"].values[:PAIRS]
    if not len(names):
        return xr.Dataset()
    tables = []
    for name, table in counts.items():
        sure = correct_p_values(often[name]["productivity_p"].values) < LEVEL
        rows = table[[*interval_names("productivity"), "applicability", "productivity_p"]].reindex(cue=names)
        rows = rows.reset_coords(drop=True).assign(s=len(sure), s_significant=int(sure.sum()))
        tables.append(rows.drop_attrs().expand_dims(counted=[name]))
    joined = xr.concat(tables, "counted", combine_attrs="drop").rename(cue="pair")
    joined = joined.rename({name: f"pair{'' if str(name).startswith('s') else '_'}{name}" for name in joined.data_vars})
    first, second = (side.rpartition(" in ")[0] for side in str(names[0]).split(" & "))
    fair = list(data.sets[data.fair])
    pointed = np.where(has_cue(fair, first, parts=data.texts[-1]), point_to_choice(fair, second), -1)
    return joined.assign(pair_points=("fair_point", pointed.astype(np.int8)))


def _follow_train(table: xr.Dataset, train: xr.Dataset) -> xr.Dataset:
    """Return the cues of another set with the label that they favour in training, which may not be the one here.

    Of two classes productivity is turned around where it is that of the other; of more it is not known there.
    """
    if "label" not in table.coords:
        return table
    known = [str(label) for label in table["label"].values if isinstance(label, str)]
    same = table["label"].reset_coords(drop=True) == train["label"].reset_coords(drop=True)
    turn = 1.0 if len({*known, *train["label"].values.tolist()}) == 2 else float("nan")
    value, low, high = estimate(table, "productivity").ends
    pairs = ((value, value), (low, high), (high, low))
    turned = name_ends("productivity", (end.where(same, turn - other) for end, other in pairs))
    turned["chance"] = table["chance"].where(same, turn - table["chance"])
    table = table.assign(turned)
    own = {"gain": table["coverage"] * (table["productivity"] - table["chance"]), "pmi": table["pmi"].where(same)}
    return table.assign(own).drop_vars("label")


def count_patterns(data: AuditData, patterns: Mapping[str, str]) -> xr.Dataset:
    """Return productivity and coverage of patterns with both variants, by split and over all."""
    splits = {"train": data.train, **{name: data.sets[name] for name in ("dev", "test")}}
    splits["all"] = [example for examples in splits.values() for example in examples]
    rows = []
    for split, examples in splits.items():
        for variant in ("exclusive", "either"):
            table = cues(list(examples), ngrams=(), patterns=patterns, variant=variant, parts="choices")
            part = table[["productivity", "coverage"]].sel(cue=list(patterns)).drop_vars(["words"], errors="ignore")
            rows.append(
                part.rename(cue="pattern", productivity="pattern_productivity", coverage="pattern_coverage")
                .drop_attrs()
                .expand_dims(printed=[split], variant=[variant])
            )
    combined = xr.combine_by_coords(rows)
    assert isinstance(combined, xr.Dataset)
    return combined.sel(printed=list(splits))

"""The strongest cues of the training data, and how they do in every set."""

from collections.abc import Mapping

import xarray as xr

from headscope.audit.cues import cues
from headscope.core.estimate import estimate, interval_names, name_ends
from headscope_studies.argument_cues.cue import count_cues
from headscope_studies.argument_cues.data import AuditData

LISTED = 300
"""Cues that are listed: those with the largest gain."""


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
    return listed.merge(count_patterns(data, patterns)) if patterns else listed


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

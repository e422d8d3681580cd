"""What networks do in the study argument-cues: sentences of its page on accuracy, cues, heads and other data."""

import numpy as np
import xarray as xr

from headscope.core.prose import count_noun, join_words
from headscope.experiments.template import format_range
from headscope.reporting.frames import ENDS
from headscope_studies.argument_cues.answers import TUNED
from headscope_studies.argument_cues.cue import MIN_COUNT
from headscope_studies.argument_cues.pages.facts import CueFacts, list_parts
from headscope_studies.argument_cues.parts import ALL, BALANCED
from headscope_studies.argument_cues.report import name_network

LEARNED = 60
"""Networks that are right in a smaller share of their own training examples, in %, have hardly learned any."""


def describe_order(facts: CueFacts) -> str:
    """Return whether the whole input does better on test than the first part alone, which the paper finds."""
    parts = []
    for label, data in facts.each:
        row = data.sel(network=TUNED, part=ALL, set="test")
        low, value, high = (100 * float(row[f"gain_change{end}"]) for end in ("_low", "", "_high"))
        if not np.isfinite(value):
            continue
        if high < 0:
            size = f"{-value:.1f} points [{-high:.1f}, {-low:.1f}]"
            parts.append(f"**With warrants alone {label} does better than with the whole input**, by {size}: the "
                         "opposite of the order of the paper's best seeds.")  # fmt: skip
        else:
            shown = "does better" if low > 0 else "is not shown to do better"
            size = format_interval(row, "gain_change", ".1f")
            parts.append(f"With the whole input {label} {shown} than with warrants alone: the gain is {size} points.")
    return " ".join(parts)


def describe_baselines(facts: CueFacts) -> str:
    """Return the accuracy of the baselines on test with the first part and the whole input, over models."""
    first = facts.each[0][1]
    parts = []
    for network in (name for name in first["network"].values.tolist() if name != TUNED):
        rows = []
        for part in (part for part in list_parts(first, network) if part in ("warrant", ALL)):
            values = [100 * float(data["accuracy_mean"].sel(network=network, part=part, set="test"))
                      for _, data in facts.each if part in list_parts(data, network)]  # fmt: skip
            rows.append(f"{format_range(values)} with {part}")
        parts += [f"{name_network(network)} {join_words(rows)}"] if rows else []
    said = "Baselines on test, mean over seeds (more in the tables)"
    return f"{said}: {'; '.join(parts)}." if parts else ""


def describe_follow(facts: CueFacts) -> str:
    """Return how often the tuned models follow the cue on test, and how right they are by where it points."""
    parts = []
    for label, data in facts.each:
        row, points = data.sel(network=TUNED, part=ALL, set="test"), int(data["applicability"].sel(set="test"))
        if not np.isfinite(row["follow"]):
            parts.append(f"There is nothing to say of {label}: every training failed.")
            continue
        where = {case: format_interval(row.sel(case=case), "where") for case in ("right", "wrong", "absent")}
        parts.append(
            f"On test, {label} follows it in {format_interval(row, 'follow')} % of the {points:,} points with the cue; "
            f"it is right in {where['right']} % where the cue points right, {where['wrong']} % where wrong and "
            f"{where['absent']} % where absent."
        )
    return " ".join([*parts, *_describe_worth(facts)])


def _describe_worth(facts: CueFacts) -> list[str]:
    """Return what follows if the cue is worth nothing in the test set."""
    first = facts.each[0][1].sel(set="test")
    if not float(first["cue_productivity_low"]) <= float(first["chance"]) <= float(first["cue_productivity_high"]):
        return []
    return ["As the cue is worth no more than chance in test, a network that followed it and guessed elsewhere would "
            "be at chance there: what is above chance has another source, which these runs do not name."]  # fmt: skip


def describe_fair(facts: CueFacts) -> str:
    """Return the accuracy on the adversarial set, trained on the original and on the adversarial data."""
    parts = []
    for label, data in facts.each:
        row = data.sel(network=TUNED, set="adversarial")
        said = f"{label} is right in {_describe_part(row, ALL)}"
        if BALANCED in data["part"].values and int(row["seeds"].sel(part=BALANCED)):
            said += f", and trained on adversarial data in {_describe_part(row, BALANCED)}"
        parts.append(said)
    first = facts.each[0][1].sel(set="adversarial")
    low, high = (float(first[f"cue_productivity_{end}"]) for end in ("low", "high"))
    return (
        f"On the adversarial set ({int(first['points']):,} points), where the cue has a productivity of "
        f"{float(first['cue_productivity']):.2f} [{low:.2f}, {high:.2f}], {'; '.join(parts)}."
        f"{''.join(_list_above(facts))}{_describe_learned(facts)}"
    )


def _describe_learned(facts: CueFacts) -> str:
    """Return how much of the adversarial training data was learned by the trainings that did not fail."""
    shares: list[float] = []
    for _, data in facts.each:
        if BALANCED in data["part"].values:
            runs = data.sel(network=TUNED, part=BALANCED)
            worked = ~runs["run_failed"].values.astype(bool) & np.isfinite(runs["run_learned"].values)
            shares += (100 * runs["run_learned"].values[worked]).tolist()
    if not shares:
        return ""
    little = (
        ": they learned next to nothing, so that being at chance says little of cues" if max(shares) < LEARNED else ""
    )
    return (
        f" Of their adversarial training examples, trainings that did not fail have {format_range(shares)} right"
        f"{little}."
    )


def _list_above(facts: CueFacts) -> list[str]:
    """Return which models are above chance on the adversarial set by their own intervals."""
    rows = {label: data.sel(network=TUNED, part=ALL, set="adversarial") for label, data in facts.each}
    return [f" By its own 95 % interval {label} is above chance there, by "
            f"{format_interval(row, 'above_chance_change', '.1f')} points; Figure 1 has the verdict, whose interval is "
            "wider." for label, row in rows.items() if float(row["above_chance_change_low"]) > 0]  # fmt: skip


def _describe_part(row: xr.Dataset, part: str) -> str:
    """Return the accuracy with one part, over how many seeds, and the largest of all of them."""
    row = row.sel(part=part)
    failed, seeds, best = int(row["failed"]), int(row["seeds"]), 100 * float(row["accuracy_max"])
    if failed == seeds:
        return (
            f"{100 * float(row['accuracy_mean']):.0f} %, but there every training failed ({count_noun(seeds, 'seed')})"
        )
    if not failed:
        return f"{format_interval(row, 'accuracy')} % ({count_noun(seeds, 'seed')}, the best {best:.0f})"
    worked = f"the {seeds - failed} of {count_noun(seeds, 'seed')} that did not fail; the best of all {best:.0f}"
    return f"{format_interval(row, 'accuracy')} % ({worked})"


def describe_heads(facts: CueFacts) -> str:
    """Return where attention to the cue differs between points got by the cue and the others."""
    parts = []
    for label, data in facts.each:
        if "heads" not in facts.more[label] or not np.isfinite(data["head_difference_change"]).any():
            parts.append(f"Nothing is known of {label}: every training failed, or one of the groups is too small.")
            continue
        sizes, rows = facts.more[label]["heads"].sizes, []
        means = facts.more[label]["heads"]["difference"].mean("seed").sel(query="cls")
        for lens in data["lens"].values.tolist():
            row = data.sel(lens=lens, query="cls")
            signed = means.sel(lens=lens, layer=int(row["best_layer"]), head=int(row["best_head"]))
            rows.append(f"{lens} L{int(row['best_layer'])}H{int(row['best_head'])}, {'more' if signed > 0 else 'less'} "
                        f"({format_interval(row, 'head_difference_change', '.3f', 1.0)}; {int(row['significant'])} of "
                        f"{sizes['layer'] * sizes['head']} heads significant in most seeds, some head in "
                        f"{int(row['significant_seeds'])} of {count_noun(sizes['seed'], 'seed')})")  # fmt: skip
        parts.append(
            f"With {label}, {float(data['by_cue']):.0f} points are got by the cue and {float(data['others']):.0f} are "
            "not (mean of seeds). The largest difference of the weight from [CLS], more or less at the former: "
            f"{join_words(rows)}."
        )
    return " ".join(parts)


def describe_audits(facts: CueFacts) -> str:
    """Return what the same audit says of other data."""
    parts = [_describe_audit(name, tables["numbers"].isel(task=0)) for name, tables in facts.audits.items()]
    return "\n\n".join(parts) or "No other data were audited in these runs; one command each does it (below)."


def _describe_audit(name: str, data: xr.Dataset) -> str:
    """Return what the audit says of one dataset."""
    judged, cue = str(data["judged"].item()), str(data["cue_text"].item())
    here = data.sel(network=TUNED, set=judged)
    parts = list_parts(data)
    names = {"text": "the first text alone", "pair": "the second text alone", ALL: "the whole input"}
    rows = [f"{format_interval(here.sel(part=part), 'accuracy')} % with {names.get(part, part)}" for part in parts]
    shown = [names.get(part, part) for part in parts if float(here["above_chance_change_low"].sel(part=part)) > 0]
    train, whole = int(data["train"]), int(data["whole_train"])
    learned = f"{train:,}" if train == whole else f"{train:,} of {whole:,}"
    above = f"shown to be above chance with {join_words(shown, empty='none of them')}"
    lost, total = (int(here[kind].sum()) for kind in ("failed", "seeds"))
    said = [f"**{name}** ({learned} training examples, {int(here['points']):,} points of {judged}, "
            f"{count_noun(int(here['seeds'].max()), 'seed')}, chance {100 * float(here['chance']):.0f} %): right in "
            f"{join_words(rows)}, {above}; {lost} of {total} trainings failed."]  # fmt: skip
    said.append(_describe_cue(here, cue, judged) if cue else
                "No word and no pair of words tells the label significantly, corrected for all that apply to at least "
                f"{MIN_COUNT} training examples, so there is no cue to follow.")  # fmt: skip
    if fair := str(data["fair_set"].item()):
        row = data.sel(network=TUNED, part=ALL, set=fair)
        said.append(f"On a {fair} part of {judged}, {int(row['points']):,} points in which no cue is shown to be worth "
                    f"anything and chance is {100 * float(row['chance']):.0f} %, the model is right in "
                    f"{format_interval(row, 'accuracy')} %.")  # fmt: skip
    return " ".join(said)


def _describe_cue(here: xr.Dataset, cue: str, judged: str) -> str:
    """Return the strongest cue, and how often the model answers with its class."""
    row = here.sel(part=ALL)
    return (
        f"The strongest cue of the training data is “{cue}”, for class {int(here['cue_label'])}: it is in "
        f"{format_interval(here, 'cue_coverage')} % of {judged}, with a productivity of "
        f"{format_interval(here, 'cue_productivity', '.2f', 1.0)}. With it the model answers that class in "
        f"{format_interval(row, 'follow')} %, {format_interval(row, 'follow_change')} points more often than without; "
        f"it is right in {format_interval(row.sel(case='right'), 'where')} % where the cue is right and "
        f"{format_interval(row.sel(case='wrong'), 'where')} % where it is wrong."
    )


def format_interval(data: xr.Dataset, name: str, form: str = ".0f", scale: float = 100.0) -> str:
    """Return a number with its interval, such as 66 [62, 70]; a dash where every training failed."""
    if not np.isfinite(data[name]):
        return "–"
    value, low, high = (format_range([scale * float(data[f"{name}{end}"])], form, "") for end in ENDS)
    return f"{value} [{low}, {high}]"

"""What the report says in sentences, with the numbers put in."""

from collections.abc import Sequence
from math import isfinite

import xarray as xr

from headscope.core.prose import join_words
from headscope.experiments.verdict import Verdict, falls, rises, verdict
from headscope.results.stamp import read_provenance
from headscope.studies.effective_attention.claims import (
    MUCH_SHARE,
    MUCH_WEIGHT,
    SHARE,
    TWICE,
    WEIGHT,
    Claim,
    interval_of,
    standard_of,
    told_apart,
)
from headscope.studies.effective_attention.reduce import SAME

LENSES = (
    "**Standard** is A, what the model computed. **Effective** (`keys=visible`) is effective attention, exact: A less "
    "its projection on the left null space of V, over the keys that a query sees. **Padded** (`keys=padded`) is the "
    "same for the input filled up with padding, whose rows of V take part: exact for that input. **Published** "
    "(`keys=paper`) is what the published code does: as padded, with one rank for the batch and an absolute cut, and "
    "then the columns of padding are cut off, so that A_eff·V is no longer A·V. On real tokens padded and published "
    "nearly always have the same weights; they differ in whether the columns of padding are kept."
)
JUDGED = (
    "Each claim is judged on the tuned model by 95 % intervals over inputs. A change counts if its interval leaves out "
    f"0 and it is at least {100 * SHARE:.0f} points (shares of maps) or {100 * WEIGHT:.0f} % (weights). **Not "
    f"notably** means that the whole interval lies within {100 * MUCH_SHARE:.0f} points, which is how far the paper's "
    f"own shares of heterogeneous maps move; **alike**, that it lies within {100 * MUCH_WEIGHT:.0f} %, so that a "
    f"weight can both fall and be alike. **Twice** means that the middle half of all turns lies between {TWICE[0]:g} "
    f"and {TWICE[1]:g}, with 8 inputs at a time, as in the paper, or all where there are fewer; all tasks are judged "
    "together. **Only with padding** means that the claim holds for the published code and does not for exact "
    "effective attention; **only without padding** means the opposite. **Cannot be said** means that the interval is "
    "too wide. The paper excepts QNLI from the first claim on [SEP]'s place and SST-2 from the second: there the "
    "opposite is judged. In words: standard → effective attention, exact; then what the published code gives."
)
METHOD = (
    "The unit is the input: values are averaged over heads within each, and intervals are over inputs. Intervals of "
    "weights are Student's, of changes those of the differences input by input. Those of shares of patterns, and "
    "statements on who leads, come from 500 draws of inputs with replacement.",
    "Patterns are told apart by a small network trained on labelled maps, on |w| over real tokens. Its errors on maps "
    "that it had not seen are taken out of the shares, and are in their intervals: with each draw of inputs a table "
    "of errors is drawn too.",
    "Weights are signed: effective attention may be negative, and rows need not add up to 1. Types of words are those "
    "of the built-in tagger: nouns without proper nouns, verbs without auxiliaries.",
    "In the paper's Table 3 the whole evaluation was timed, once. Here one batch is, many times in turns, so that a "
    "slow minute of the machine meets all ways: on a GPU after a few batches to settle, on a CPU by the work of one "
    "thread, which others do not disturb.",
)


def lead(numbers: xr.Dataset, judged: Sequence[Claim]) -> str:
    """What was done, on what, and how many claims stand."""
    facts = read_provenance(numbers)
    tasks = [str(each) for each in numbers["task"].values]
    many = int(numbers["n"].sel(length="all").sum())
    kinds = [each.verdict for each in judged]
    counts = ", ".join(_counted(kind, kinds.count(kind)) for kind in dict.fromkeys(kinds))
    return (
        f"Sun & Marasović (2021) compare standard with effective attention, the part of attention that reaches a "
        f"head's output. This is their study with {short(str(facts.get('model', 'a model')))} on {', '.join(tasks)}: "
        f"{many:,} inputs, {numbers.sizes['layer']} layers of {numbers.sizes['head']} heads with "
        f"{int(numbers['value_size'].values[0])} value dimensions each, before and after fine-tuning. Of the paper's "
        f"claims, taken apart into {len(judged)}: {counts}."
    )


def origin(numbers: xr.Dataset, task: str) -> str:
    """Where a task's examples come from, and how its model was tuned."""
    one = numbers.sel(task=task)
    tuning = str(one["tuning"].values)
    return f"{one['source'].values}; {f'tuned with {tuning}' if tuning else 'the model came tuned'}"


_COUNTED = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
    "only with padding": ("holds only with padding", "hold only with padding"),
    "only without padding": ("holds only without padding", "hold only without padding"),
    "differs by task": ("differs by task", "differ by task"),
    "does not apply": ("does not apply", "do not apply"),
}


def _counted(kind: str, many: int) -> str:
    """How many claims have a verdict.

    >>> _counted("only with padding", 1), _counted("holds", 4), _counted("cannot be said", 2)
    ('1 holds only with padding', '4 hold', '2 cannot be said')
    """
    one, more = _COUNTED.get(kind, (kind, kind))
    return f"{many} {one if many == 1 else more}"


def answers(numbers: xr.Dataset) -> str:
    """For which tasks [SEP] and punctuation lose weight, exactly and only with padding; and what [CLS] does."""
    tuned = numbers.sel(role="tuned", length="all", size="signed")
    tasks = [tuned.sel(task=name) for name in numbers["task"].values]
    said = [
        _shrinks("[SEP], from all other tokens,", [(each, each.sel(token="sep"), "weight") for each in tasks]),
        _shrinks("Punctuation, from [CLS] in the last layer,",
                 [(each, each.sel(type="punctuation"), "type_weight") for each in tasks]),
        _shrinks("[CLS], from all other tokens,", [(each, each.sel(token="cls"), "weight") for each in tasks]),
    ]  # fmt: skip
    base = numbers["same_inputs"].sel(role="base", length="all")
    shares = [f"{100 * float(each):.0f} % of the inputs of {each['task'].values!s}" for each in base]
    said.append(
        f"Before tuning, the exact effective attention of all heads is attention itself, to {100 * SAME:g} % of its "
        f"size, for {join_words(shares)}."
    )
    return " ".join(said)


def unlearned(numbers: xr.Dataset) -> str:
    """On which tasks the tuned model is no better than always giving the most common label; or nothing."""
    said = []
    for task in map(str, numbers["task"].values):
        one = numbers.sel(task=task, lens="standard")
        score, low, high, most = (float(one[name]) for name in ("score", "score_low", "score_high", "majority"))
        if low <= most:  # no number is below NaN, which regression has
            said.append(f"{task} ({score:.3f}, 95 % {low:.3f} to {high:.3f}; most common label {most:.3f})")
    if not said:
        return ""
    return (
        f"The tuned model is not shown to have learned {join_words(said)}: what is said of tuning there may be said of "
        "a model that learned little."
    )


def twins(numbers: xr.Dataset) -> str:
    """That the last layer of a model does not tell [CLS] from [SEP], on the tasks on which that is so; or nothing."""
    both = {role: _not_told_apart(numbers, role) for role in ("tuned", "base")}
    if not both["tuned"]:
        return ""
    still = [task for task in both["tuned"] if task in both["base"]]
    before = "before tuning too" if still == both["tuned"] else f"before tuning on {join_words(still)}"
    return (
        f"On {join_words(both['tuned'])} the last layer gives [CLS] and [SEP] the same weight, {before}: they have "
        "become one vector, and which of them is ahead cannot be asked."
    )


def _not_told_apart(numbers: xr.Dataset, role: str) -> list[str]:
    here = numbers.sel(role=role, length="all")
    return [task for task in map(str, numbers["task"].values) if not told_apart(here.sel(task=task))]


def shrinking(here: xr.Dataset, name: str) -> Verdict:
    """Whether a weight falls by a tenth or more: exactly, only with padding, or not."""
    notable = WEIGHT * standard_of(here, name)
    return verdict(*(falls(interval_of(here, f"{name}_change", lens), notable) for lens in ("visible", "paper")))


def _gains(here: xr.Dataset, name: str) -> bool:
    """Whether a weight rises by a tenth or more, exactly."""
    return rises(interval_of(here, f"{name}_change", "visible"), WEIGHT * standard_of(here, name)) == "yes"


def _shrinks(subject: str, tasks: Sequence[tuple[xr.Dataset, xr.Dataset, str]]) -> str:
    words = {
        "holds": "loses weight on",
        "only with padding": "loses weight only with padding on",
        "only without padding": "loses weight only without padding on",
        "does not hold": "loses no weight on",
        "cannot be said": "may or may not lose weight on",
    }
    groups: dict[str, list[str]] = {}
    for task, here, name in tasks:
        if not isfinite(standard_of(here, name)):
            groups.setdefault("does not occur on", []).append(str(task["task"].values))
            continue
        one, two, three = (f"{float(here[name].sel(lens=lens)):.3f}" for lens in ("standard", "visible", "paper"))
        kind = shrinking(here, name)
        word = "gains weight on" if kind == "does not hold" and _gains(here, name) else words[kind]
        also = f"; published {three}" if "padding" in kind else ""
        groups.setdefault(word, []).append(f"{task['task'].values!s} ({one} → {two}{also})")
    return f"{subject} " + "; ".join(f"{word} {join_words(each)}" for word, each in groups.items()) + "."


def short(name: str) -> str:
    """A model's name without the folders before it."""
    return name.rstrip("/").rpartition("/")[2]

"""What is to be said beside single tables: why numbers differ from the paper's, and what they come to."""

from collections.abc import Sequence

import xarray as xr

from headscope.core.prose import join_words
from headscope.experiments.verdict import EXACTLY
from headscope.results.stamp import read_provenance
from headscope.studies.effective_attention.claims import Claim
from headscope.studies.effective_attention.paper import KINDS
from headscope.studies.effective_attention.words import short, shrinking

THINGS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("[SEP]", "weight", {"token": "sep"}),
    ("punctuation", "type_weight", {"type": "punctuation"}),
    ("[CLS]", "weight", {"token": "cls"}),
)
"""What may lose weight, and where its weight stands among the numbers."""

THEIRS = 64
"""Value dimensions of a head of BERT-base."""


def differences(numbers: xr.Dataset) -> str:
    """What was done otherwise than in the paper."""
    tasks, size = [str(each) for each in numbers["task"].values], int(numbers["value_size"].values[0])
    model = short(str(read_provenance(numbers).get("model", "another model")))
    other = [task for task in tasks if task not in KINDS]
    tuning = list(dict.fromkeys(str(each) for each in numbers["tuning"].values if str(each)))
    begins = ", so that attention begins to differ at other lengths" if size != THEIRS else ""
    said = [
        f"The paper studies BERT-base, whose heads have {THEIRS} value dimensions; this is {model} with {size}"
        f"{begins}.",
        (f"It was tuned once, with one seed ({'; '.join(tuning)})" if tuning else "It came tuned")
        + "; the paper says 3 epochs, batches of 8 and else the library's defaults, its code a learning rate of 2e-05.",
        "The paper writes of test sets, whose labels are not public; its code takes dev sets, and so does this study.",
        "Its classifier of patterns and the maps that it was trained on were never published; ours are our own, and "
        "count every map, where the paper draws 1,000.",
    ]
    if other:
        said.insert(0, f"{join_words(other)} {'is' if len(other) == 1 else 'are'} no task of the paper.")
    return " ".join(said)


def by_length(numbers: xr.Dataset) -> str:
    """At which lengths [SEP], punctuation and [CLS] lose weight exactly, and at which only with padding."""
    said = []
    for thing, name, place in THINGS:
        groups: tuple[list[str], ...] = ([], [], [])
        for task in map(str, numbers["task"].values):
            for group, lengths in zip(groups, _lengths(numbers.sel({"task": task, **place}), name), strict=True):
                group.extend([f"{task} with {join_words(lengths)}"] if lengths else [])
        exactly, padded, unsure = (f"on {join_words(each)} tokens" if each else "" for each in groups)
        parts = [
            f"loses weight exactly {exactly}" if exactly else "",
            f"{'' if exactly else 'loses weight '}only with padding {padded}" if padded else "",
            f"may or may not lose weight {unsure}" if unsure else "",
        ]
        subject = f"{thing[:1].upper()}{thing[1:]}"
        said.append(f"{subject} {'; '.join(filter(None, parts)) or 'loses no weight anywhere'}.")
    return " ".join(said)


def _lengths(here: xr.Dataset, name: str) -> tuple[list[str], list[str], list[str]]:
    """The classes of lengths at which weight is lost exactly, only with padding, and at which it cannot be said."""
    ready = here.sel(role="tuned", size="signed")
    found: dict[str, list[str]] = {}
    for each in (str(each) for each in here["length"].values if str(each)[0].isdigit()):
        if int(ready["n"].sel(length=each)):
            found.setdefault(shrinking(ready.sel(length=each), name), []).append(each)
    exactly = [length for kind in EXACTLY for length in found.get(kind, [])]
    return exactly, found.get("only with padding", []), found.get("cannot be said", [])


def survivors(judged: Sequence[Claim]) -> str:
    """What of Table 2 stands, measured exactly: the claims on patterns and on how many tasks each holds."""
    said = []
    for claim in judged:
        if "patterns" in claim.text:
            holds = [each.task for each in claim.judged if each.verdict in EXACTLY]
            open_ = [each.task for each in claim.judged if each.verdict == "cannot be said"]
            some = f"holds on {join_words(holds)}" if holds else "is shown nowhere" if open_ else "holds nowhere"
            also = f" (it cannot be said on {join_words(open_)})" if open_ else ""
            said.append(f"“{claim.text.rstrip('.')}” {some}{also}")
    return f"Measured exactly, {'; '.join(said)}."


def beside_norms(numbers: xr.Dataset) -> str:
    """Whether effective attention is nearer to norms than attention is, and what both say of [CLS]."""
    cosine, rank = (_from_to(numbers[name], "visible", ".2f") for name in ("agreement", "agreement_rank"))
    said = _from_to(100 * numbers["type_portion"].sel(type="cls"), "norm", ".0f")
    return (
        f"From standard to effective attention the cosine with norms goes {cosine}, the rank correlation {rank}: the "
        "cosine follows the few large weights, the rank correlation the order of all the small ones, which the "
        "projection changes. Kobayashi et al. (2020) find that [CLS] shrinks when vectors are taken into account; "
        f"here its portion of [CLS]'s own attention in the last layer goes, in per cent from standard to norms, {said}."
    )


def _from_to(table: xr.DataArray, other: str, form: str) -> str:
    """Standard → other, task by task."""
    parts = []
    for task in map(str, table["task"].values):
        one, two = (float(table.sel(task=task, beside_norm=lens)) for lens in ("standard", other))
        parts.append(f"{one:{form}} → {two:{form}} on {task}")
    return join_words(parts)

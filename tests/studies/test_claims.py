"""Claims of the paper, judged on numbers that are made to show one thing."""

import numpy as np
import pytest
import xarray as xr

from headscope.experiments.claims import judge
from headscope.experiments.sentences import describe_verdicts
from headscope.experiments.summary import find_unchanged
from headscope.studies.effective_attention.claims import LOSES, judge_claims
from headscope.studies.effective_attention.report import describe_losses, describe_twins

LENSES = ["raw", "effective", "padded", "paper"]
PATTERNS = ["vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous"]
TYPES = ["noun", "pronoun", "verb", "punctuation", "cls", "sep"]


def with_ends(name, dims, values, reach=0.005):
    values = np.asarray(values, float)
    return {name: (dims, values), f"{name}_low": (dims, values - reach), f"{name}_high": (dims, values + reach)}


def numbers(*, task="RTE", share=0.3, exact=0.0, paper=-0.2, leads=(1.0, 0.0, 0.0, 0.0), reach=0.005):
    """One task in which every share and weight changes by `exact`, and by `paper` with the paper's code."""
    change = np.array([0, exact, paper, paper])
    table = np.repeat((share + change)[:, None], 5, 1)
    six = np.repeat((share + change)[:, None], 6, 1)
    six[:, 5] += [0.01, -0.5 * share, 0, 0]  # [SEP] leads with raw attention
    two = np.repeat((share + change)[:, None], 2, 1)
    held = {
        **with_ends("share", ("lens", "pattern"), table, reach),
        **with_ends("share_change", ("lens", "pattern"), table - share, reach),
        **with_ends("type_weight", ("lens", "type"), six, reach),
        **with_ends("type_weight_change", ("lens", "type"), six - six[:1], reach),
        **with_ends("weight", ("lens", "token"), two, reach),
        **with_ends("weight_change", ("lens", "token"), two - share, reach),
        "sep_leads": ("lens", list(leads)),
        "last_layers_change_most": ("lens", [1.0, 1.0, 1.0, 1.0]),
        "similarity_layer": (("lens", "layer"), np.tile([0.9, 0.8, 0.1, 0.2], (4, 1))),
        "same_inputs": 0.25,
    }
    coords = {"lens": LENSES, "pattern": PATTERNS, "type": TYPES, "token": ["cls", "sep"], "layer": range(4)}
    one = xr.Dataset(held, coords=coords).expand_dims(
        task=[task], role=["tuned", "base"], length=["all"], size=["signed"]
    )
    keep = {name: one[name].isel(size=0, drop=True) for name in one if not name.startswith(("weight", "type_weight"))}
    return one.assign(keep)


def verdicts(*parts):
    whole = xr.concat(parts, "task") if len(parts) > 1 else parts[0]
    return {claim.text: claim for claim in judge_claims(whole)}


def test_a_fall_that_only_the_papers_code_shows_is_padding():
    found = verdicts(numbers(exact=0.0, paper=-0.2))
    assert found["Vertical patterns fall."].verdict == "only with padding"
    assert found["[SEP] loses weight from all other tokens."].verdict == "only with padding"
    assert found["[CLS] is attended to alike."].verdict == "only without padding"
    assert found["Block patterns rise."].verdict == "does not hold"
    assert found["Heterogeneous patterns do not change notably."].verdict == "only without padding"


def test_a_fall_that_is_exact_holds():
    found = verdicts(numbers(exact=-0.2, paper=-0.25))
    assert found["Vertical patterns fall."].verdict == "holds"
    assert found["[CLS] is attended to alike."].verdict == "does not hold"
    assert describe_verdicts(found["Punctuation loses weight too."]) == "Holds on RTE (0.300 → 0.100; paper 0.050)."


def test_wide_intervals_are_inconclusive():
    found = verdicts(numbers(exact=-0.1, paper=-0.2, reach=0.3))
    assert found["Vertical patterns fall."].verdict == "cannot be said"
    assert found["[CLS] is attended to alike."].verdict == "cannot be said"


def test_tasks_that_differ_are_named():
    found = verdicts(numbers(task="RTE", exact=-0.2), numbers(task="STS-B", exact=0.0))
    claim = found["Vertical patterns fall."]
    assert claim.verdict == "differs by task"
    assert describe_verdicts(claim) == (
        "Holds on RTE (30.0 → 10.0 %; paper 10.0 %); holds only with padding on STS-B (30.0 → 30.0 %; paper 10.0 %)."
    )


def test_exceptions_of_the_paper_for_single_tasks_are_judged():
    text = "[SEP] is among the two types that [CLS] attends to most, on all tasks but QNLI."
    assert verdicts(numbers(task="RTE"))[text].verdict == "holds"
    assert verdicts(numbers(task="QNLI"))[text].verdict == "does not hold"
    assert verdicts(numbers(task="QNLI", leads=(0.0,) * 4))[text].verdict == "holds"
    lost = "With effective attention [SEP] loses that rank (but on SST-2)."
    assert verdicts(numbers(task="RTE"))[lost].verdict == "holds"
    assert verdicts(numbers(task="RTE", leads=(0.0,) * 4))[lost].verdict == "does not apply"
    assert verdicts(numbers(task="SST-2", leads=(1.0,) * 4))[lost].verdict == "holds"
    assert verdicts(numbers(task="RTE", leads=(1.0, 1.0, 0.0, 0.0)))[lost].verdict == "only with padding"


@pytest.mark.parametrize(("exact", "said"), [(-0.2, "holds"), (0.0, "only with padding"), (0.1, "only with padding")])
def test_the_summary_names_the_tasks_that_lose_weight(exact, said):
    made = numbers(exact=exact)
    (verdict,) = judge(LOSES["[SEP]"], made.isel(role=0, length=0)).tasks
    assert verdict.verdict == said
    whole = made.assign(n=(("task", "length"), [[10]]))
    word = {"holds": "loses weight on RTE", "only with padding": "loses weight only with padding on RTE"}[said]
    assert f"[SEP], from all other tokens, {word} (0.300 → " in describe_losses(whole)
    assert "attention itself, to 0.1 % of its norm, for 25 % of the inputs of RTE." in describe_losses(whole)


def test_tokens_with_the_same_weight_are_reported():
    made = numbers()
    assert describe_twins(made) == ""
    made["type_weight"] = made["type_weight"].where(made["type"] != "sep", made["type_weight"].sel(type="cls"))
    assert describe_twins(made).startswith("On RTE the last layer gives [CLS] and [SEP] the same weight")


def test_a_head_is_unchanged_up_to_a_thousandth_of_its_norm():
    kept = np.sqrt(1 - np.array([0, 0.9e-3, 1.1e-3]) ** 2)
    assert find_unchanged(kept).tolist() == [True, True, False]


def test_time_is_judged_for_all_tasks_together():
    def times(in_place, svd):
        table = np.ones((2, 1, 4, 9))
        table[:, :, 1], table[:, :, 3] = in_place, svd
        coords = {"task": ["RTE", "MRPC"], "batch": [8], "way": ["raw", "in place", "maps", "svd"]}
        return xr.Dataset({"seconds": (("task", "batch", "way", "turn"), table)}, coords)

    def found(**given):
        made = judge_claims(numbers(), times(**given))
        return [each.verdict for each in made if each.text.startswith("Evaluation takes twice the time")]

    assert found(in_place=1.2, svd=2.0) == ["holds", "does not hold"]  # the paper's, then ours
    assert found(in_place=2.0, svd=100.0) == ["does not hold", "holds"]  # far more than twice is not twice
    few = times(in_place=2.0, svd=2.0).isel(task=[0]).assign_coords(batch=[5])
    mixed = xr.concat([few, times(in_place=9.0, svd=9.0).isel(task=[1])], "task", join="outer")
    made = [each.verdict for each in judge_claims(numbers(), mixed) if each.text.startswith("Evaluation")]
    assert made == ["cannot be said", "cannot be said"]  # of each task its own batch
    unsure = np.linspace(1.2, 2.0, 9)
    assert found(in_place=unsure, svd=2.0) == ["holds", "cannot be said"]


def test_a_type_that_does_not_occur_is_not_judged():
    made = numbers()
    nothing = made["type"] == "punctuation"
    gone = {name: made[name].where(~nothing) for name in made if name.startswith("type_weight")}
    found = {each.text: each for each in judge_claims(made.assign(gone))}
    assert describe_verdicts(found["Punctuation loses weight too."]) == "Does not apply on RTE (no punctuation there)."
    assert "Punctuation, from [CLS] in the last layer, does not occur on RTE." in describe_losses(
        made.assign({**gone, "n": (("task", "length"), [[10]])})
    )


def test_ranks_do_not_apply_where_cls_and_sep_have_the_same_weight():
    made = numbers()
    made["type_weight"] = made["type_weight"].where(made["type"] != "sep", made["type_weight"].sel(type="cls"))
    found = {each.text: each.verdict for each in judge_claims(made) if "rank" in each.text or "two types" in each.text}
    assert set(found.values()) == {"does not apply"}
    assert len(found) == 2

"""The audit of cues: parts of the input, answers, following the cue, and heads."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope_studies.argument_cues.answers import describe_points, join_answers
from headscope_studies.argument_cues.cue import Cue, choose_cue
from headscope_studies.argument_cues.data import AuditData, read_audit_data
from headscope_studies.argument_cues.heads import compare_groups, mark_cue, summarise_heads
from headscope_studies.argument_cues.listed import list_cues
from headscope_studies.argument_cues.parts import Part, list_parts, select_part
from headscope_studies.argument_cues.summary import find_failed, summarise_answers


def point(number, label, choices, **columns):
    return Example(str(number), "", label=label, columns={"choices": choices, "reason": "It rains.", **columns})


WITH, WITHOUT, BOTH = ("it is not wet", "it is wet"), ("it is wet", "it is dry"), ("not wet", "not dry")
POINTS = [point(0, 0, WITH), point(1, 1, WITH), point(2, 0, WITHOUT), point(3, 1, BOTH), point(4, 0, WITH)]


def audit(points=POINTS):
    return AuditData("toy", points, {"dev": points}, ("reason",), "warrant", "by hand")


def answers_of(predictions, learned=0.9, points=POINTS):
    """Build answers of one network, with the whole input alone and seeds as given."""
    runs = [
        xr.Dataset({"prediction": ("point", np.array(row, np.int8)), "learned": learned, "checked": 100}).expand_dims(
            network=["model"], part=["all"], seed=[seed]
        )
        for seed, row in enumerate(predictions)
    ]
    return join_answers(runs, describe_points(audit(points), Cue("not")))


def test_parts_of_a_choice_are_the_first_segment_and_of_a_classification_both():
    example = Example("0", "", columns={"choices": ("a", "b"), "reason": "It rains.", "claim": "Stay in."})
    texts = [select_part([example], part)[0].text for part in list_parts(["reason", "claim"], "warrant")]
    assert texts == ["", "It rains.", "Stay in.", "It rains. Stay in."]
    pair = Example("0", "", columns={"premise": "It rains.", "hypothesis": "It is wet."})
    selected = [select_part([pair], part)[0] for part in list_parts(["premise", "hypothesis"])]
    assert [(each.text, each.pair) for each in selected] == [
        ("It is wet.", None),
        ("It rains.", None),
        ("It rains.", "It is wet."),
    ]


def test_following_the_cue_is_counted_by_hand():
    numbers = summarise_answers(answers_of([[0, 0, 1, 1, 0], [1, 1, 0, 1, 0]])).squeeze(drop=True)
    assert float(numbers["accuracy"]) == pytest.approx((3 / 5 + 4 / 5) / 2)
    assert float(numbers["follow"]) == pytest.approx((3 / 3 + 1 / 3) / 2)  # points 0, 1 and 4 have the cue in one
    expected = {"right": (2 / 2 + 1 / 2) / 2, "wrong": (0 + 1) / 2, "absent": (1 / 2 + 2 / 2) / 2}
    assert {case: float(numbers["where"].sel(case=case)) for case in expected} == pytest.approx(expected)
    assert (int(numbers["applicability"]), float(numbers["cue_productivity"])) == (3, pytest.approx(2 / 3))
    assert (numbers["accuracy_max"], numbers["accuracy_median"]) == (pytest.approx(0.8), pytest.approx(0.7))


@given(st.lists(st.lists(st.integers(0, 1), min_size=5, max_size=5), min_size=1, max_size=3))
@settings(max_examples=20, deadline=None)
def test_means_over_seeds_and_points_equal_a_literal_count(predictions):
    numbers = summarise_answers(answers_of(predictions)).squeeze(drop=True)
    right = [row[at] == each.label for row in predictions for at, each in enumerate(POINTS)]
    followed = [row[at] == 0 for row in predictions for at in (0, 1, 4)]
    assert float(numbers["accuracy"]) == pytest.approx(sum(right) / len(right))
    assert float(numbers["follow_change"]) == pytest.approx(sum(followed) / len(followed) - 0.5)
    assert float(numbers["accuracy_low"]) <= float(numbers["accuracy"]) + 1e-9 <= float(numbers["accuracy_high"]) + 2e-9


def test_a_seed_that_has_not_learned_its_training_data_fails_and_is_left_out():
    answers = answers_of([[0, 1, 0, 1, 0], [1, 0, 1, 0, 1]])
    answers["learned"].loc[{"seed": 1}] = 0.55  # of 100: the interval holds one half
    assert find_failed(answers).values.ravel().tolist() == [False, True]
    numbers = summarise_answers(answers).squeeze(drop=True)
    assert (float(numbers["accuracy"]), float(numbers["accuracy_mean"])) == (1.0, 0.5)
    assert (int(numbers["failed"]), int(numbers["seeds"])) == (1, 2)


def test_where_all_seeds_fail_nothing_is_known():
    numbers = summarise_answers(answers_of([[0, 1, 0, 1, 0]], learned=0.5)).squeeze(drop=True)
    assert np.isnan(numbers["accuracy"])
    assert float(numbers["accuracy_mean"]) == 1.0


def test_copies_of_a_point_are_one_observation():
    """A network that cannot tell copies apart is at exactly one half, without any doubt."""
    copies = [
        each
        for number in range(30)
        for each in (
            point(number, 0, WITH),
            Example(f"{number}-adversarial", "", label=1, columns=point(0, 1, WITH).columns),
        )
    ]
    numbers = summarise_answers(answers_of([[0] * 60], points=copies)).squeeze(drop=True)
    assert [float(numbers[f"accuracy{end}"]) for end in ("", "_low", "_high")] == [0.5, 0.5, 0.5]


def test_the_strongest_cue_is_chosen_and_a_classification_has_its_label():
    train = [
        Example(
            str(at),
            f"it is {('bad', 'fine')[at % 2]}",
            label=at % 2,
            columns={"text": f"it is {('bad', 'fine')[at % 2]}"},
        )
        for at in range(40)
    ]
    assert choose_cue(train, ["text"], "fine") == Cue("fine", 1, ("text",))
    assert choose_cue(train, ["text"]).text in ("bad", "fine", "is bad", "is fine")
    with pytest.raises(InputError, match="The cue 'green' applies to no training example"):
        choose_cue(train, ["text"], "green")
    random = [Example(str(at), "word", label=at % 2, columns={"text": "word"}) for at in range(40)]
    assert choose_cue(random, ["text"]) is None


def test_the_words_of_the_cue_are_marked_in_the_choice_that_has_it():
    first, alone = (mark_cue(POINTS[:1], Part("all", texts), Cue("not"))[0] for texts in (("reason",), ()))
    assert (first.text, first.pair, first.columns["marked"]) == ("It rains.", "it is not wet", (5,))
    assert (alone.text, alone.pair, alone.columns["marked"]) == ("it is not wet", None, (2,))


def test_groups_are_compared_by_welch():
    random = np.random.default_rng(0)
    values = random.random((40, 1, 1, 2, 3))
    by_cue = np.arange(40) < 15
    dims = ("example", "lens", "query", "layer", "head")
    heads = compare_groups(
        xr.DataArray(
            values, dims=dims, coords={name: range(size) for name, size in zip(dims, values.shape, strict=True)}
        ),
        by_cue,
    )
    test = ttest_ind(values[by_cue], values[~by_cue], equal_var=False)
    low, high = test.confidence_interval()
    np.testing.assert_allclose(heads["difference"], values[by_cue].mean(0) - values[~by_cue].mean(0))
    np.testing.assert_allclose(heads["difference_low"], low)
    np.testing.assert_allclose(heads["difference_high"], high)
    np.testing.assert_allclose(heads["difference_p"], test.pvalue)
    assert (heads["difference_p_adjusted"] >= heads["difference_p"]).all()
    best = summarise_heads(heads.expand_dims(seed=[0])).squeeze(drop=True)
    assert float(best["head_difference_change"]) == pytest.approx(float(abs(heads["difference"]).max()))


def test_few_points_in_a_group_compare_no_head():
    table = xr.DataArray(np.ones((12, 1, 1, 1, 1)), dims=("example", "lens", "query", "layer", "head"))
    table = table.assign_coords({name: [0] for name in table.dims[1:]})
    heads = compare_groups(table, np.arange(12) < 3)
    assert np.isnan(heads["difference"]).all()
    assert np.isnan(summarise_heads(heads.expand_dims(seed=[0]))["head_difference_change"]).all()


def test_your_own_table_is_divided_and_its_texts_are_named(tmp_path):
    file = tmp_path / "my.tsv"
    rows = [f"premise {at}\thypothesis {at}\t{('no', 'yes')[at % 2]}" for at in range(20)]
    file.write_text("\n".join(["a\tb\ty", *rows]), encoding="utf-8")
    data = read_audit_data(str(file), text=("a", "b"), choice=(), label="y")
    assert (data.name, data.texts, data.choice, data.judged) == ("my", ("a", "b"), "", "held out")
    assert len(data.train) + len(data.sets["held out"]) == 20
    assert data.train[0].columns["a"].startswith("premise")
    with pytest.raises(InputError, match="choice='a' is one column"):
        read_audit_data(str(file), text=(), choice=("a",), label="y")


def test_cues_of_other_sets_have_the_label_that_they_favour_in_training():
    train = [Example(str(at), "", label=at % 2, columns={"review": ("fine", "bad")[at % 2]}) for at in range(20)]
    dev = [Example(str(at), "", label=int(at % 3 != 0), columns={"review": "fine"}) for at in range(9)]
    data = AuditData("toy", train, {"dev": dev}, ("review",), "", "by hand")
    fine = list_cues(data, {}).sel(cue="fine")
    assert fine["productivity"].sel(split=["train", "dev"]).values.tolist() == pytest.approx([1.0, 1 / 3])
    assert str(fine["label"].item()) == "0"
    assert float(fine["gain"].sel(split="dev")) == pytest.approx(0.0)  # chance there is the share of the label

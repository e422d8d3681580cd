"""`hs.cues` against literal counts, known values, and awkward data."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.audit.cues import cues
from headscope.core.errors import DataWarning, InputError, UnknownName
from headscope.core.example import Example
from headscope.data.reading.read import read
from tests.oracles.cues import (
    all_cues,
    choice_pmi,
    count_choice_cue,
    count_choice_pair,
    count_class_cue,
    count_class_pair,
)

WORDS = st.sampled_from(["not", "a", "İt", "don't", "don’t", "n't", "J.", "No.", "5", "猫", "é", "e\u0301", "!?", "B"])
TEXT = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)


def choose(*choices, label, name="0"):
    return Example(name, "Why?", label=label, columns={"choices": choices})


CHOICES = st.lists(TEXT, min_size=2, max_size=4)
CHOICE_ROWS = st.lists(st.tuples(CHOICES, st.integers(0, 1)), min_size=1, max_size=6)
CLASS_ROWS = st.lists(st.tuples(TEXT, st.none() | TEXT, st.integers(0, 2)), max_size=5)


@settings(max_examples=25, deadline=None)
@given(CHOICE_ROWS, st.booleans(), st.sampled_from([0.5, 100.0]))
def test_cues_of_choices_equal_literal_counts(rows, either, smoothing):
    examples = [choose(*texts, label=len(texts) - 1 - label, name=str(i)) for i, (texts, label) in enumerate(rows)]
    every = all_cues([text for example in examples for text in example.columns["choices"]], (1, 2, 3))
    expected = {cue: count_choice_cue(examples, cue, either=either) for cue in every}
    expected = {cue: counts for cue, counts in expected.items() if counts[0]}
    options = {"ngrams": (1, 2, 3), "variant": "either" if either else "exclusive", "smoothing": smoothing}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        if not expected:
            with pytest.raises(InputError, match="None of"):
                cues(examples, **options)
            return
        rows = cues(examples, **options).to_dataframe().to_dict("index")
    assert set(rows) == set(expected)
    for cue, (applicable, productive, chance) in expected.items():
        row = rows[cue]
        assert (int(row["applicability"]), int(row["productive"])) == (applicable, productive)
        assert row["chance"] == pytest.approx(chance)
        assert float(row["productivity"]) == pytest.approx((productive + either) / (applicable + either))
        assert float(row["coverage"]) == pytest.approx((applicable + either) / (len(examples) + either))
        assert float(row["pmi"]) == pytest.approx(choice_pmi(examples, cue, smoothing))


@settings(max_examples=25, deadline=None)
@given(CLASS_ROWS)
def test_cues_of_labelled_texts_equal_literal_counts(rows):
    rows = [("a not", None, 0), ("B", "not a", 1), ("a", "a", 2), *rows]
    examples = [Example(str(i), text, pair=pair, label=label) for i, (text, pair, label) in enumerate(rows)]
    data = cues(examples, ngrams=(1, 2), smoothing=1.0)
    texts = [text for example in examples for text in (example.text, example.pair or "")]
    assert set(data["cue"].values) == all_cues(texts, (1, 2))
    labels = [example.label for example in examples]
    rates = [labels.count(label) / len(labels) for label in range(3)]
    for cue, row in data.to_dataframe().to_dict("index").items():
        counts = [count_class_cue(examples, cue, label) for label in range(3)]
        label = int(row["label"])
        lifts = [both / rate for (_, both), rate in zip(counts, rates, strict=True)]
        assert lifts[label] == pytest.approx(max(lifts))
        assert (int(row["applicability"]), int(row["productive"])) == counts[label]
        assert float(row["chance"]) == pytest.approx(rates[label])
        pmi = math.log((counts[label][1] + rates[label]) / (counts[label][0] + 1) / rates[label])
        assert float(row["pmi"]) == pytest.approx(pmi)


@pytest.mark.parametrize(
    ("split", "productivity", "coverage"), [("train", 0.726, 0.374), ("dev", 0.692, 0.380), ("test", 0.494, 0.383)]
)
def test_the_word_not_has_its_known_productivity_and_coverage_in_arct(split, productivity, coverage):
    row = cues(f"arct:{split}", ngrams=(1,)).sel(cue="not")
    assert float(row["productivity"]) == pytest.approx(productivity, abs=0.005)
    assert float(row["coverage"]) == pytest.approx(coverage, abs=0.005)
    assert float(row["productivity_low"]) < float(row["productivity"]) < float(row["productivity_high"])


def test_a_pattern_counts_either_of_two_words():
    row = cues("arct:train", ngrams=(), patterns={"negation": r"\b(?:can)?not\b|n't\b"}).sel(cue="negation")
    assert float(row["productivity"]) == pytest.approx(0.71, abs=0.005)
    assert float(row["coverage"]) == pytest.approx(0.64, abs=0.005)
    assert int(row["words"]) == 0


def test_the_best_cue_of_arct_comes_first_and_is_significant():
    data = cues("arct:train")
    assert data["cue"].values[0] == "not"
    assert int(data["productivity_significant"][0]) == 1
    assert float(data["gain"][0]) == pytest.approx(0.084, abs=0.001)


def test_words_of_the_data_are_taken_as_they_are():
    examples = [
        Example("0", "New York not", words=("New York", "not"), label=0),
        Example("1", "York", words=("York",), label=1),
    ]
    assert set(cues(examples)["cue"].values) == {"new_york", "not", "new_york not", "york"}


def test_parts_select_where_cues_are_looked_for():
    examples = [
        Example("0", "yes", pair="no", label=0, columns={"hint": "maybe"}),
        Example("1", "no", pair="no", label=1, columns={"hint": "never"}),
    ]
    assert set(cues(examples)["cue"].values) == {"yes", "no"}
    assert set(cues(examples, parts="text")["cue"].values) == {"yes", "no"}
    assert set(cues(examples, parts=("pair", "hint"))["cue"].values) == {"no", "maybe", "never"}
    with pytest.raises(UnknownName, match="No part of these examples is called 'hypothesis'"):
        cues(examples, parts="hypothesis")
    with pytest.raises(InputError, match="parts is empty"):
        cues(examples, parts=())
    numbers = [Example("0", "a", label=0, columns={"hint": 3}), Example("1", "b", label=1)]
    with pytest.raises(InputError, match="The part 'hint' of example '0' is 3, but a text or words are expected"):
        cues(numbers, parts="hint")


def test_cues_in_choices_are_not_mixed_with_other_parts():
    examples = [choose("a", "b", label=0), choose("b", "a", label=1, name="1")]
    with pytest.raises(InputError, match="Give 'choices' alone, or the other parts alone"):
        cues(examples, parts=("text", "choices"))


def test_examples_without_a_label_are_left_out_with_a_sentence():
    examples = [choose("a", "b", label=0), choose("a", "c", label=None, name="1")]
    with pytest.warns(DataWarning, match="left out 1 example of 2 without a label"):
        data = cues(examples)
    assert int(data["n"]) == 1
    with pytest.raises(InputError, match="none of 1 example has one. Name the column with the labels"):
        cues(examples[1:])


def test_empty_texts_are_counted_with_a_sentence():
    with pytest.warns(DataWarning, match="1 choice of 4 is empty and holds no cue"):
        data = cues([choose("a", " ", label=0), choose("a", "b", label=1, name="1")])
    assert int(data.sel(cue="a")["applicability"]) == 2
    blank = [Example("0", "", label=0), Example("1", " ", label=1)]
    with pytest.warns(DataWarning, match="2 texts of 2 are empty"), pytest.raises(InputError, match="There is no cue"):
        cues(blank)


def test_equal_choices_are_counted_with_a_sentence():
    examples = [choose("a B", "a  b", label=0), choose("a", "b", label=1, name="1")]
    with pytest.warns(DataWarning, match="1 example of 2 has a second choice equal to the right one"):
        data = cues(examples)
    assert int(data["applicability"].max()) == 1


@pytest.mark.parametrize(
    ("examples", "problem"),
    [
        ([choose("a", label=0)], "Example '0' has 1 choice, but at least 2 are needed"),
        ([choose("a", "b", label=2)], "must be the index of one of its 2 choices, from 0 to 1"),
        ([choose("a", "a", label=0)], "None of 1 cues applies"),
        ([Example("0", "a", label=0), Example("1", "b", label=0)], "All 2 examples have the same label, 0"),
        ([Example("0", "a", label=0.5), Example("1", "b", label=3.0)], "the labels are 2 numbers from 0.5 to 3"),
    ],
)
def test_data_without_classes_or_choices_are_an_error(examples, problem):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        with pytest.raises(InputError, match=problem):
            cues(examples)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"variant": "both"}, "variant must be exclusive or either, but got 'both'"),
        ({"ngrams": ()}, "nothing to look for"),
        ({"ngrams": (0,)}, r"ngrams must be numbers of words from 1 to 9, but got \(0,\)"),
        ({"min_count": 0}, "min_count must be at least 1, but got 0"),
        ({"min_count": 9}, "None of 3 cues applies to at least min_count=9 of 2 examples"),
        ({"smoothing": -1.0}, "smoothing must be 0 or more"),
        ({"patterns": ["("]}, r"The pattern '\(' is no regular expression"),
        ({"patterns": {"any": "a*"}}, "The pattern 'any' matches an empty text"),
        ({"patterns": {"a": "a"}}, "The name of the pattern 'a' is also a word of the texts"),
        ({"variant": "either", "parts": "text"}, "variant='either' is about choices, but these are labelled texts"),
    ],
)
def test_options_that_do_not_fit_are_an_error(options, problem):
    examples = [choose("a", "b c", label=0), choose("c b", "a", label=1, name="1")]
    with pytest.raises(InputError, match=problem):
        cues(examples, **{"ngrams": (1,)} | options)


def test_an_accent_is_part_of_its_letter_however_it_is_written():
    examples = [
        Example("0", "Cafe\u0301 noir", label=0),
        Example("1", "the CAF\u00c9", label=0),
        Example("2", "tea", label=1),
    ]
    data = cues(examples, ngrams=(1, 2), patterns={"accent": "\u00e9$|\u00e9 "})
    assert set(data["cue"].values) == {"caf\u00e9", "noir", "the", "tea", "caf\u00e9 noir", "the caf\u00e9", "accent"}
    assert int(data.sel(cue="caf\u00e9")["applicability"]) == int(data.sel(cue="accent")["applicability"]) == 2


@pytest.mark.parametrize("patterns", [{"none": "zzz"}, {"none": "[A-Z]"}, {"none": "a|b"}])
def test_a_pattern_that_does_not_apply_is_named(patterns):
    examples = [choose("A", "b c", label=0), choose("c b", "a", label=1, name="1")]
    with pytest.warns(
        DataWarning, match="left out the pattern 'none', which applies to fewer than min_count=1 of 2 ex"
    ):
        data = cues(examples, patterns=patterns)
    assert "none" not in data["cue"].values


def test_a_result_says_what_was_counted():
    data = cues("arct:dev", variant="either", min_count=5)
    assert int(data["applicability"].min()) == 5
    assert {'"variant": "either"', '"min_count": 5', '"kind": "cues"', '"task": "choice"'} <= set(
        data.attrs["headscope"].strip("{}").split(", ")
    )


def test_a_pattern_that_would_take_years_is_stopped(monkeypatch):
    monkeypatch.setattr("headscope.audit.occurrences.TIME_LIMIT", 0.01)
    examples = [Example("0", "a" * 99 + "b", label=0), Example("1", "ab", label=1)]
    with pytest.raises(
        InputError, match=r"pattern 'slow' takes more than 0.01 seconds on one text.* such as \(a\+\)\+"
    ):
        cues(examples, ngrams=(), patterns={"slow": "(a|aa)+$"})


def test_repeats_of_repeats_end():
    examples = [Example("0", "a" * 60 + "b", label=0), Example("1", "aa", label=1)]
    data = cues(examples, ngrams=(), patterns={"nested": "(a+)+$"})
    assert data.sel(cue="nested")["applicability"].item() == 1


def claim(text, *choices, label, name="0"):
    return Example(name, "Why?", label=label, columns={"choices": choices, "claim": text})


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(TEXT, CHOICES, st.integers(0, 1)), min_size=1, max_size=5), st.booleans())
def test_pairs_of_cues_equal_literal_counts(rows, either):
    examples = [claim(text, *texts, label=label, name=str(i)) for i, (text, texts, label) in enumerate(rows)]
    firsts = all_cues([example.columns["claim"] for example in examples], (1, 2))
    seconds = all_cues([text for example in examples for text in example.columns["choices"]], (1, 2))
    expected = {
        f"{first} in claim & {second} in choices": count_choice_pair(examples, first, second, either=either)
        for first in firsts
        for second in seconds
    }
    expected = {name: counts for name, counts in expected.items() if counts[0]}
    options = {"pairs": ("claim", "choices"), "variant": "either" if either else "exclusive"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        if not expected:
            with pytest.raises(InputError, match="None of"):
                cues(examples, **options)
            return
        rows = cues(examples, **options).to_dataframe().to_dict("index")
        few = {name for name, counts in expected.items() if counts[0] >= 2}
        if few:
            assert set(cues(examples, min_count=2, **options)["cue"].values) == few
    assert set(rows) == set(expected)
    for name, (applicable, productive, chance) in expected.items():
        assert (int(rows[name]["applicability"]), int(rows[name]["productive"])) == (applicable, productive)
        assert rows[name]["chance"] == pytest.approx(chance)


@settings(max_examples=25, deadline=None)
@given(CLASS_ROWS)
def test_pairs_of_cues_in_two_texts_equal_literal_counts(rows):
    rows = [("a not", "B", 0), ("B", "not a", 1), ("a", "a", 2), *rows]
    examples = [Example(str(i), text, pair=pair, label=label) for i, (text, pair, label) in enumerate(rows)]
    table = cues(examples, ngrams=1, pairs=("text", "pair")).to_dataframe()
    for name, row in table.to_dict("index").items():
        first, second = (side.rpartition(" in ")[0] for side in name.split(" & "))
        expected = count_class_pair(examples, first, second, int(row["label"]))
        assert (int(row["applicability"]), int(row["productive"])) == expected


def test_a_pair_tells_what_no_single_cue_does():
    """The label is whether claim and warrant are both negated or neither is: each word alone is at chance."""
    examples = []
    for at in range(40):
        negated, side = at % 2, at // 2 % 2
        choices = ("it is not so", "it is so") if side == 0 else ("it is so", "it is not so")
        label = side if negated else 1 - side
        examples.append(claim("do not go" if negated else "go", *choices, label=label, name=str(at)))
    single, pairs = cues(examples), cues(examples, pairs=("claim", "choices"), ngrams=1)
    assert float(single.sel(cue="not")["productivity"]) == 0.5
    row = pairs.sel(cue="not in claim & not in choices")
    assert (float(row["productivity"]), float(row["coverage"]), float(row["chance"])) == (1.0, 0.5, 0.5)
    assert int(row["productivity_significant"]) == 1
    assert int(row["words"]) == 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"pairs": ("claim",)}, "pairs are of cues in two parts of an example, but got 'claim'. Name two"),
        ({"pairs": ("choices", "claim")}, "the choices last, such as claim and choices"),
        ({"pairs": ("claim", "choices"), "parts": "claim"}, "parts is for single cues and pairs is for pairs of cues"),
        ({"pairs": ("clam", "choices")}, "'clam'"),
        ({"pairs": ("claim", "choices"), "min_count": 9}, "No pair of cues is in at least min_count=9 of 2 examples"),
    ],
)
def test_pairs_that_do_not_fit_are_an_error(options, problem):
    examples = [claim("go", "a", "b c", label=0), claim("stay", "c b", "a", label=1, name="1")]
    with pytest.raises(InputError, match=problem):
        cues(examples, **options)


def test_too_many_pairs_are_an_error(monkeypatch):
    monkeypatch.setattr("headscope.audit.occurrences.MAX_PAIRS", 3)
    with pytest.raises(InputError, match=r"There are 6 pairs of cues in claim and choices, more than 3\."):
        cues([claim("go on", "a", "b c", label=0)], ngrams=1, pairs=("claim", "choices"))


def test_random_labels_make_no_pair_significant():
    random = np.random.default_rng(0)
    words = ["not", "a", "so", "it", "is", "be"]
    examples = [
        claim(*(" ".join(random.choice(words, 3)) for _ in range(3)), label=int(random.integers(2)), name=str(at))
        for at in range(300)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert not cues(examples, pairs=("claim", "choices"), ngrams=1)["productivity_significant"].any()


@pytest.mark.soak
def test_shuffled_labels_seldom_make_a_pair_significant():
    """Of 60 shuffles of ARCT's labels, no more have a significant pair than a test at 5 % allows (p > 0.001)."""
    examples, random = read("arct:dev"), np.random.default_rng(0)
    wrong = 0
    for _ in range(60):
        labels = random.integers(0, 2, len(examples)).tolist()
        shuffled = [replace(example, label=label) for example, label in zip(examples, labels, strict=True)]
        table = cues(shuffled, pairs=("claim", "choices"), ngrams=1, min_count=5)
        wrong += bool(table["productivity_significant"].any())
    assert wrong <= 9  # 3 are expected at most

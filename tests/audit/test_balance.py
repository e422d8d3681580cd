"""Data in which no cue tells the label."""

import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.audit.add_negated import add_negated
from headscope.audit.balance import balance
from headscope.audit.cues import cues
from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.data.reading.read import read
from headscope.kinds.cues import count_off_chance
from headscope.results.store import save
from tests.audit.test_cues import choose
from tests.readers.shared import DATA, real


@pytest.mark.parametrize("split", ["train", "test"])
def test_no_cue_of_a_balanced_part_of_arct_is_off_chance(split):
    before = cues(f"arct:{split}")
    balanced = balance(f"arct:{split}")
    after = cues(balanced)
    assert count_off_chance(before) > 0
    assert count_off_chance(after) == 0
    assert len(balanced) > 0.6 * int(before["n"])
    ids = [example.id for example in read(f"arct:{split}")]
    assert [ids.index(example.id) for example in balanced] == sorted(ids.index(example.id) for example in balanced)


@pytest.mark.filterwarnings("ignore:.*are left, and the largest gain")  # of few examples, for some seeds
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 3))
def test_no_cue_of_a_balanced_part_of_random_texts_is_off_chance(seed, classes):
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, 120)
    favored = random.integers(0, classes, 12)
    texts = [
        " ".join(f"w{word}" for word in range(12) if random.random() < (0.5 if favored[word] == label else 0.2))
        for label in labels
    ]
    examples = [
        Example(str(i), text or "w", label=int(label))
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    balanced = balance(examples, seed=seed)
    assert count_off_chance(cues(balanced)) == 0
    counts = np.bincount([example.label for example in balanced], minlength=classes)
    assert len(set(counts.tolist())) == 1


def count_labels_off_chance(examples, classes):
    """Return the words and labels whose share is significantly above or below chance (Wilson's test), literally."""
    words = {word for example in examples for word in example.text.split()}
    off = set()
    for word in words:
        labels = [example.label for example in examples if word in example.text.split()]
        for label in range(classes):
            expected = len(labels) / classes
            spread = 1.959963984540054 * (len(labels) * (classes - 1)) ** 0.5 / classes
            if abs(labels.count(label) - expected) > spread:
                off.add((word, label))
    return off


def test_a_word_that_one_of_three_labels_avoids_does_not_tell_the_label_after_balancing():
    labels = [0] * 2 + [1] * 11 + [2] * 11  # 11 of 24 are no more than chance, 2 of 24 are less
    examples = [Example(f"a{i}", f"rare a{i}", label=label) for i, label in enumerate(labels)]
    examples += [Example(f"b{i}", f"other b{i}", label=i % 3) for i in range(60)]
    examples += [Example(f"c{i}", f"other c{i}", label=0) for i in range(9)]
    assert count_labels_off_chance(examples, 3) == {("rare", 0)}
    balanced = balance(examples, ngrams=(1,))
    assert count_labels_off_chance(balanced, 3) == set()
    assert len(balanced) > 60
    assert Counter(example.label for example in balanced)[0] == len(balanced) / 3


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(3, 4))
def test_no_word_tells_for_or_against_any_of_several_labels_after_balancing(seed, classes):
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, 150)
    avoided = random.integers(0, classes, 10)
    texts = [
        " ".join(f"w{word}" for word in range(10) if random.random() < (0.05 if avoided[word] == label else 0.4))
        for label in labels
    ]
    examples = [
        Example(str(i), text or "w", label=int(label))
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert count_labels_off_chance(balance(examples, ngrams=(1,), seed=seed), classes) == set()


def test_balancing_is_repeatable_and_depends_on_the_seed():
    first, again, other = ([example.id for example in balance("arct:dev", seed=seed)] for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_data_that_cannot_be_balanced_are_an_error():
    examples = [choose("not", "yes", label=0, name=str(number)) for number in range(9)]
    with pytest.warns(DataWarning, match="3 examples of 9 are left, and the largest gain of a cue is 0.500, no less"):
        assert len(balance(examples)) == 3  # three of three are within the interval
    with pytest.raises(InputError, match="All 2 examples have the same label"):
        balance([Example("0", "a", label=0), Example("1", "b", label=0)])
    for ngrams, problem in (((), "nothing to look for"), ((0,), "numbers of words from 1 to 9")):
        with pytest.raises(InputError, match=problem):
            balance(examples, ngrams=ngrams)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_every_cue_is_at_chance_with_negated_copies(split):
    examples = read(f"arct:{split}")
    negations = {example.columns["claim"]: f"It is wrong that {example.columns['claim']}" for example in examples}
    both = add_negated(examples, negations)
    before, data = cues(examples), cues(both)
    assert len(both) == 2 * len(examples) == int(data["n"])
    assert (data["productivity"] == 0.5).all()
    assert count_off_chance(data) == 0
    assert data.sizes == before.sizes
    np.testing.assert_array_equal(data.sel(cue="not")["coverage"], before.sel(cue="not")["coverage"])


@real
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_every_cue_is_at_chance_in_the_published_adversarial_sets(split):
    published = read(f"arct:{split}-adv-negated@{DATA / 'arct'}")
    assert (cues(published)["productivity"] == 0.5).all()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours = add_negated(f"arct:{split}", DATA / "arct" / "adversarial" / "claim_map.csv")
    assert {example.id for example in ours} == {example.id for example in published}
    same = Counter((example.text, example.columns["choices"]) for example in published)  # claims that are not negated
    copies = {"train": 24, "dev": 0, "test": 56}[split]
    assert sum(count for count in same.values() if count > 1) == copies
    said = [str(warning.message) for warning in caught]
    assert [text.partition(" have")[0] for text in said] == (
        [f"{copies // 2} examples of {len(ours) // 2:,}"] if copies else []
    )


def test_a_copy_has_the_negated_claim_and_the_other_label(tmp_path):
    table = tmp_path / "claims.csv"
    table.write_text('original,negated\n"Stay in, now.","Go out, now."\n')
    examples = read(
        [{"id": "a", "text": "Rain. Stay in, now.", "claim": "Stay in, now.", "w": ["x", "y"], "label": 1}], choices="w"
    )
    original, copy = add_negated(examples, table)
    assert (original.id, original.label, original.columns["adversarial"]) == ("a", 1, False)
    assert (copy.id, copy.text, copy.label) == ("a-adversarial", "Rain. Go out, now.", 0)
    assert (copy.columns["claim"], copy.columns["choices"]) == ("Go out, now.", ("x", "y"))
    saved = save([original, copy], tmp_path / "both.jsonl")
    assert read(saved, choices="choices") == [original, copy]


@pytest.mark.parametrize(
    ("change", "negations", "problem"),
    [
        ({}, {}, "1 claim of 1 has no negation in the table, the first is 'Stay in.'"),
        ({"claim": "Go."}, {"Go.": "Stay."}, "The text of example '0' does not hold its claim, 'Go.'"),
        ({"claim": None}, {}, "Example '0' has no text in the column 'claim'"),
        ({"w": ["x", "y", "z"]}, {"Stay in.": "Go out."}, "example '0' has 3 choices and the label 0"),
        ({"label": None}, {"Stay in.": "Go out."}, "example '0' has 2 choices and the label None"),
    ],
)
def test_examples_that_cannot_be_negated_are_an_error(change, negations, problem):
    row = {"text": "Rain. Stay in.", "claim": "Stay in.", "w": ["x", "y"], "label": 0} | change
    with pytest.raises(InputError, match=problem):
        add_negated(read([row], choices="w"), negations)


def test_examples_are_not_negated_twice_and_a_claim_is_not_its_own_negation():
    row = {"text": "Rain. Stay in.", "claim": "Stay in.", "w": ["x", "y"], "label": 0}
    examples = read([row], choices="w")
    both = add_negated(examples, {"Stay in.": "Go out."})
    with pytest.raises(InputError, match="Example '0-adversarial' is an adversarial copy already"):
        add_negated(both, {"Stay in.": "Go out.", "Go out.": "Stay in."})
    with pytest.warns(DataWarning, match="1 example of 1 has a claim whose negation is the same, the first is 'Stay"):
        add_negated(examples, {"Stay in.": "Stay  in."})


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("claim,negated\na,b\n", "line 2: a table of negations has the columns original and negated"),
        ("original,negated\na,b\na,c\n", "line 3: 'a' has another negation already, 'b'"),
        ("original,negated\na\n", "line 2: it has 1 field, but there are 2 columns"),
    ],
)
def test_a_broken_table_of_negations_is_an_error(content, problem, tmp_path):
    path = tmp_path / "claims.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=problem):
        add_negated("arct:dev", path)


def test_a_single_number_of_words_needs_no_list():
    rows = [{"text": f"good film {number}", "label": number % 2} for number in range(8)]
    assert cues(rows, ngrams=1).equals(cues(rows, ngrams=(1,)))
    assert balance(rows, ngrams=1) == balance(rows, ngrams=(1,))


def test_the_published_adversarial_test_set_is_neutral_to_single_words_and_not_to_pairs():
    """ "not" in the claim and in one warrant: neither tells the label, and together they do (Niven & Kao, 2019)."""
    where = DATA / "arct"
    if not where.is_dir():
        pytest.skip("the published adversarial sets are not here")
    published = read(f"arct:test-adv-negated@{where}")
    row = cues(published, pairs=("claim", "choices"), ngrams=1).sel(cue="not in claim & not in choices")
    assert (int(row["productive"]), int(row["applicability"])) == (99, 160)
    assert float(row["productivity_low"]) > 0.5


def test_pairs_of_cues_are_balanced_in_place_of_single_ones():
    options = {"pairs": ("claim", "choices"), "ngrams": 1}
    before = read("arct:dev")
    balanced = balance(before, **options)
    assert count_off_chance(cues(before, **options)) > 0
    assert count_off_chance(cues(balanced, **options)) == 0
    assert len(balanced) > 0.5 * len(before)

"""Readers of subject-verb agreement: sentences with facts about the verb, Linzen's format, and templates."""

from collections import Counter
from itertools import product

import pytest

from headscope.core.errors import DataWarning, InputError
from headscope.data.bundled.agreement import NOUNS, inflect, make_sentences
from headscope.data.reading.agreement import find_number
from headscope.data.reading.read import read
from tests.readers.shared import DATA, real

SENTENCES = "the keys to the cabinet are here . <eos>\nthe Man passes .\n"
GOLD = "5\tare\tis\t1\n2\tpasses\tpass\t0\n"
HEADER = (
    "sentence orig_sentence pos_sentence subj verb subj_pos has_rel has_nsubj verb_pos subj_index verb_index "
    "n_intervening last_intervening n_diff_intervening distance max_depth all_nouns nouns_up_to_verb"
).split()
ROW = {
    "sentence": "the article on NNP large systems is NN",
    "orig_sentence": 'the article on "Acme" large systems is out',
    "pos_sentence": "DT NN IN NNP JJ NNS VBZ NN",
    "subj": "article",
    "verb": "is",
    "subj_pos": "NN",
    "has_rel": "False",
    "has_nsubj": "False",
    "verb_pos": "VBZ",
    "subj_index": "2",
    "verb_index": "7",
    "n_intervening": "1",
    "last_intervening": "NNS",
    "n_diff_intervening": "1",
    "distance": "5",
    "max_depth": "2",
    "all_nouns": "NN",
    "nouns_up_to_verb": "NN NNS",
}


def write_pair(folder, text=SENTENCES, gold=GOLD):
    (folder / "some.text").write_text(text)
    (folder / "some.gold").write_text(gold)
    return folder


def write_linzen(folder, **changes):
    """Write one row as Python's csv module does: a field with a quotation mark is quoted, lines end in CR LF."""
    fields = [(ROW | changes)[name] for name in HEADER]
    quoted = ['"' + field.replace('"', '""') + '"' if '"' in field else field for field in fields]
    path = folder / "agr_50_mostcommon_10K.tsv"
    path.write_bytes(("\t".join(HEADER) + "\r\n" + "\t".join(quoted) + "\r\n").encode())
    return folder


def test_the_text_ends_before_the_verb(tmp_path):
    first, second = read(f"agreement@{write_pair(tmp_path)}")
    assert (first.text, first.label, first.columns["label_name"]) == ("the keys to the cabinet", 1, "plural")
    assert dict(first.columns) == {
        "attractors": 1,
        "verb": "are",
        "wrong_verb": "is",
        "subject_position": None,
        "attractor_positions": None,
        "label_name": "plural",
    }
    assert (second.words, second.label) == (("the", "Man"), 0)


@pytest.mark.parametrize("name", ["some.text", "some.gold"])
def test_one_of_the_two_files_names_both(tmp_path, name):
    assert len(read(f"agreement@{write_pair(tmp_path) / name}")) == 2


@pytest.mark.parametrize(
    ("gold", "problem"),
    [
        ("5\tare\tis\n", "it has 3 fields, but there are 4: verb_index, verb, wrong_verb, attractors"),
        ("4\tare\tis\t1\n", "word 4 of the sentence is 'cabinet', not the verb 'are'"),
        ("x\tare\tis\t1\n", "the column 'verb_index' is 'x', but a whole number is expected"),
        ("5\tare\tis\t-1\n", "the column 'attractors' is '-1', but a whole number is expected"),
        ("9\tare\tis\t1\n", "the verb is word 10 of 8, but it must be one after the first"),
        ("0\tthe\ta\t1\n", "the verb is word 1 of 8, but it must be one after the first"),
        ("5\tare\tare\t1\n", "the forms of the verb are 'are' and 'are', which do not show its number"),
    ],
)
def test_a_malformed_line_says_its_problem(tmp_path, gold, problem):
    write_pair(tmp_path, SENTENCES.splitlines()[0], gold)
    with pytest.raises(InputError, match=rf"some\.gold, line 1: {problem}"):
        read(f"agreement@{tmp_path}")


def test_files_of_different_length_do_not_belong_together(tmp_path):
    with pytest.raises(InputError, match=r"line 2: some\.text ends before this line"):
        read(f"agreement@{write_pair(tmp_path, SENTENCES.splitlines()[0])}")
    with pytest.raises(InputError, match=r"line 2: some\.gold ends before this line"):
        read(f"agreement@{write_pair(tmp_path, SENTENCES, GOLD.splitlines()[0])}")


def test_a_folder_without_a_gold_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"has no file with the ending \.gold"):
        read(f"agreement@{tmp_path}")


@pytest.mark.parametrize(
    ("right", "wrong", "number"),
    [
        ("has", "have", "singular"),
        ("were", "was", "plural"),
        ("Is", "Are", "singular"),
        ("miss", "misses", "plural"),
        ("goes", "go", "singular"),
        ("tries", "try", "singular"),
        ("do", "does", "plural"),
    ],
)
def test_the_number_of_a_verb_shows_in_its_form(right, wrong, number):
    assert find_number(right, wrong) == number


@real
def test_real_sentences_are_read_but_four_without_a_number():
    with pytest.warns(DataWarning, match="skipped 4 of 7,489 rows"):
        examples = read(f"agreement@{DATA / 'agreement'}", malformed="skip")
    assert len(examples) == 7485
    assert sorted(Counter(example.columns["attractors"] for example in examples)) == [0, 1, 2, 3, 4]


def test_linzen_counts_words_from_one_and_finds_attractors_by_their_tags(tmp_path):
    (example,) = read(f"linzen@{write_linzen(tmp_path)}")
    assert (example.text, example.label) == ("the article on NNP large systems", 0)
    columns = example.columns
    assert (columns["subject_position"], columns["attractor_positions"], columns["attractors"]) == (1, (5,), 1)
    assert columns["distance"] == "5"


def test_linzen_reads_the_original_words_and_their_quoting(tmp_path):
    (example,) = read(f"linzen:original@{write_linzen(tmp_path)}")
    assert example.words == ("the", "article", "on", '"Acme"', "large", "systems")


def test_linzen_gives_no_positions_where_the_tags_disagree(tmp_path):
    (example,) = read(f"linzen@{write_linzen(tmp_path, n_diff_intervening='2')}")
    assert (example.columns["attractors"], example.columns["attractor_positions"]) == (2, None)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"verb_pos": "VBD"}, "the column 'verb_pos' is 'VBD', but VBZ or VBP is expected"),
        ({"subj_index": "8"}, "the subject is word 8, but it must be before the verb, word 7"),
        ({"subj_index": "x"}, "the column 'subj_index' is 'x', but a whole number is expected"),
        ({"verb_index": "6"}, "word 6 is 'systems' with the tag NNS, but the verb is 'is' with the tag VBZ"),
        ({"pos_sentence": "DT NN"}, "there are 8 words in 'sentence', but 2 in 'pos_sentence'"),
    ],
)
def test_a_malformed_row_of_linzen_says_its_problem(tmp_path, changes, problem):
    with pytest.raises(InputError, match=rf"line 2: {problem}"):
        read(f"linzen@{write_linzen(tmp_path, **changes)}")


def test_another_table_is_not_linzens(tmp_path):
    (tmp_path / "a.tsv").write_text("sentence\tlabel\nIt is.\t1\n")
    with pytest.raises(InputError, match="has no column 'pos_sentence'"):
        read(f"linzen@{tmp_path / 'a.tsv'}")


def noun_pairs(sentences):
    """Return every pair of the subject and another noun of a sentence, in the singular."""
    singular = {inflect(noun, plural=plural): noun for noun in NOUNS for plural in (False, True)}
    nouns = [
        (singular[sentence.words[sentence.subject]], {singular[word] for word in sentence.words if word in singular})
        for sentence in sentences
    ]
    return {frozenset((subject, other)) for subject, others in nouns for other in others - {subject}}


def test_the_splits_of_the_templates_share_no_sentence_and_no_pair_of_subject_and_noun():
    train, test = make_sentences("train", 600), make_sentences("test", 400)
    assert len({sentence.words for sentence in [*train, *test]}) == 1000
    assert not noun_pairs(train) & noun_pairs(test)


def test_the_positions_of_the_templates_are_those_of_the_subject_and_of_the_attractors():
    plurals = {inflect(noun, plural=True) for noun in NOUNS}
    nouns = plurals | set(NOUNS)
    for sentence in make_sentences("train", 200, seed=3):
        is_plural = [word in plurals for word in sentence.words]
        assert sentence.words[sentence.subject] in nouns
        assert (sentence.number == "plural") == is_plural[sentence.subject] != (sentence.swapped_subject in plurals)
        later = range(sentence.subject + 1, len(sentence.words))
        between = [place for place in later if sentence.words[place] in nouns]
        assert sentence.attractors == tuple(p for p in between if is_plural[p] != is_plural[sentence.subject])


def test_both_numbers_and_all_counts_of_attractors_are_equally_frequent():
    examples = read("agreement_templates:test:100")
    counts = Counter((example.label, example.columns["attractors"]) for example in examples)
    assert counts == dict.fromkeys(product((0, 1), range(5)), 10)


def test_no_single_noun_besides_the_subject_gives_the_answer_away():
    """The number of the first or of the last noun is that of the subject in far from all sentences."""
    is_plural = {inflect(noun, plural=plural): plural for noun in NOUNS for plural in (False, True)}
    examples = read("agreement_templates:test:300")
    nouns = [[is_plural[word] for word in each.words if word in is_plural] for each in examples]
    for place in (0, -1):
        share = sum(numbers[place] == each.label for numbers, each in zip(nouns, examples, strict=True)) / len(examples)
        assert share < 0.85


def test_no_noun_is_also_another_word_of_the_templates():
    forms = [inflect(noun, plural=plural) for noun in NOUNS for plural in (False, True)]
    assert len(set(forms)) == len(forms)


def test_templates_are_the_same_for_the_same_seed():
    first, again, other = (read(f"agreement_templates:test:5:{seed}") for seed in (0, 0, 1))
    assert first == again != other
    assert first[1].text == "behind the necklace , the church that found the box that the candles noticed"


@pytest.mark.parametrize(("spec", "problem"), [("dev", "split"), ("test:0", r"count=0 sentences are asked for")])
def test_impossible_templates_are_refused(spec, problem):
    with pytest.raises(InputError, match=problem):
        read(f"agreement_templates:{spec}")

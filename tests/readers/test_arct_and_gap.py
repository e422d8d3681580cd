"""Argument reasoning comprehension, and pronouns of Wikipedia; real treebanks and texts beside them."""

import subprocess
import sys

import pytest

from headscope.core.errors import InputError
from headscope.data.bundled.sample import paragraphs
from headscope.data.reading.read import read
from tests.readers.shared import DATA, real

ARCT = "#id\twarrant0\twarrant1\tcorrectLabelW0orW1\treason\tclaim\tdebateTitle\tdebateInfo"
MOVED = "#id\twarrant0\twarrant1\treason\tclaim\tdebateTitle\tdebateInfo\tcorrectLabelW0orW1\tadversarial"
GAP = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
ROW = "d-1\tAnn told Eve that she won.\tshe\t18\tAnn\t0\tTRUE\tEve\t9\tFALSE\thttp://x"


def test_an_argument_is_reason_and_claim_with_two_warrants_to_choose_from(tmp_path):
    (tmp_path / "dev.tsv").write_text(f"{ARCT}\n7_A\tyes\tno\t1\tIt rains.\tStay in.\tWeather\tInfo\n")
    (found,) = read(f"arct:dev@{tmp_path}")
    assert (found.id, found.text, found.pair, found.label) == ("7_A", "It rains. Stay in.", None, 1)
    assert found.columns["choices"] == ("yes", "no")
    assert {found.columns[name] for name in ("warrant0", "warrant1", "reason", "claim", "debateTitle")} == {
        "yes", "no", "It rains.", "Stay in.", "Weather",
    }  # fmt: skip


def test_the_label_of_an_adversarial_argument_may_stand_elsewhere(tmp_path):
    (tmp_path / "test-adv-negated.csv").write_text(f"{MOVED}\n7_A\tyes\tno\tIt rains.\tStay in.\tW\tI\t0\tTrue\n")
    (found,) = read(f"arct:test-adv-negated@{tmp_path}")
    assert (found.label, found.columns["choices"], found.columns["adversarial"]) == (0, ("yes", "no"), True)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("7_A\t \tno\t1\tR\tC\tT\tI", r"the warrant0 \(column 'warrant0'\) is empty"),
        ("7_A\tyes\tno\t2\tR\tC\tT\tI", r"the label \(column 'correctLabelW0orW1'\) is '2', which is not one of warr"),
    ],
)
def test_a_broken_argument_says_what_is_wrong(tmp_path, row, problem):
    (tmp_path / "dev.tsv").write_text(f"{ARCT}\n{row}\n")
    with pytest.raises(InputError, match=rf"dev\.tsv, line 2: {problem}"):
        read(f"arct:dev@{tmp_path}")


def test_a_paragraph_of_gap_has_typed_columns(tmp_path):
    (tmp_path / "gap-validation.tsv").write_text(f"{GAP}\n{ROW}\n")
    (found,) = read(f"gap:validation@{tmp_path}")
    assert (found.id, found.text, found.label) == ("d-1", "Ann told Eve that she won.", None)
    assert dict(found.columns) == {
        "Pronoun": "she", "Pronoun-offset": 18, "A": "Ann", "A-offset": 0, "A-coref": True, "B": "Eve", "B-offset": 9,
        "B-coref": False, "URL": "http://x",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("\t18\t", "\tx\t", "the column 'Pronoun-offset' is 'x', where a whole number is expected"),
        ("\t18\t", "\t17\t", r"at letter 17 of the text stands ' sh', not 'she' \(column 'Pronoun'\)"),
        ("TRUE", "yes", "the column 'A-coref' is 'yes', where TRUE or FALSE is expected"),
    ],
)
def test_a_broken_paragraph_of_gap_says_what_is_wrong(tmp_path, old, new, problem):
    (tmp_path / "a.tsv").write_text(f"{GAP}\n{ROW.replace(old, new)}\n")
    with pytest.raises(InputError, match=rf"a\.tsv, line 2: {problem}"):
        read(f"gap@{tmp_path}/a.tsv")


def test_the_bundled_paragraphs_are_gaps():
    found = paragraphs()
    assert found == read("sample")
    assert len(found) == 100
    assert all(each.text[each.columns["B-offset"] :].startswith(each.columns["B"]) for each in found)


@real
@pytest.mark.parametrize(
    ("source", "many"),
    [
        ("arct:train@{}/arct", 1210), ("arct:dev@{}/arct/original", 316), ("arct:test@{}/arct", 444),
        ("arct:train-adv-negated@{}/arct", 2420), ("arct:dev-adv-negated@{}/arct", 632),
        ("arct:test-adv-negated@{}/arct/adversarial", 888), ("arct:train-swapped@{}/arct", 2420),
        ("gap:development@{}/coreference/gap", 2000), ("gap:validation@{}/coreference/gap", 454),
        ("gap:test@{}/coreference/gap", 2000),
        ("{}/treebank/en_ewt-dev.conllu", 2001), ("{}/treebank/en_gum-dev.conllu", 1575),
        ("{}/coreference/winogender/all_sentences.tsv", 720),
    ],
)  # fmt: skip
def test_real_sets_are_read_whole(source, many):
    found = read(source.format(DATA))
    assert len(found) == many == len({each.id for each in found})


@real
def test_the_largest_real_sets_are_read_in_seconds():
    """Without the shape checks of these tests, which would take most of the time."""
    code = "import sys, headscope; print(*(len(headscope.read(source)) for source in sys.argv[1:]))"
    sources = (f"glue:sst-2:train@{DATA / 'glue'}", DATA / "treebank" / "en_ewt-train.conllu")
    done = subprocess.run([sys.executable, "-c", code, *sources], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["67349", "12544"], done.stderr


@real
def test_adversarial_arguments_are_balanced_whatever_their_split():
    for split in ("train", "dev", "test"):
        labels = [each.label for each in read(f"arct:{split}-adv-negated@{DATA / 'arct'}")]
        assert labels.count(0) == labels.count(1)


@real
def test_the_trees_and_mentions_of_gum_fit_their_sentences():
    for each in read(DATA / "treebank" / "en_gum-dev.conllu"):
        many = len(each.words)
        assert each.columns["heads"].count(-1) == 1
        assert all(-1 <= head < many for head in each.columns["heads"])
        assert all(0 <= start <= end < many and kind for start, end, _, kind in each.columns["mentions"])


@real
def test_the_lines_of_real_articles_that_hold_text_are_examples():
    path = DATA / "text" / "valid.txt"
    assert len(read(path)) == sum(bool(line.strip()) for line in path.read_text(encoding="utf-8").split("\n"))

"""The readers of ARCT and GAP, and real data in all formats."""

import subprocess
import sys

import pytest

from headscope.core.errors import InputError
from headscope.data.reading.read import read
from tests.readers.shared import DATA, real

ARCT = "#id\twarrant0\twarrant1\tcorrectLabelW0orW1\treason\tclaim\tdebateTitle\tdebateInfo"
MOVED = "#id\twarrant0\twarrant1\treason\tclaim\tdebateTitle\tdebateInfo\tcorrectLabelW0orW1\tadversarial"
GAP = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
ROW = "d-1\tAnn told Eve that she won.\tshe\t18\tAnn\t0\tTRUE\tEve\t9\tFALSE\thttp://x"


def test_an_arct_example_has_reason_and_claim_as_text_and_warrants_as_choices(tmp_path):
    (tmp_path / "dev.tsv").write_text(f"{ARCT}\n7_A\tyes\tno\t1\tIt rains.\tStay in.\tWeather\tInfo\n")
    (example,) = read(f"arct:dev@{tmp_path}")
    assert (example.id, example.text, example.pair, example.label) == ("7_A", "It rains. Stay in.", None, 1)
    assert example.columns["choices"] == ("yes", "no")
    assert {example.columns[name] for name in ("warrant0", "warrant1", "reason", "claim", "debateTitle")} == {
        "yes", "no", "It rains.", "Stay in.", "Weather",
    }  # fmt: skip


def test_the_label_column_of_adversarial_sets_may_be_elsewhere(tmp_path):
    (tmp_path / "test-adv-negated.csv").write_text(f"{MOVED}\n7_A\tyes\tno\tIt rains.\tStay in.\tW\tI\t0\tTrue\n")
    (example,) = read(f"arct:test-adv-negated@{tmp_path}")
    assert (example.label, example.columns["choices"], example.columns["adversarial"]) == (0, ("yes", "no"), True)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("7_A\t \tno\t1\tR\tC\tT\tI", r"the warrant0 \(column 'warrant0'\) is empty"),
        (
            "7_A\tyes\tno\t2\tR\tC\tT\tI",
            r"the label \(column 'correctLabelW0orW1'\) is '2', but warrant0 or warrant1 is",
        ),
    ],
)
def test_the_error_for_a_malformed_arct_row_has_its_problem(tmp_path, row, problem):
    (tmp_path / "dev.tsv").write_text(f"{ARCT}\n{row}\n")
    with pytest.raises(InputError, match=rf"dev\.tsv, line 2: {problem}"):
        read(f"arct:dev@{tmp_path}")


def test_gap_columns_have_types(tmp_path):
    (tmp_path / "gap-validation.tsv").write_text(f"{GAP}\n{ROW}\n")
    (example,) = read(f"gap:validation@{tmp_path}")
    assert (example.id, example.text, example.label) == ("d-1", "Ann told Eve that she won.", None)
    assert dict(example.columns) == {
        "Pronoun": "she", "Pronoun-offset": 18, "A": "Ann", "A-offset": 0, "A-coref": True, "B": "Eve", "B-offset": 9,
        "B-coref": False, "URL": "http://x",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("\t18\t", "\tx\t", "the column 'Pronoun-offset' is 'x', but an integer is expected"),
        ("\t18\t", "\t17\t", r"the text has ' sh' at offset 17, not 'she' \(column 'Pronoun'\)"),
        ("TRUE", "yes", "the column 'A-coref' is 'yes', but TRUE or FALSE is expected"),
    ],
)
def test_the_error_for_a_malformed_gap_row_has_its_problem(tmp_path, old, new, problem):
    (tmp_path / "a.tsv").write_text(f"{GAP}\n{ROW.replace(old, new)}\n")
    with pytest.raises(InputError, match=rf"a\.tsv, line 2: {problem}"):
        read(f"gap@{tmp_path}/a.tsv")


def test_the_sample_is_from_gap():
    examples = read("sample")
    assert len(examples) == 100
    assert all(each.text[each.columns["B-offset"] :].startswith(each.columns["B"]) for each in examples)


@real
@pytest.mark.parametrize(
    ("source", "count"),
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
def test_real_data_are_read_completely(source, count):
    examples = read(source.format(DATA))
    assert len(examples) == count == len({example.id for example in examples})


@real
def test_large_real_data_are_read_in_seconds():
    """In a new process, because the shape checks of these tests take most of the time."""
    code = "import sys, headscope; print(*(len(headscope.read(source)) for source in sys.argv[1:]))"
    sources = (f"glue:sst-2:train@{DATA / 'glue'}", DATA / "treebank" / "en_ewt-train.conllu")
    done = subprocess.run([sys.executable, "-c", code, *sources], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["67349", "12544"], done.stderr


@real
def test_the_labels_of_adversarial_sets_are_balanced():
    for split in ("train", "dev", "test"):
        labels = [example.label for example in read(f"arct:{split}-adv-negated@{DATA / 'arct'}")]
        assert labels.count(0) == labels.count(1)


@real
def test_heads_and_mentions_of_gum_are_within_their_sentences():
    for example in read(DATA / "treebank" / "en_gum-dev.conllu"):
        length = len(example.words)
        assert example.columns["heads"].count(-1) == 1
        assert all(-1 <= head < length for head in example.columns["heads"])
        assert all(0 <= start <= end < length and kind for start, end, _, kind in example.columns["mentions"])


@real
def test_every_non_empty_line_of_real_articles_is_an_example():
    path = DATA / "text" / "valid.txt"
    assert len(read(path)) == sum(bool(line.strip()) for line in path.read_text(encoding="utf-8").split("\n"))

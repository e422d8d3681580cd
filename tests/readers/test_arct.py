"""The reader of ARCT."""

import pytest

from headscope.core.errors import InputError
from headscope.data.reading.read import read

ARCT = "#id\twarrant0\twarrant1\tcorrectLabelW0orW1\treason\tclaim\tdebateTitle\tdebateInfo"
MOVED = "#id\twarrant0\twarrant1\treason\tclaim\tdebateTitle\tdebateInfo\tcorrectLabelW0orW1\tadversarial"


def test_an_arct_example_has_reason_and_claim_as_text_and_warrants_as_choices(tmp_path):
    (tmp_path / "dev.tsv").write_text(f"{ARCT}\n7_A\tyes\tno\t1\tIt rains.\tStay in.\tWeather\tInfo\n")
    (example,) = read(f"arct:dev@{tmp_path}")
    assert (example.id, example.text, example.pair, example.label) == ("7_A", "It rains. Stay in.", None, 1)
    assert example.columns["choices"] == ("yes", "no")
    assert {example.columns[name] for name in ("warrant0", "warrant1", "reason", "claim", "debateTitle")} == {
        "yes",
        "no",
        "It rains.",
        "Stay in.",
        "Weather",
    }


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


def test_the_original_splits_come_with_the_package():
    counts = [len(read(f"arct:{split}")) for split in ("train", "dev", "test")]
    assert counts == [1210, 316, 444]
    assert read("arct:dev")[0].columns["choices"] == (
        "the excuse is sometimes warranted",
        "the excuse is rarely warranted",
    )


def test_splits_that_are_not_in_the_package_need_a_path():
    with pytest.raises(InputError, match="holds the splits train, dev and test of ARCT, but got 'dev-adv-negated'"):
        read("arct:dev-adv-negated")
    with pytest.raises(InputError, match=r"'arct:dev@' does not say where the data are"):
        read("arct:dev@")


def test_an_empty_name_of_the_text_reads_choices_alone(tmp_path):
    alone = read("arct:dev", text="")[0]
    assert (alone.text, len(alone.columns["choices"])) == ("", 2)
    assert read("arct:dev", text="claim")[0].text == "Police is too willing to use force"
    (tmp_path / "plain.csv").write_text("a,label\nx,1\n")
    with pytest.raises(InputError, match="text='' reads choices without a text before them, but there are no choices"):
        read(tmp_path / "plain.csv", text="")

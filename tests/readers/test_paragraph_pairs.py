"""Pairs of consecutive paragraphs, of plain text and of WikiText."""

import pytest

from headscope.core.errors import DataWarning, InputError
from headscope.data.reading.read import read
from headscope.readers.paragraph_pairs import undo_wikitext
from tests.readers.shared import DATA, real

WIKITEXT = """
 = First title =

 One , two .
 Three @-@ four .

 = = Section = =

 Five .
 <unk> <unk> six .
 Seven .
 = Second title =
 Eight .
 Nine .
"""


@pytest.fixture
def wikitext(tmp_path):
    (tmp_path / "wiki.txt").write_text(WIKITEXT, encoding="utf-8")
    return tmp_path / "wiki.txt"


def pairs(source):
    return [(example.text, example.pair) for example in read(source)]


def test_paragraphs_of_plain_text_are_separated_by_empty_lines(tmp_path):
    (tmp_path / "novel.txt").write_text("One\ntwo.\n\nThree.\n\n\nFour.\n", encoding="utf-8")
    assert pairs(f"paragraph_pairs@{tmp_path / 'novel.txt'}") == [("One two.", "Three."), ("Three.", "Four.")]
    assert pairs(f"paragraph_pairs:overlap=false@{tmp_path / 'novel.txt'}") == [("One two.", "Three.")]


def test_pairs_of_wikitext_stay_within_an_article_and_beside_one_another(wikitext):
    examples = read(f"paragraph_pairs:format=wikitext@{wikitext}")
    assert [(example.text, example.pair) for example in examples] == [
        ("One, two.", "Three-four."),
        ("Three-four.", "Five."),
        ("Eight.", "Nine."),
    ]
    assert examples[0].columns["document"] != examples[2].columns["document"]
    assert [example.id for example in examples] == ["wiki-4", "wiki-5", "wiki-13"]


def test_a_folder_is_read_file_by_file(wikitext):
    (wikitext.parent / "other.txt").write_text("Ten .\nEleven .\n", encoding="utf-8")
    assert len(pairs(f"paragraph_pairs:format=wikitext@{wikitext.parent}")) == 4
    (wikitext.parent / "empty").mkdir()
    with pytest.raises(InputError, match="has no .txt file. It holds: nothing"):
        read(f"paragraph_pairs@{wikitext.parent / 'empty'}")


def test_an_unreadable_line_is_reported_and_ends_its_run(tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"One.\n\n\xff\n\nTwo.\n\nThree.\n")
    with pytest.raises(InputError, match="line 3: byte 1 of the line, 0xFF, is not UTF-8"):
        read(f"paragraph_pairs@{tmp_path / 'bad.txt'}")
    with pytest.warns(DataWarning, match="kipped 1 of 2"):
        assert len(read(f"paragraph_pairs@{tmp_path / 'bad.txt'}", malformed="skip")) == 1


@pytest.mark.parametrize(
    ("spaced", "plain"),
    [
        ("It grew to 60 cm ( 24 in ) .", "It grew to 60 cm (24 in)."),
        ("It 's 1 @,@ 000 @.@ 5 % .", "It's 1,000.5%."),
        ('He said " Go ! " and went .', 'He said "Go!" and went.'),
        ("A <unk> of £ 5 .", "A [UNK] of £5."),
    ],
)
def test_spaces_and_marks_of_wikitext_are_undone(spaced, plain):
    assert undo_wikitext(spaced) == plain


@real
def test_the_articles_here_give_a_thousand_pairs():
    examples = read(f"paragraph_pairs:format=wikitext@{DATA / 'text'}")
    assert len(examples) >= 1000
    assert not any("@-@" in example.text or example.text.startswith("=") for example in examples)

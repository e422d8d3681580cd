"""The reader of CoNLL-2012 files."""

import pytest

from headscope.core.errors import DataWarning, InputError
from headscope.data.reading.read import read

# document, part, number, word, tag, parse, lemma, frameset, sense, speaker, entity, coreference
WORDS = """\
nw/a 0 0 The DT (TOP(S(NP(NP* - - - Ann * (3
nw/a 0 1 owner NN *) - - - Ann * -
nw/a 0 2 of IN (PP* - - - Ann * -
nw/a 0 3 her PRP$ (NP(NP* - - - Ann * (4|(7)
nw/a 0 4 friend NN * - - - Ann * -
nw/a 0 5 's POS *) - - - Ann * 4)
nw/a 0 6 house NN *))) - - - Ann * 3)
nw/a 0 7 left VBD (VP*))) leave 01 1 Ann * -
""".splitlines()


def write(tmp_path, text, name="a.v4_gold_conll"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def sentence(*lines):
    return "#begin document (nw/a); part 001\n" + "\n".join(lines) + "\n\n#end document\n"


def test_a_sentence_has_words_mentions_their_head_words_and_tags(tmp_path):
    (example,) = read(write(tmp_path, sentence(*WORDS)))
    assert example.id == "nw/a-1-1"
    assert example.text == "The owner of her friend 's house left"
    assert example.words == tuple(example.text.split())
    assert dict(example.columns) == {
        "mentions": ((0, 6, "3", ""), (3, 3, "7", ""), (3, 5, "4", "")),
        "mention_heads": (1, 3, 4),
        "tags": ("DET", "NOUN", "ADP", "PRON", "NOUN", "PART", "NOUN", "VERB"),
        "penn_tags": ("DT", "NN", "IN", "PRP$", "NN", "POS", "NN", "VBD"),
        "features": ("", "Number=Sing", "", "", "Number=Sing", "", "Number=Sing", ""),
        "speakers": ("Ann",) * 8,
        "document": "nw/a-1",
    }


def test_sentences_are_numbered_in_their_document_and_part(tmp_path):
    second = sentence("nw/b 2 0 Yes UH (TOP*) - - - - * -").replace("(nw/a); part 001", "(nw/b); part 002")
    words = "nw/a 0 0 Yes UH (TOP*) - - - - * -"
    examples = read(write(tmp_path, sentence(words, "", words) + second))
    assert [(example.id, example.columns["document"]) for example in examples] == [
        ("nw/a-1-1", "nw/a-1"),
        ("nw/a-1-2", "nw/a-1"),
        ("nw/b-2-1", "nw/b-2"),
    ]


def test_a_mention_of_its_own_kind_of_bracket_may_hold_one_of_the_same_entity(tmp_path):
    words = ["x 0 0 his PRP$ (TOP(NP* - - - - * (1|(1)", "x 0 1 self NN *)) - - - - * 1)"]
    (example,) = read(write(tmp_path, sentence(*words)))
    assert example.columns["mentions"] == ((0, 0, "1", ""), (0, 1, "1", ""))


def test_all_gold_files_of_a_folder_are_read(tmp_path):
    (tmp_path / "nw").mkdir()
    word = "{} 0 0 Yes UH (TOP*) - - - - * -"
    for name in ("a", "b"):
        text = sentence(word.format(name)).replace("nw/a", name)
        write(tmp_path / "nw", text, f"{name}.v4_gold_conll")
        write(tmp_path / "nw", text, f"{name}.v4_auto_conll")
    assert [example.id for example in read(f"conll2012@{tmp_path}")] == ["a-1-1", "b-1-1"]


def test_the_error_for_a_folder_without_files_lists_it(tmp_path):
    write(tmp_path, "x", "a.txt")
    with pytest.raises(InputError, match=r"no file that ends in gold_conll, auto_conll or \.conll\. It holds: a\.txt"):
        read(f"conll2012@{tmp_path}")


ONE = "x 0 0 he PRP (TOP*) - - - - * "
MALFORMED = {
    "line 2: it has 11 columns, but a word of CoNLL-2012 has at least 12": ONE,
    "line 2: the word's number is '1', but 0 is expected": ONE.replace("0 0", "0 1") + "-",
    "line 2: the coreference '3' cannot be read": ONE + "3",
    "line 2: the mention '3' is closed here, but it is not open": ONE + "3)",
    "line 2: the mention '3' is open at the end of the sentence": ONE + "(3",
    r"line 2: the part '\(TOP' of the parse cannot be read": ONE.replace("*)", "", 1) + "-",
    r"line 2: the part '\*\)' of the parse closes a bracket that is not open": ONE.replace("(TOP*)", "*)") + "-",
    r"line 2: the bracket \(TOP of the parse is not closed": ONE.replace("(TOP*)", "(TOP*") + "-",
}


@pytest.mark.parametrize(("problem", "line"), MALFORMED.items(), ids=[name[8:40] for name in MALFORMED])
def test_the_error_for_a_malformed_sentence_has_its_line_and_it_can_be_skipped(tmp_path, problem, line):
    path = write(tmp_path, sentence(line, "", ONE + "-"))
    with pytest.raises(InputError, match=problem):
        read(path)
    with pytest.warns(DataWarning, match="skipped 1 of 2 rows"):
        assert len(read(path, malformed="skip")) == 1


def test_the_error_for_a_malformed_sentence_in_a_folder_names_its_file(tmp_path):
    write(tmp_path, sentence(ONE + "-"), "a.v4_gold_conll")
    write(tmp_path, sentence(ONE + "(3"), "b.v4_gold_conll")
    with pytest.raises(InputError, match=r"line 2: .* is open at the end of the sentence \(b\.v4_gold_conll\)"):
        read(f"conll2012@{tmp_path}")

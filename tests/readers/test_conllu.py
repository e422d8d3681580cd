"""CoNLL-U: words, tags, heads, relations and mentions."""

import pytest

from headscope.core.errors import DataWarning, InputError
from headscope.data.reading.read import read

SENTENCE = """\
# newdoc id = d
# global.Entity = GRP-etype-infstat
# sent_id = d-1
# text = Don't leave it.
1-2	Don't	_	_	_	_	_	_	_	_
1	Do	do	AUX	VB	Mood=Imp	3	aux	_	_
2	n't	not	PART	RB	_	3	advmod	_	_
3	leave	leave	VERB	VB	VerbForm=Inf	0	root	_	Entity=(1-event-new
3.1	gone	go	VERB	_	_	_	_	_	_
4	it	it	PRON	PRP	Case=Acc	3	obj	_	SpaceAfter=No|Entity=(2-object-new)1)
5	.	.	PUNCT	.	_	3	punct	_	_

"""


def write(tmp_path, text):
    path = tmp_path / "a.conllu"
    path.write_text(text, encoding="utf-8")
    return path


def word(number, form="word", head="0", misc="_", tag="NOUN"):
    return f"{number}\t{form}\t{form}\t{tag}\t_\t_\t{head}\tdep\t_\t{misc}\n"


def test_a_sentence_has_words_tags_heads_relations_and_mentions(tmp_path):
    (example,) = read(write(tmp_path, SENTENCE))
    assert (example.id, example.text) == ("d-1", "Don't leave it.")
    assert example.words == ("Do", "n't", "leave", "it", ".")
    assert dict(example.columns) == {
        "lemmas": ("do", "not", "leave", "it", "."),
        "features": ("Mood=Imp", "", "VerbForm=Inf", "Case=Acc", ""),
        "tags": ("AUX", "PART", "VERB", "PRON", "PUNCT"),
        "heads": (2, 2, -1, 2, 2),
        "relations": ("aux", "advmod", "root", "obj", "punct"),
        "mentions": ((2, 3, "1", "event"), (3, 3, "2", "object")),
        "document": "d",
    }


def test_a_document_without_an_id_has_its_number(tmp_path):
    text = "# newdoc id = a\n" + word(1) + "\n" + word(1) + "\n# newdoc\n" + word(1)
    assert [example.columns["document"] for example in read(write(tmp_path, text))] == ["a", "a", "2"]


def test_blank_columns_are_left_out(tmp_path):
    text = "1\tHi\t_\t_\t_\t_\t_\t_\t_\t_\n2\tthere\t_\t_\t_\t_\t_\t_\t_\t_\n"
    (example,) = read(write(tmp_path, text))
    assert (example.id, example.text, example.words) == ("0", "Hi there", ("Hi", "there"))
    assert set(example.columns) == {"lemmas", "features"}


def test_a_sentence_without_mentions_in_a_file_with_mentions_has_an_empty_column(tmp_path):
    text = SENTENCE + "# sent_id = d-2\n" + word(1)
    assert read(write(tmp_path, text))[1].columns["mentions"] == ()


def test_a_mention_across_two_sentences_is_in_both(tmp_path):
    text = word(1) + word(2, head="1", misc="Entity=(e7-person-1") + "\n" + word(1, misc="Entity=e7)")
    first, second = read(write(tmp_path, text))
    assert first.columns["mentions"] == ((1, 1, "e7", "person"),)
    assert second.columns["mentions"] == ((0, 0, "e7", "person"),)


def test_the_fields_of_a_mention_are_named_by_global_entity(tmp_path):
    text = "# global.Entity = infstat-etype-eid\n" + word(1, misc="Entity=(new-person-e7)")
    assert read(write(tmp_path, text))[0].columns["mentions"] == ((0, 0, "e7", "person"),)


def test_the_parts_of_a_discontinuous_mention_are_one_entity(tmp_path):
    text = (
        word(1, misc="Entity=(e7[1/2]-person)") + word(2, head="1") + word(3, head="1", misc="Entity=(e7[2/2]-person)")
    )
    assert read(write(tmp_path, text))[0].columns["mentions"] == ((0, 0, "e7", "person"), (2, 2, "e7", "person"))


def test_a_mention_of_an_empty_node_is_left_out(tmp_path):
    empty = "1.1\t_\t_\t_\t_\t_\t_\t_\t_\tEntity=(e1-person)\n"
    text = word(1, misc="Entity=(e2-place)") + empty + word(2, head="1")
    assert read(write(tmp_path, text))[0].columns["mentions"] == ((0, 0, "e2", "place"),)


MALFORMED = {
    "line 2: it has 9 columns, but a word of CoNLL-U has 10": word(1) + word(2, head="1").replace("\tdep", ""),
    "line 2: the head of word 2 is '7', but the words are 1 to 2 \\(0 is the root\\)": word(1) + word(2, head="7"),
    "line 2: the head of word 2 is 'x', but the words are 1 to 2": word(1) + word(2, head="x"),
    "line 2: word 2 is its own head": word(1) + word(2, head="2"),
    "line 2: the word's number is '3', but 2 is expected": word(1) + word(3, head="1"),
    "line 1: the mention 'e7' is closed here, but it is not open": word(1, misc="Entity=e7)"),
    "line 1: the brackets of Entity=\\(\\(a cannot be parsed": word(1, misc="Entity=((a"),
    "line 1: the mention 'e7' is open at the end of the document": word(1, misc="Entity=(e7-person"),
    "line 1: the multiword token 1-2 has Entity=": word("1-2", misc="Entity=(e7)") + word(1) + word(2, head="1"),
    "line 1: the sentence has no words": "1-2\tx\t_\t_\t_\t_\t_\t_\t_\t_\n",
}


@pytest.mark.parametrize(
    ("problem", "text"), MALFORMED.items(), ids=[name.partition(": ")[2][:40] for name in MALFORMED]
)
def test_the_error_for_a_malformed_sentence_has_its_line_and_it_can_be_skipped(tmp_path, problem, text):
    path = write(tmp_path, text + "\n# newdoc\n# sent_id = s\n" + word(1))
    with pytest.raises(InputError, match=rf"a\.conllu, {problem}"):
        read(path)
    with pytest.warns(DataWarning, match=rf"skipped 1 of 2 rows of .*a\.conllu: {problem}"):
        assert [example.id for example in read(path, malformed="skip")] == ["s"]

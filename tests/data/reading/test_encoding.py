"""Text files in other encodings than UTF-8."""

import codecs

import pytest

from headscope.core.errors import InputError
from headscope.data.reading.read import read

ROWS = {
    "csv": "text,label\nSchön.,1\nÇa va…,0\n",
    "tsv": "text\tlabel\nSchön.\t1\nÇa va…\t0\n",
    "jsonl": '{"text": "Schön.", "label": 1}\n{"text": "Ça va…", "label": 0}\n',
    "json": '[{"text": "Schön.", "label": 1},\n {"text": "Ça va…", "label": 0}]',
    "txt": "Schön.\nÇa va…\n",
}


@pytest.mark.parametrize("ending", ROWS)
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-32", "UTF8", "utf-8-sig"])
def test_a_file_is_read_in_the_encoding_that_is_named(tmp_path, ending, encoding):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(ROWS[ending].encode(encoding))
    assert [example.text for example in read(path, encoding=encoding)] == ["Schön.", "Ça va…"]


@pytest.mark.parametrize("ending", ROWS)
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(codecs.BOM_UTF8 + ROWS[ending].encode())
    assert [example.text for example in read(path)] == ["Schön.", "Ça va…"]


def test_the_encoding_is_a_parameter_of_the_format_too(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("text;label\nSchön.;1\n".encode("latin-1"))
    (example,) = read(f"csv:delimiter=semicolon,encoding=latin-1@{path}")
    assert (example.text, example.label) == ("Schön.", 1)


def test_what_does_not_fit_the_encoding_names_line_byte_and_option(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text\nFine.\nA \x81.\n")
    with pytest.raises(
        InputError, match=r"a.csv, line 3: byte 3 of the line, 0x81, is not CP1252; name the encoding .*"
    ):
        read(path, encoding="cp1252")
    path.write_bytes(b"\xff\xfeabc")
    with pytest.raises(InputError, match=r"a.csv is not UTF-16: .*\. Give another encoding\."):
        read(path, encoding="utf-16")
    (tmp_path / "a.json").write_bytes(b'[{"text": "A \x81."}]')
    with pytest.raises(InputError, match=r"a.json, line 1: byte 14 of the line, 0x81, is not UTF-8; name the encoding"):
        read(tmp_path / "a.json")


def test_an_encoding_that_helps_nothing_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("text\nFine.\n")
    with pytest.raises(InputError) as error:
        read(tmp_path / "a.csv", encoding="klingon")
    assert str(error.value) == "encoding='klingon' is not known. Common ones are utf-8, utf-16, latin-1 and cp1252."
    with pytest.raises(InputError, match="encoding='base64' is not known"):
        read(tmp_path / "a.csv", encoding="base64")
    with pytest.raises(InputError, match="encoding='latin-1' is that of a file, but the texts are in memory"):
        read(["One."], encoding="latin-1")
    with pytest.raises(InputError, match="encoding='latin-1' was given, but the format 'parquet' has its own"):
        read("parquet@a.parquet", encoding="latin-1")

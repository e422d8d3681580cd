"""Message catalogs, against Python's own reader of compiled ones."""

import gettext
import struct

import pytest

from headscope.core.errors import InputError
from headscope.data.reading.read import read

HEADER = "Content-Type: text/plain; charset=UTF-8\\n"
PO = f'''# A comment.
msgid ""
msgstr ""
"{HEADER}"

#: window.c:12
msgid "Open a file"
msgstr "Ouvrir un fichier"

#, c-format
msgctxt "menu"
msgid ""
"Save \\"all\\"\\n"
"files"
msgstr "Tout "
"enregistrer"

msgid "%d tab"
msgid_plural "%d tabs"
msgstr[0] "%d onglet"
msgstr[1] "%d onglets"

#, fuzzy
#| msgid "Old"
msgid "New tab"
msgstr "Vieux"

msgid "Not translated"
msgstr ""
#~ msgid "Obsolete"
#~ msgstr "Obsolète"
'''
PAIRS = [("Open a file", "Ouvrir un fichier"), ('Save "all"\nfiles', "Tout enregistrer"), ("%d tab", "%d onglet")]


def compile_catalogue(messages, *, order="<", charset="utf-8"):
    """A .mo file, as its documentation describes it."""
    rows = sorted({"": f"Content-Type: text/plain; charset={charset}\n", **messages}.items())
    texts = [[text.encode(charset) for text in column] for column in zip(*rows, strict=True)]
    count, start = len(rows), 28
    strings, tables, offset = b"", [], start + 16 * count
    for column in texts:
        for text in column:
            tables.append(struct.pack(f"{order}2I", len(text), offset + len(strings)))
            strings += text + b"\0"
    head = struct.pack(f"{order}7I", 0x950412DE, 0, count, start, start + 8 * count, 0, 0)
    return head + b"".join(tables) + strings


def test_a_catalogue_gives_its_translated_messages(tmp_path):
    (tmp_path / "fr.po").write_text(PO, encoding="utf-8")
    examples = read(tmp_path / "fr.po")
    assert [(example.text, example.pair) for example in examples] == PAIRS
    assert [example.columns["context"] for example in examples] == ["", "menu", ""]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1"])
def test_a_compiled_catalogue_gives_what_programs_read(tmp_path, order, charset):
    messages = {"Open": "Ouvrir", "menu\x04Close": "Fermé", "%d tab\0%d tabs": "%d onglet\0%d onglets", "Quit": " "}
    (tmp_path / "fr.mo").write_bytes(compile_catalogue(messages, order=order, charset=charset))
    with (tmp_path / "fr.mo").open("rb") as file:
        known = gettext.GNUTranslations(file)
    examples = read(tmp_path / "fr.mo")
    assert [(example.text, example.pair) for example in examples] == [
        ("%d tab", known.ngettext("%d tab", "%d tabs", 1)),
        ("Open", known.gettext("Open")),
        ("Close", known.pgettext("menu", "Close")),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [('msgstr "open', "has no text in quotation marks"), ("msgid: x", "is neither a comment nor a part of a message")],
)
def test_a_line_that_is_no_message_is_named(tmp_path, line, problem):
    (tmp_path / "fr.po").write_text(f'msgid "One"\nmsgstr "Un"\n\nmsgid "Two"\n{line}\n')
    with pytest.raises(InputError, match=rf"fr.po, line 5: .*{problem}"):
        read(tmp_path / "fr.po")
    with pytest.warns(match="1"):
        assert [example.pair for example in read(tmp_path / "fr.po", malformed="skip")] == ["Un"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no catalogue at all", "it does not begin as one"),
        (compile_catalogue({"One": "Un"})[:-4], "it ends too early"),
    ],
)
def test_a_broken_compiled_catalogue_is_refused(tmp_path, content, reason):
    (tmp_path / "fr.mo").write_bytes(content)
    with pytest.raises(InputError, match=rf"fr.mo is no compiled catalogue of gettext: {reason}"):
        read(tmp_path / "fr.mo")

"""What a Document may hold."""

import pandas as pd
import pytest

from headscope.core.document import Document, Picture, Section, Table
from headscope.core.errors import InputError
from tests.reporting.data import accuracy, line


@pytest.mark.parametrize("name", ["", "../accuracy", "a b", "-a", "ä", 'a"b'])
def test_an_invalid_file_name_is_refused(name):
    with pytest.raises(InputError, match="A table's name becomes the name of its files, but got .* such as"):
        Table(name, "x", accuracy(), 1)
    with pytest.raises(InputError, match="A picture's name"):
        Picture(name, "x", line(), 1)


def test_an_empty_table_is_refused():
    with pytest.raises(InputError, match="'x' has 0 rows and 1 columns: there is nothing to print. Leave it out"):
        Table("x", "x", pd.DataFrame({"a": []}), 0)
    with pytest.raises(InputError, match="The table theirs of 'x' has 0 rows"):
        Table("x", "x", accuracy(), 1, theirs=pd.DataFrame())


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(InputError, match="'x' has two columns 'a'. Rename one of them"):
        Table("x", "x", pd.DataFrame([[1, 2]], columns=["a", "a"]), 1)


def test_two_tables_of_one_name_are_refused_but_not_a_table_and_a_picture():
    table, picture = Table("x", "x", accuracy(), 1), Picture("x", "x", line(), 1)
    Document("t", "", [Section("s", [table, picture])])
    with pytest.raises(InputError, match="Two tables of the document 't' are called 'x'.* Rename one of them"):
        Document("t", "", [Section("s", [table]), Section("s", [table])])

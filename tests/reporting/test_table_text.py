"""How numbers are printed, in the page and in LaTeX."""

import numpy as np
import pandas as pd
import pytest

from headscope.core.document import Table
from headscope.reporting.html_page import table_to_html
from headscope.reporting.latex_table import table_to_latex
from headscope.reporting.markup import escape_latex, to_html
from headscope.reporting.table_text import format_table
from tests.reporting.data import accuracy, published


def columns(frame, **more):
    return {each.name: each for each in format_table(Table("x", "x", frame, 1, **more))[0]}


def test_an_interval_is_printed_in_one_cell():
    formatted = columns(accuracy())
    assert list(formatted) == ["task", "raw", "effective", "n"]
    assert (formatted["raw"].cells[0], formatted["raw"].ends[0]) == ("0.664", "[0.606, 0.717]")
    assert formatted["effective"].cells[1] == "–"
    assert formatted["task"].header
    assert not formatted["task"].number


def test_an_interval_end_without_its_value_is_a_column():
    assert list(columns(pd.DataFrame({"task": ["a"], "x_low": [1.0], "y": [2.0]}))) == ["task", "x_low", "y"]


def test_small_numbers_keep_two_significant_digits():
    frame = pd.DataFrame({"metric": ["perplexity", "accuracy", "p", "loss"], "value": [31.17, 0.8134, 3e-9, 0.0]})
    assert columns(frame)["value"].cells == ["31.2", "0.813", "3e−09", "0.0"]


def test_exact_and_zero_values_keep_the_decimals_of_their_column():
    frame = pd.DataFrame({"task": ["a", "b"], "x": [45.1, 0.8]})
    assert columns(frame)["x"].cells == ["45.1", "0.8"]
    frame = pd.DataFrame({"task": ["a", "b"], "x": [45.1, 0.0], "x_low": [41.0, 0.0], "x_high": [49.0, 0.25]})
    assert columns(frame)["x"].ends == ["[41.0, 49.0]", "[0.0, 0.2]"]


def test_sentences_are_broken_into_lines():
    table = Table("t", "T.", pd.DataFrame({"claim": ["Short."], "words": ["a sentence " * 6]}), 1)
    assert '<td class="long">' in table_to_html(table, "Table 1")
    assert table_to_latex(table).count("\\linewidth}") == 2


def test_negligible_values_with_an_interval_are_0():
    frame = pd.DataFrame({"task": ["a", "b"], "x": [30.4, 2e-186], "x_low": [28.6, 0.0], "x_high": [33.0, 1e-90]})
    formatted = columns(frame)["x"]
    assert (formatted.cells, formatted.ends) == (["30.4", "0.0"], ["[28.6, 33.0]", "[0.0, 0.0]"])


def test_integers_have_no_decimals_and_negative_numbers_a_minus():
    frame = pd.DataFrame({"a": ["x", "y"], "n": [12345, 7], "d": [-0.25, np.inf]})
    formatted = columns(frame)
    assert formatted["n"].cells == ["12,345", "7"]
    assert formatted["d"].cells == ["−0.250", "∞"]


def test_layers_in_the_index_are_labels():
    frame = pd.DataFrame({"raw": [1.5, 2.5]}, index=pd.Index([0, 11], name="layer"))
    formatted = columns(frame)
    assert formatted["layer"].cells == ["0", "11"]
    assert formatted["layer"].header


def test_a_papers_numbers_are_printed_beside_ours():
    formatted = columns(accuracy(), theirs=published())
    assert list(formatted) == ["task", "raw", "raw, paper", "effective", "n"]
    assert formatted["raw, paper"].cells == ["0.671", "–", "0.871"]
    assert formatted["raw, paper"].theirs


@pytest.mark.parametrize(
    "theirs",
    [
        pd.DataFrame({"task": ["RTE", "WNLI"], "raw": [0.6, 0.5]}),  # a row that is none of ours
        pd.DataFrame({"task": ["RTE"], "norm": [0.6]}),  # a column that is none of ours
        pd.DataFrame({"task": ["RTE", "RTE"], "raw": [0.6, 0.5]}),  # which row of ours?
    ],
)
def test_a_papers_numbers_are_printed_below_where_they_do_not_fit(theirs):
    ours, below = format_table(Table("x", "x", accuracy(), 1, theirs=theirs))
    assert [each.name for each in ours] == ["task", "raw", "effective", "n"]
    assert all(each.theirs for each in below)
    assert below[0].cells == list(theirs["task"])


def test_latex_escapes_every_special_character():
    assert escape_latex("a_b & 5 % $x$ #1 {y} \\z ~ ^ < > | − ×") == (
        r"a\_b \& 5 \% \$x\$ \#1 \{y\} \textbackslash{}z \textasciitilde{} \textasciicircum{} $<$ $>$ \textbar{} $-$ "
        r"$\times$"
    )


def test_a_latex_table_is_booktabs_with_as_many_cells_in_every_row():
    frame = pd.DataFrame({"a_b": ["50 %", "x & y"], "d": [-0.5, 0.25], "d_low": [-0.6, 0.2], "d_high": [-0.4, 0.3]})
    text = table_to_latex(Table("some-table", "With `a_b` and **5 %**", frame, 1200, reduced="1 of 2"))
    caption = r"\caption{With \texttt{a\_b} and \textbf{5 \%}. n = 1,200. \textbf{Reduced:} 1 of 2.}"
    assert caption in text
    assert r"\label{tab:some-table}" in text
    assert r"50 \% & $-$0.500 {[}$-$0.600, $-$0.400{]} \\" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.replace(r"\&", "").count("&") for line in rows} == {1}
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


def test_latex_has_both_tables_where_theirs_do_not_fit():
    text = table_to_latex(Table("x", "x", accuracy(), 1, theirs=pd.DataFrame({"size": ["s"], "loss": [1.0]})))
    assert text.count(r"\begin{tabular}") == 2
    assert "Printed in the paper:" in text


def test_wide_latex_tables_have_intervals_below_their_values():
    wide = {f"column {at}": [0.123] for at in range(9)}
    ends = {f"{name}{end}": [0.1] for name in wide for end in ("_low", "_high")}
    text = table_to_latex(Table("x", "x", pd.DataFrame({"task": ["RTE"], **wide, **ends}), 1))
    assert text.count(r"\shortstack[r]{0.123\\{\scriptsize {[}0.100, 0.100{]}}}") == 9


def test_latex_tables_of_sentences_continue_over_pages():
    sentence = "A sentence that is longer than forty letters, as those of verdicts are."
    text = table_to_latex(Table("x", "x", pd.DataFrame({"claim": ["one", "two"], "in words": [sentence, sentence]}), 1))
    assert [text.count(part) for part in (r"\begin{longtable}", r"\endfirsthead", r"\endhead")] == [1, 1, 1]
    assert r"\begin{table}" not in text
    assert r"\resizebox" not in text


def test_integers_may_be_missing():
    (columns,) = format_table(
        Table("x", "x", pd.DataFrame({"task": ["a", "b"], "n": pd.array([2490, None], "Int64")}), 1)
    )
    assert [list(each.cells) for each in columns] == [["a", "b"], ["2,490", "–"]]


def test_infinite_numbers_do_not_change_the_decimals():
    frame = pd.DataFrame({"x": [float("inf"), 0.5], "x_low": [0.1, 0.4], "x_high": [0.3, 0.6]}, index=["a", "b"])
    assert columns(frame)["x"].cells == ["∞", "0.500"]
    assert r"$\infty$" in table_to_latex(Table("x", "x", frame, 1))
    gone = pd.DataFrame(
        {"x": pd.array([None, None], "Int64"), "x_low": [1.0, 2.0], "x_high": [2.0, 3.0]}, index=["a", "b"]
    )
    assert columns(gone)["x"].cells == ["–", "–"]


def test_sentences_beside_many_numbers_stay_in_one_table():
    numbers = {f"column {at}": [0.5] for at in range(12)}
    text = table_to_latex(
        Table(
            "x", "x", pd.DataFrame({"claim": ["A sentence that is longer than forty letters, surely."], **numbers}), 1
        )
    )
    assert r"\resizebox" in text
    assert text.count(r"p{") == 1
    assert r"lens\_agreement\_rank" in table_to_latex(
        Table("x", "x", pd.DataFrame({"a": ["b"], "lens_agreement_rank": [1.0]}), 1)
    )


def test_a_papers_numbers_are_printed_below_where_rows_differ():
    ours = pd.DataFrame({"task": ["a"], "batch": [8], "ratio": [1.5]}).set_index(["task", "batch"])
    theirs = pd.DataFrame({"task": ["a"], "ratio": [2.0]}).set_index("task")
    assert len(format_table(Table("x", "x", ours, 1, theirs=theirs))) == 2


def test_html_within_markup_is_escaped():
    assert to_html("`<b>` **<i>** <u>") == "<code>&lt;b&gt;</code> <strong>&lt;i&gt;</strong> &lt;u&gt;"

"""Documents as Markdown."""

import pandas as pd
from matplotlib.figure import Figure

from headscope.core.document import Document, Paragraph, Picture, Section, Table
from headscope.reporting.markdown import table_to_markdown, to_markdown

FRAME = pd.DataFrame({"task": ["RTE"], "x": [0.5], "x_low": [0.4], "x_high": [0.6]}).set_index("task")


def document():
    parts = [
        Paragraph("With `code`."),
        Table("table_2", "Shares", FRAME, 12, number=2),
        Picture("curve", "A curve.", Figure(), 3),
    ]
    return Document("Title", "Lead.", [Section("Part", parts)], ["sun2021"])


def test_a_document_has_headings_captions_and_references():
    text = to_markdown(document(), {"curve": "pictures/curve.svg"})
    assert text.startswith(
        "# Title\n\nLead.\n\n## Part\n\nWith `code`.\n\n**Table 2.** Shares. n = 12.\n\n| task | x |"
    )
    assert "**Figure 1.** A curve. n = 3.\n\n![A curve](pictures/curve.svg)\n" in text
    assert "## References\n\n- " in text
    assert "<em>" not in text


def test_a_part_of_a_larger_page_has_lower_headings_and_no_captions():
    text = to_markdown(document(), level=2, captions=False)
    assert text.startswith("## Title\n\nLead.\n\n### Part\n\nWith `code`.\n\n| task | x |\n|---|---|\n")
    assert "n = 12" not in text


def test_a_number_is_followed_by_its_interval():
    assert table_to_markdown(Table("x", "X.", FRAME, 1)).splitlines()[-1] == "| RTE | 0.500 [0.400, 0.600] |"


def test_a_papers_table_with_other_columns_follows_below():
    theirs = pd.DataFrame({"task": ["RTE"], "test": ["3K"]}).set_index("task")
    text = table_to_markdown(Table("x", "X.", FRAME, 1, theirs))
    assert text.endswith("Printed in the paper:\n\n| task | test |\n|---|---|\n| RTE | 3K |")


def test_bars_in_cells_are_escaped():
    frame = pd.DataFrame({"name": ["a"], "y": ["|w|"]}).set_index("name")
    assert table_to_markdown(Table("x", "X.", frame, 1)).endswith("| a | \\|w\\| |")

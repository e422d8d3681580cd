"""GAP's snippets as two passages."""

from headscope.data.bundled.gap import halve_at_sentence
from headscope.data.reading.read import read


def test_snippets_are_divided_between_two_sentences():
    examples = read("gap_halves:validation")
    assert len(examples) > 400
    assert all(example.pair and example.text[-1] in ".!?\"”')" for example in examples)
    assert "document" in examples[0].columns


def test_a_text_is_divided_as_near_to_its_middle_as_sentences_allow():
    assert halve_at_sentence("A b c. D. E f g h.") == ("A b c. D.", "E f g h.")
    assert halve_at_sentence("One sentence only.") == ("One sentence only.", "")

"""Real paragraphs that come with the package."""

from headscope.core.example import Example
from headscope.data.reading.read import read


def paragraphs() -> list[Example]:
    """A hundred snippets of Wikipedia with a pronoun and two names: every 20th row of GAP's development set.

    GAP (Webster et al., 2018) is Apache-2.0; its licence lies beside the data as GAP_LICENSE.

    >>> len(paragraphs()), paragraphs()[0].columns["Pronoun"]
    (100, 'her')
    """
    return read("sample")

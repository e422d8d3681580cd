"""Semantic links between words: two mentions of the same entity, beside the syntactic relations of a treebank."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

from headscope.core.example import Example
from headscope.data.coreference.mentions import list_mentions
from headscope.data.coreference.passages import join_sentences
from headscope.maps.word_pairs import WordPair

LINKS = {"pronoun": "pronoun – antecedent", "proper": "name – antecedent", "nominal": "noun – antecedent"}
"""Names of the links, by the kind of the later mention."""

SAME = "same word"
"""The link where both head words are equal: a head that finds a word again need not know that it is the same entity."""

WORDS = 100
"""Words of a passage: with subwords at most about 128 tokens."""


def link_mentions(examples: Sequence[Example], words: int = WORDS) -> list[Example]:
    """Return passages whose `word_pairs` are the head words of a mention and of the last one before it of its entity.

    Links between two equal words have a name of their own.

    >>> mentions = ((0, 0, "7", "person"), (2, 2, "7", "person"))
    >>> example = Example("0", "Ann said she won", words=("Ann", "said", "she", "won"), columns={"mentions": mentions})
    >>> link_mentions([example])[0].columns["word_pairs"]
    ((2, 0, 'pronoun – antecedent'),)
    """
    passages = [(passage, tuple(_list_links(passage))) for passage in join_sentences(examples, words)]
    return [
        replace(passage, columns=MappingProxyType({**passage.columns, "word_pairs": links}))
        for passage, links in passages
        if links
    ]


def _list_links(passage: Example) -> Iterator[WordPair]:
    """Yield each mention's head word, that of its antecedent, and the name of the link."""
    last, words = dict[str, int](), passage.words or ()
    for mention in sorted(list_mentions(passage), key=lambda mention: (mention.first, -mention.last)):
        if mention.head != last.get(mention.entity, mention.head):
            first, second = (words[at].lower() for at in (last[mention.entity], mention.head))
            yield mention.head, last[mention.entity], SAME if first == second else LINKS[mention.kind]
        last[mention.entity] = mention.head

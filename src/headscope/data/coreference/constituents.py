"""Constituents of a parse in brackets, and the head word of a span of words (Collins, 1999, for noun phrases)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from headscope.core.reader import Unreadable

BRACKET = re.compile(r"\(([^()*\s]+)|(\*)|(\))")

NOUN_HEADS = (
    ("right", "NN NNS NNP NNPS NX JJR PRP PRP$ WP WP$ EX NML"),
    ("left", "NP"),
    ("right", "$ ADJP PRN"),
    ("right", "CD"),
    ("right", "JJ JJS RB QP DT"),
)
"""Which child of a noun phrase holds its head: the first from the right or from the left, in this order."""

VERB_HEADS = (("left", "VBD VBN MD VBZ VB VBG VBP VP TO"),)
OTHER_NOUNS = frozenset(("POS", ",", ".", ":", "``", "''", "-LRB-", "-RRB-", "HYPH"))
"""Tags that are no head of a phrase: the possessive 's and punctuation."""


@dataclass
class Constituent:
    """A node of a parse: its label, its first and its last word, and its children; a word has its tag as label."""

    label: str
    first: int
    last: int = -1
    children: list["Constituent"] = field(default_factory=list)


def parse_brackets(bits: Sequence[str], tags: Sequence[str]) -> Constituent:
    """Return the tree of a sentence from one column of brackets per word, such as `(NP*`, `*` or `*)`.

    >>> tree = parse_brackets(["(TOP(S(NP*", "*)", "(VP*)))"], ["DT", "NN", "VBD"])
    >>> [(child.label, child.first, child.last) for child in tree.children[0].children[0].children]
    [('NP', 0, 1), ('VP', 2, 2)]
    """
    root = Constituent("", 0)
    path = [root]
    for word, (bit, tag) in enumerate(zip(bits, tags, strict=True)):
        if BRACKET.sub("", bit) or bit.count("*") != 1:
            raise Unreadable(f"the part '{bit}' of the parse cannot be read")
        for opened, leaf, _ in BRACKET.findall(bit):
            if opened or leaf:
                node = Constituent(opened or tag, word, word)
                path[-1].children.append(node)
                path += [node] if opened else []
                continue
            if len(path) == 1:
                raise Unreadable(f"the part '{bit}' of the parse closes a bracket that is not open")
            path.pop().last = word
    if len(path) > 1:
        raise Unreadable(f"the bracket ({path[-1].label} of the parse is not closed")
    root.last = len(bits) - 1
    return root


def find_head(tree: Constituent, first: int, last: int) -> int:
    """Return the head word of a span: of the smallest constituent with these words, or of the parts that make it up.

    >>> bits = ["(NP(NP*", "*)", "(PP*", "(NP*", "*)))"]
    >>> find_head(parse_brackets(bits, ["DT", "NN", "IN", "DT", "NN"]), 0, 4)
    1
    """
    node = tree
    while inside := [child for child in node.children if child.first <= first and last <= child.last]:
        node = inside[0]
    if (node.first, node.last) == (first, last):
        return _head_of(node)
    children = [child for child in node.children if first <= child.first and child.last <= last]
    return _head_of(Constituent("NP", first, last, children)) if children else last


def _head_of(node: Constituent) -> int:
    if not node.children:
        return node.first
    children = [child for child in node.children if child.label not in OTHER_NOUNS] or node.children
    rules = VERB_HEADS if node.label.startswith(("VP", "S")) else NOUN_HEADS
    for side, labels in rules:
        ordered = children if side == "left" else children[::-1]
        for child in ordered:
            if child.label.split("-")[0] in labels.split() or child.label in labels.split():
                return _head_of(child)
    return _head_of(children[-1])

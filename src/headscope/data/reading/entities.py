"""Parse the entity mentions of CoNLL-U, which `Entity=` marks by brackets (GUM, CorefUD)."""

import re
from dataclasses import dataclass, field

from headscope.core.reader import Unreadable

Mention = tuple[int, int, str, str]
"""First word, last word, entity, type."""

BRACKETS = re.compile(r"\(([^()]+)(\))?|([^()]+)\)")
FIELDS = (("eid", "GRP"), ("etype", "entity"))
"""Names of the fields for an entity's id and its type, as files use them."""


@dataclass
class EntityParser:
    """Parses the mentions of one document word by word.

    `(3-person-new` opens a mention, `3)` closes it, `(3-person-new)` does both. The comment `global.Entity` names the
    fields between the dashes. A mention across sentences is returned once for each sentence.

    >>> parser = EntityParser()
    >>> parser.parse("(3-person(4-place)", 0, 0), parser.parse("3)", 1, 1)
    ([(0, 0, '4', 'place')], [(0, 1, '3', 'person')])
    """

    order: tuple[str, ...] = ("eid", "etype")
    open: list[tuple[int, str, str]] = field(default_factory=list)

    def parse(self, brackets: str, first: int, last: int) -> list[Mention]:
        """Return the mentions that end here; new ones start at the word `first`, closed ones end at `last`."""
        if BRACKETS.sub("", brackets):
            raise Unreadable(f"the brackets of Entity={brackets} cannot be parsed")
        mentions = []
        for opened, closed_at_once, closed in BRACKETS.findall(brackets):
            entity, kind = self._fields(opened or closed)
            if opened:
                self.open.append((first, entity, kind))
            if closed_at_once or closed:
                start, entity, kind = self._close(entity)
                mentions.append((start, last, entity, kind))
        return [mention for mention in mentions if mention[0] <= mention[1]]  # an empty node is not a word

    def end_sentence(self, words: int) -> list[Mention]:
        """Return the mentions that are open at the end of a sentence; they continue at the next one's first word."""
        mentions = [(start, words - 1, entity, kind) for start, entity, kind in self.open if start < words]
        self.open = [(0, entity, kind) for _, entity, kind in self.open]
        return mentions

    def _fields(self, text: str) -> tuple[str, str]:
        values = dict(zip(self.order, text.split("-"), strict=False))
        entity, kind = (next((values.get(name, "") for name in names if name in self.order), "") for names in FIELDS)
        return (entity or text.split("-")[0]).partition("[")[0], kind  # e5[1/2] is the first part of e5

    def _close(self, entity: str) -> tuple[int, str, str]:
        for index in reversed(range(len(self.open))):
            if self.open[index][1] == entity:
                return self.open.pop(index)
        raise Unreadable(f"the mention '{entity}' is closed here, but it is not open")

"""Mentions of entities, from the brackets of `Entity=` in CoNLL-U (GUM, CorefUD)."""

import re
from dataclasses import dataclass, field

from headscope.core.reader import Unreadable

Mention = tuple[int, int, str, str]
"""First word, last word, entity, type."""

BRACKETS = re.compile(r"\(([^()]+)(\))?|([^()]+)\)")


@dataclass
class Entities:
    """The mentions that are open in one document, read word by word.

    `(3-person-new` opens a mention, `3)` closes it, `(3-person-new)` does both; what stands between the dashes is
    named by the comment `global.Entity`. A mention that goes on in the next sentence is one in each.

    >>> found = Entities()
    >>> found.read("(3-person(4-place)", 0, 0), found.read("3)", 1, 1)
    ([(0, 0, '4', 'place')], [(0, 1, '3', 'person')])
    """

    order: tuple[str, ...] = ("eid", "etype")
    open: list[tuple[int, str, str]] = field(default_factory=list)

    def read(self, brackets: str, first: int, last: int) -> list[Mention]:
        """The mentions that end here; `first` is where one would begin, `last` where one would end."""
        found = []
        if "".join(match[0] for match in BRACKETS.finditer(brackets)) != brackets:
            raise Unreadable(f"the brackets of Entity={brackets} cannot be read")
        for opened, at_once, closed in BRACKETS.findall(brackets):
            name, kind = self._named(opened or closed)
            if opened:
                self.open.append((first, name, kind))
            if at_once or closed:
                start, name, kind = self._close(name)
                found.append((start, last, name, kind))
        return [mention for mention in found if mention[0] <= mention[1]]  # an empty node is no word

    def cut(self, words: int) -> list[Mention]:
        """What is open at the end of a sentence of so many words; it goes on from the next one's first word."""
        found = [(start, words - 1, name, kind) for start, name, kind in self.open if start < words]
        self.open = [(0, name, kind) for _, name, kind in self.open]
        return found

    def _named(self, text: str) -> tuple[str, str]:
        parts = text.split("-")
        places = [next((self.order.index(name) for name in names if name in self.order), None) for names in NAMES]
        name, kind = (parts[place] if place is not None and place < len(parts) else "" for place in places)
        return (name or parts[0]).partition("[")[0], kind  # e5[1/2] is the first part of e5

    def _close(self, name: str) -> tuple[int, str, str]:
        for place in reversed(range(len(self.open))):
            if self.open[place][1] == name:
                return self.open.pop(place)
        raise Unreadable(f"the mention '{name}' closes here, but none is open")


NAMES = (("eid", "GRP"), ("etype", "entity"))
"""How files call an entity's id and its type."""

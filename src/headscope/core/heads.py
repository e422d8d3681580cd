"""Names of heads, and selections of them: `L3H7`, `L3H7+L0H1`, `L3`, `all-L3H7`, `cross.L3`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from headscope.core.errors import InputError
from headscope.core.prose import join_words
from headscope.core.trace import select_labels

GRAMMAR = (
    "Write L3H7 for a head, L3 for a layer and all for every head; join them with +, exclude heads with - as in "
    "all-L3H7 or L3-L3H7, and name a site before a dot as in cross.L3H7."
)
_TERM = re.compile(r"(?:(?P<site>\w[\w.]*)\.)?(?P<base>all|L\d+(?:H\d+)?)(?P<without>(?:-L\d+(?:H\d+)?)*)")


@dataclass(frozen=True)
class Label:
    """A layer, or one of its heads; None stands for all."""

    layer: int | None
    head: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Label":
        """Read `L3H7`, `L3` or `all`."""
        return cls(*map(int, re.findall(r"\d+", text))) if text != "all" else cls(None)

    def __str__(self) -> str:
        return "all" if self.layer is None else f"L{self.layer}" + ("" if self.head is None else f"H{self.head}")

    def covers(self, other: "Label") -> bool:
        """Whether the heads of `other` are a proper subset of these."""
        if self.layer is None:
            return other.layer is not None
        return self.layer == other.layer and self.head is None and other.head is not None

    def select(self, layer: int, heads: int) -> set[int]:
        """Return which of a layer's `heads` heads it names; raise InputError for a missing head."""
        if self.layer not in (None, layer):
            return set()
        return set(select_labels(range(heads), self.head, "head"))


@dataclass(frozen=True)
class HeadTerm:
    """One term of a selection: a head, a layer or all heads, at one site or any, minus exceptions."""

    text: str
    site: str | None
    base: Label
    without: tuple[Label, ...]

    @classmethod
    def parse(cls, text: str) -> "HeadTerm":
        """Read `cross.L3-L3H7`."""
        match = _TERM.fullmatch(text.strip())
        if match is None:
            raise InputError(f"Cannot read {text!r} as heads. {GRAMMAR}")
        base = Label.parse(match["base"])
        without = tuple(map(Label.parse, match["without"].split("-")[1:]))
        for label in without:
            if not base.covers(label):
                raise InputError(f"Cannot exclude {label} from {base} in {text!r}, which has more heads or others.")
        return cls(text.strip(), match["site"], base, without)

    def select(self, site: str, layer: int, heads: int) -> set[int]:
        """Return those of the heads of a layer that are selected."""
        if self.site not in (None, site):
            return set()
        return self.base.select(layer, heads).difference(*(label.select(layer, heads) for label in self.without))


@dataclass(frozen=True)
class HeadSelection:
    """Heads of a model by name; no two terms name the same head.

    >>> HeadSelection.parse("L3-L3H1+L0H2").select("self", 3, heads=4)
    [0, 2, 3]
    """

    terms: tuple[HeadTerm, ...]

    @classmethod
    def parse(cls, heads: str | Sequence[str]) -> "HeadSelection":
        """Parse a selection from one string, or from several that are joined."""
        return _read("+".join([heads] if isinstance(heads, str) else heads))

    @property
    def layers(self) -> tuple[int, ...] | None:
        """The layers with selected heads; None if any layer may have some."""
        layers = {term.base.layer for term in self.terms}
        return None if None in layers else tuple(sorted(layer for layer in layers if layer is not None))

    def select(self, site: str, layer: int, heads: int) -> list[int]:
        """Return the selected heads of a layer, in order; raise InputError for a missing head."""
        selected: dict[int, HeadTerm] = {}
        for term in self.terms:
            for head in sorted(term.select(site, layer, heads)):
                if head in selected:
                    raise InputError(
                        f"L{layer}H{head} is both in '{selected[head].text}' and in '{term.text}'. Name each head once."
                    )
                selected[head] = term
        return sorted(selected)

    def find_sites(self, sites: Sequence[str]) -> list[str]:
        """Return the sites that have selected heads; raise InputError for an unknown or ambiguous site."""
        for term in self.terms:
            if term.site is not None and term.site not in sites:
                raise InputError(
                    f"'{term.text}' names no attention site of this model. Its sites: {join_words(sites)}."
                )
            if term.site is None and len(sites) > 1 and term.text != "all":
                raise InputError(
                    f"This model has heads at the sites {join_words(sites)}, and '{term.text}' does not say which. "
                    f"Write {sites[0]}.{term.text}, or the same with another site."
                )
        named = {term.site for term in self.terms}
        return [site for site in sites if None in named or site in named]

    def check(self, heads: Mapping[str, Mapping[int, int]]) -> None:
        """Raise InputError for a layer or head that does not exist; `heads` has their number by site and layer."""
        for term in self.terms:
            for site in [term.site] if term.site is not None else heads:
                if not heads.get(site):
                    raise InputError(f"The model computed no attention at '{site}', so '{term.text}' changed nothing.")
                for label in (term.base, *term.without):
                    for layer in select_labels(list(heads[site]), label.layer, "layer"):
                        label.select(layer, heads[site][layer])


@cache
def _read(heads: str) -> HeadSelection:
    return HeadSelection(tuple(map(HeadTerm.parse, heads.split("+"))))


def check_heads_argument(heads: Any) -> tuple[str, ...]:
    """Return heads, given as one string or several, as a tuple of terms such as `L3H7`; for `__post_init__`."""
    if not isinstance(heads, str) and not (
        isinstance(heads, Sequence) and all(isinstance(head, str) for head in heads)
    ):
        raise InputError(f"heads must be a string such as 'L3H7+L0H1' or a list of such strings, but got {heads!r}.")
    if not heads:
        raise InputError(f"heads={heads!r} asks for no head at all. {GRAMMAR}")
    return tuple(term.text for term in HeadSelection.parse(heads).terms)

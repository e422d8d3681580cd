"""Sentences for subject-verb agreement, made from templates: the subject and the attractors are known."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")
NUMBERS = ("singular", "plural")
ATTRACTORS = 5
"""A sentence has 0 to 4 attractors."""

TEST_CLASS = 4
"""Nouns i and j may occur together in a test sentence if i + j is a multiple of this, otherwise in training."""


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split())


NOUNS = _split(
    """
    key cabinet door window table chair lamp box book letter picture map mirror clock bottle cup plate knife spoon
    candle carpet curtain pillow blanket basket bucket ladder hammer needle button coat hat shoe glove ring necklace
    car truck train boat ship plane wheel engine bridge road river lake mountain valley forest garden field farm house
    castle tower church school hospital library museum theater station market shop bank factory office kitchen cellar
    doctor nurse teacher student lawyer judge farmer baker painter singer dancer actor writer poet sailor soldier
    pilot driver guard neighbor visitor guest friend cousin brother sister father mother king queen prince servant
    dog cat horse cow goat pig bird duck eagle fox wolf bear lion tiger monkey rabbit snake frog spider bee
    apple orange lemon cherry potato tomato onion flower tree branch root seed stone brick wall roof
    article report song poem story film play game rule law plan idea question answer problem decision
    computer camera phone radio screen cable battery machine robot signal program model theory method
    city village country island street square park hotel restaurant room hall corner gate fence path
    """
)
IRREGULAR = {"knife": "knives", "wolf": "wolves", "potato": "potatoes", "tomato": "tomatoes"}
ADJECTIVES = _split(
    """
    old new small large red green black white heavy light strange famous quiet loud bright dark clean broken expensive
    cheap young tall short wide narrow beautiful ugly simple modern ancient wooden golden local foreign
    """
)
PREPOSITIONS = ("near", "behind", "beside", "with", "from", "above", "below", "before", "against", "around", "for")
OPENINGS = ("near", "behind", "after", "before", "besides", "despite", "without", "beyond")
PAST = _split(
    """
    admired followed found watched liked noticed remembered ignored touched described praised avoided reached
    helped surprised
    """
)  # the same for one and for many, so that they give no hint
ADVERBS = ("often", "usually", "still", "never", "certainly", "also", "rarely", "now")
VERBS = (
    ("is", "are"),
    ("has", "have"),
    ("was", "were"),
    ("seems", "seem"),
    ("remains", "remain"),
    ("appears", "appear"),
    ("becomes", "become"),
    ("makes", "make"),
    ("shows", "show"),
    ("needs", "need"),
    ("gives", "give"),
)


@dataclass(frozen=True)
class AgreementSentence:
    """The words before a verb, what the verb agrees with, and what distracts from it."""

    words: tuple[str, ...]
    number: str
    verb: str
    wrong_verb: str
    subject: int  # index of the word
    attractors: tuple[int, ...]  # indices of the nouns of the other number between the subject and the verb
    swapped_subject: str  # the subject in the other number


def make_sentences(split: str, count: int, seed: int = 0) -> list[AgreementSentence]:
    """Return different sentences of a split, train or test: the same for the same arguments.

    Both numbers, and 0 to 4 attractors, are equally frequent. Every sentence has a noun besides its subject, and no
    subject occurs with the same other noun, in any number, in both splits; so the splits share no sentence.
    """
    generator = random.Random(f"{split} {seed}")
    sentences: dict[tuple[str, ...], AgreementSentence] = {}
    while len(sentences) < count:
        number = len(sentences)
        plural = number // ATTRACTORS % 2 == 1
        sentence = _Draft(generator, test=split == "test").make(plural, number % ATTRACTORS)
        sentences.setdefault(sentence.words, sentence)
    return list(sentences.values())


def inflect(noun: str, *, plural: bool) -> str:
    """Return a noun in one of its numbers.

    >>> inflect("key", plural=True), inflect("city", plural=True), inflect("branch", plural=True)
    ('keys', 'cities', 'branches')
    """
    if not plural or noun in IRREGULAR:
        return IRREGULAR[noun] if plural else noun
    if noun[-1] == "y" and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


class _Draft:
    """One sentence while it is made."""

    def __init__(self, generator: random.Random, *, test: bool) -> None:
        self.generator, self.words, self.attractors = generator, list[str](), list[int]()
        subject = self._index(len(NOUNS))
        self.subject, others = NOUNS[subject], range(len(NOUNS))
        self.nouns = [
            NOUNS[other] for other in others if other != subject and ((subject + other) % TEST_CLASS == 0) == test
        ]

    def make(self, plural: bool, attractors: int) -> AgreementSentence:
        """Return a sentence with this number of attractors, and up to two nouns that are none."""
        same = self._index(2)
        before = self._chance(0.5) or attractors + same == 0
        if before:
            self._add_phrase(self._choose(OPENINGS), plural=self._chance(0.5))
            self.words.append(",")
        self._add_noun(self.subject, plural=plural)
        subject = len(self.words) - 1
        for attracts in self._shuffle([True] * attractors + [False] * same):
            self._add_modifier(plural != attracts)
            if attracts:
                self.attractors.append(self._last_noun)
        if self._chance(0.25):
            self.words.append(self._choose(ADVERBS))
        right, wrong = self._choose(VERBS)[:: -1 if plural else 1]
        swapped = inflect(self.subject, plural=not plural)
        return AgreementSentence(
            tuple(self.words), NUMBERS[plural], right, wrong, subject, tuple(self.attractors), swapped
        )

    def _add_modifier(self, plural: bool) -> None:
        """Add a prepositional phrase or a relative clause, whose noun follows or precedes its verb."""
        draw = self.generator.random()
        if draw < 0.7:
            self._add_phrase(self._choose(PREPOSITIONS), plural=plural)
        elif draw < 0.85:
            self._add_phrase("that", self._choose(PAST), plural=plural)
        else:
            self._add_phrase("that", plural=plural)
            self.words.append(self._choose(PAST))

    def _add_phrase(self, *start: str, plural: bool) -> None:
        self.words += start
        self._add_noun(self.nouns.pop(self._index(len(self.nouns))), plural=plural)

    def _add_noun(self, noun: str, *, plural: bool) -> None:
        self.words.append("the")
        if self._chance(0.3):
            self.words.append(self._choose(ADJECTIVES))
        self.words.append(inflect(noun, plural=plural))
        self._last_noun = len(self.words) - 1

    # Only Random.random() is promised to stay the same in every version of Python.

    def _chance(self, share: float) -> bool:
        return self.generator.random() < share

    def _index(self, count: int) -> int:
        return int(self.generator.random() * count)

    def _choose(self, items: tuple[Item, ...]) -> Item:
        return items[self._index(len(items))]

    def _shuffle(self, items: list[bool]) -> Iterator[bool]:
        while items:
            yield items.pop(self._index(len(items)))

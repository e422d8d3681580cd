"""English sentences with their French translations, made from templates."""

import random
from dataclasses import dataclass

TEST_CLASS = 4
"""Nouns i and j are subject and object of a test sentence if i + j is a multiple of this, otherwise of training."""

NOUNS = (
    "dog dogs chien chiens m",
    "cat cats chat chats m",
    "horse horses cheval chevaux m",
    "boy boys garçon garçons m",
    "girl girls fille filles f",
    "woman women femme femmes f",
    "king kings roi rois m",
    "queen queens reine reines f",
    "doctor doctors médecin médecins m",
    "singer singers chanteuse chanteuses f",
    "house houses maison maisons f",
    "car cars voiture voitures f",
    "table tables table tables f",
    "book books livre livres m",
    "garden gardens jardin jardins m",
    "bridge bridges pont ponts m",
    "town towns ville villes f",
    "forest forests forêt forêts f",
    "boat boats bateau bateaux m",
    "train trains train trains m",
)
"""English singular and plural, French singular and plural, gender."""

ADJECTIVES = (
    "small petit petite petits petites before",
    "large grand grande grands grandes before",
    "beautiful beau belle beaux belles before",
    "bad mauvais mauvaise mauvais mauvaises before",
    "red rouge rouge rouges rouges after",
    "green vert verte verts vertes after",
    "black noir noire noirs noires after",
    "white blanc blanche blancs blanches after",
    "famous célèbre célèbre célèbres célèbres after",
    "heavy lourd lourde lourds lourdes after",
    "tired fatigué fatiguée fatigués fatiguées after",
    "strange bizarre bizarre bizarres bizarres after",
)
"""English; French masculine and feminine singular, masculine and feminine plural; before or after the noun."""

VERBS = (
    "sees see voit voient",
    "finds find trouve trouvent",
    "loves love aime aiment",
    "hides hide cache cachent",
    "follows follow suit suivent",
    "knows know connaît connaissent",
    "watches watch regarde regardent",
    "wants want veut veulent",
)
"""English singular and plural, French singular and plural."""

PLACES = ("under sous", "behind derrière", "before devant", "with avec", "for pour", "against contre")
DETERMINERS = {
    "singular": ("the le la", "a un une", "this ce cette", "my mon ma", "your votre votre"),
    "plural": ("the les les", "these ces ces", "my mes mes", "your vos vos"),
}
"""English, French masculine and feminine."""


@dataclass(frozen=True)
class Phrase:
    """A noun with its article and adjectives, in both languages."""

    english: str
    french: str
    plural: bool


def make_pairs(split: str, count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Return different sentences of a split, train or test, with their translations: the same for the same arguments.

    No noun is the subject of the same object in both splits, so they share no sentence.
    """
    generator = random.Random(f"{split} {seed}")
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        first, second = generator.randrange(len(NOUNS)), generator.randrange(len(NOUNS))
        if first != second and ((first + second) % TEST_CLASS == 0) == (split == "test"):
            english, french = _make_sentence(generator, first, second)
            pairs[english] = french
    return list(pairs.items())


def _make_sentence(generator: random.Random, subject: int, other: int) -> tuple[str, str]:
    first, second = _make_phrase(generator, subject), _make_phrase(generator, other)
    verb = generator.choice(VERBS).split()
    english = [first.english, verb[first.plural], second.english]
    french = [first.french, verb[2 + first.plural], second.french]
    if generator.random() < 0.5:
        preposition, word = generator.choice(PLACES).split()
        third = _make_phrase(generator, generator.randrange(len(NOUNS)))
        english, french = [*english, preposition, third.english], [*french, word, third.french]
    return " ".join(english), " ".join(french)


def _make_phrase(generator: random.Random, noun: int) -> Phrase:
    plural, count = generator.random() < 0.5, generator.choice((0, 0, 1, 1, 2))
    *forms, gender = NOUNS[noun].split()
    feminine = gender == "f"
    article = generator.choice(DETERMINERS["plural" if plural else "singular"]).split()
    adjectives = [adjective.split() for adjective in generator.sample(ADJECTIVES, count)]
    before, after = (
        [adjective[1 + feminine + 2 * plural] for adjective in adjectives if adjective[-1] == position]
        for position in ("before", "after")
    )
    return Phrase(
        " ".join([article[0], *(adjective[0] for adjective in adjectives), forms[plural]]),
        " ".join([article[1 + feminine], *before, forms[2 + plural], *reversed(after)]),
        plural,
    )

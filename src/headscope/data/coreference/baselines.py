"""Answers to anaphors without a model: the nearest mention, the same head word, and simple rules."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from headscope.core.example import Example
from headscope.data.coreference.anaphors import Anaphor
from headscope.data.coreference.mentions import Mention, read_words

Traits = tuple[str, str, str]
"""Person, number and gender; "" where a word does not say."""

_FORMS: dict[Traits, str] = {
    ("1", "singular", ""): "i me my mine myself",
    ("1", "plural", ""): "we us our ours ourselves",
    ("2", "", ""): "you your yours yourself yourselves",
    ("3", "singular", "masculine"): "he him his himself",
    ("3", "singular", "feminine"): "she her hers herself",
    ("3", "singular", "neuter"): "it its itself",
    ("3", "", ""): "they them their theirs themselves themself",
    ("3", "singular", ""): "this that",
    ("3", "plural", ""): "these those",
}
PRONOUN_TRAITS: Mapping[str, Traits] = {form: traits for traits, forms in _FORMS.items() for form in forms.split()}
"""`they` may be one person, so it has no number."""

_GENDERED = {
    "masculine": "man boy father son brother husband uncle king prince gentleman mr. mr sir lord",
    "feminine": "woman girl mother daughter sister wife aunt queen princess lady mrs. mrs ms. ms",
}
GENDERS: Mapping[str, str] = {word: gender for gender, words in _GENDERED.items() for word in words.split()}


def pick_nearest(example: Example, anaphor: Anaphor) -> int:  # noqa: ARG001  (all baselines have the same arguments)
    """Return the index of the nearest candidate; of two at the same distance, the first in the text."""
    return 0


def pick_same_head(example: Example, anaphor: Anaphor) -> int:
    """Return the nearest candidate with the same head word, otherwise the nearest; upper case does not matter."""
    return _first_that(anaphor, [_has_same_head(read_words(example))])


def pick_by_rules(example: Example, anaphor: Anaphor) -> int:
    """Return the nearest candidate by the first rule that one meets, in the order of Lee et al. (2011).

    The same words; the same head word; person, number and gender that do not contradict; any.
    """
    words = read_words(example)
    return _first_that(anaphor, [_has_same_words(words), _has_same_head(words), _agrees(example, words)])


BASELINES: Mapping[str, Callable[[Example, Anaphor], int]] = {
    "rules": pick_by_rules,
    "head_match": pick_same_head,
    "nearest": pick_nearest,
}

Test = Callable[[Mention, Mention], bool]


def find_traits(example: Example, mention: Mention, words: Sequence[str]) -> Traits:
    """Return person, number and gender of a mention, as far as its head word or its title tells.

    >>> example = Example("0", "", words=("Mrs.", "Lee", "saw", "us"))
    >>> find_traits(example, Mention(0, 1, 0, "1", "proper"), example.words)
    ('3', '', 'feminine')
    >>> find_traits(example, Mention(3, 3, 3, "2", "pronoun"), example.words)
    ('1', 'plural', '')
    """
    head = words[mention.head].lower()
    if head in PRONOUN_TRAITS:
        return PRONOUN_TRAITS[head]
    features = dict(_read_features(example, mention.head))
    number = {"Sing": "singular", "Plur": "plural"}.get(features.get("Number", ""), "")
    if " and " in f" {' '.join(words[mention.first : mention.last + 1]).lower()} ":
        number = ""  # of a coordination the head word is one part
    named = {GENDERS[word.lower()] for word in {words[mention.first], words[mention.head]} if word.lower() in GENDERS}
    return "3", number, named.pop() if len(named) == 1 else ""


def _read_features(example: Example, word: int) -> Iterator[tuple[str, str]]:
    features = example.columns.get("features")
    for assignment in features[word].split("|") if features else ():
        name, _, value = assignment.partition("=")
        yield name, value


def _first_that(anaphor: Anaphor, tests: Sequence[Test]) -> int:
    """Return the index of the nearest candidate that meets the first test that any meets, 0 if none does."""
    for test in tests:
        for index, candidate in enumerate(anaphor.candidates):
            if test(anaphor.mention, candidate):
                return index
    return 0


def _has_same_words(words: Sequence[str]) -> Test:
    def text(mention: Mention) -> list[str]:
        return [word.lower() for word in words[mention.first : mention.last + 1]]

    return lambda mention, candidate: text(mention) == text(candidate)


def _has_same_head(words: Sequence[str]) -> Test:
    return lambda mention, candidate: words[mention.head].lower() == words[candidate.head].lower()


def _agrees(example: Example, words: Sequence[str]) -> Test:
    def test(mention: Mention, candidate: Mention) -> bool:
        pairs = zip(find_traits(example, mention, words), find_traits(example, candidate, words), strict=True)
        return all(first == second or not (first and second) for first, second in pairs)

    return test

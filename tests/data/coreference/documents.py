"""Documents with random mentions."""

import numpy as np

from headscope.core.example import Example

WORDS = ("he", "She", "it", "they", "Ann", "dog", "Dogs", "we", "the", "Mr.")
TAGS = {"he": "PRON", "She": "PRON", "it": "PRON", "they": "PRON", "we": "PRON", "Ann": "PROPN", "Mr.": "PROPN"}


def make_document(seed, words=24, mentions=9, entities=4, *, apart=False):
    """Return an example with random words, a random tree, and random mentions.

    Some mentions share a head word, unless they are `apart`: then each is one word.
    """
    random = np.random.default_rng(seed)
    forms = tuple(WORDS[number] for number in random.integers(0, len(WORDS), words))
    heads = [int(random.integers(-1, word)) for word in range(words)]
    spans = []
    for _ in range(mentions):
        first = int(random.integers(0, words))
        spans.append((first, min(first + int(random.integers(0, 4)), words - 1), str(random.integers(0, entities)), ""))
    if apart:
        spans = [(word, word, entity, "") for word, entity in {last: entity for _, last, entity, _ in spans}.items()]
    features = tuple({"dog": "Number=Sing", "Dogs": "Case=Nom|Number=Plur"}.get(form, "") for form in forms)
    columns = {"mentions": tuple(spans), "heads": tuple(heads), "features": features, "document": f"d{seed}"}
    columns["tags"] = tuple(TAGS.get(form, "NOUN") for form in forms)
    return Example(str(seed), " ".join(forms), words=forms, columns=columns)

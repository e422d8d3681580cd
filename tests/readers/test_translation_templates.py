"""The bundled pairs of English and French sentences."""

import pytest

from headscope.core.errors import InputError
from headscope.data.bundled.translation import ADJECTIVES, NOUNS, VERBS
from headscope.data.reading.read import read


def test_no_sentence_is_in_both_splits():
    train, test = (read(f"translation_templates:{split}:3000") for split in ("train", "test"))
    assert (len(train), len({example.text for example in train})) == (3000, 3000)
    assert not {example.text for example in train} & {example.text for example in test}


def test_the_same_seed_gives_the_same_pairs():
    first, same, other = (read(f"translation_templates:test:5:{seed}") for seed in (0, 0, 1))
    assert [example.text for example in first] == [example.text for example in same]
    assert [example.text for example in first] != [example.text for example in other]


def test_french_words_agree():
    forms = {noun.split()[2 + plural]: (noun[-1] == "f", plural) for noun in NOUNS for plural in (0, 1)}
    adjectives = {}
    for line in ADJECTIVES:
        for kind, form in enumerate(line.split()[1:5]):
            adjectives.setdefault(form, set()).add((kind % 2 == 1, kind // 2))
    verbs = {form: number for line in VERBS for number, form in enumerate(line.split()[2:])}
    for example in read("translation_templates:train:500"):
        words = example.pair.split()
        verb = next(index for index, word in enumerate(words) if word in verbs)
        first = [word for word in words[:verb] if word in forms or word in adjectives]
        (noun,) = [word for word in first if word in forms]
        assert verbs[words[verb]] == forms[noun][1]
        assert all(forms[noun] in adjectives[word] for word in first if word != noun)


def test_a_split_or_count_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="split"):
        read("translation_templates:dev")
    with pytest.raises(InputError, match="count=0 pairs are asked for"):
        read("translation_templates:train:0")

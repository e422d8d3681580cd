"""BLEU and chrF from summed counts, against sacrebleu itself."""

import numpy as np
import pytest
import sacrebleu

from headscope.training.tasks.translation import bleu_from_sums, chrf_from_sums
from headscope.training.tasks.translation import count_matches as count_integers

WORDS = "le la chat chien noir voit une maison , . rouge petit".split()


def count_matches(translations, references):
    return [counts.astype(float) for counts in count_integers(translations, references)]


def corpora(count):
    """Translations that share some, all or none of their words with the references; some are short or empty."""
    random = np.random.default_rng(0)
    for length in (0, 1, 3, 5, 12):
        for kept in (0.0, 0.3, 0.8, 1.0):
            references = [list(random.choice(WORDS, random.integers(1, 12))) for _ in range(count)]
            written = [[word if random.random() < kept else "x" for word in line][:length] for line in references]
            yield [" ".join(line) for line in written], [" ".join(line) for line in references]


@pytest.mark.parametrize("count", [1, 2, 9])
def test_sums_of_counts_give_the_scores_of_sacrebleu(count):
    for translations, references in corpora(count):
        bleu, chrf = count_matches(translations, references)
        expected = sacrebleu.corpus_bleu(translations, [references], force=True).score
        assert bleu_from_sums(bleu.sum(0)) == pytest.approx(expected, abs=1e-9)
        assert chrf_from_sums(chrf.sum(0)) == pytest.approx(
            sacrebleu.corpus_chrf(translations, [references]).score, abs=1e-9
        )


def test_many_sums_are_scored_at_once():
    counts = [count_matches(*texts) for texts in corpora(4)]
    for part, score in ((0, bleu_from_sums), (1, chrf_from_sums)):
        sums = np.array([pair[part].sum(0) for pair in counts])
        one_by_one = [[float(score(row)) for row in half] for half in np.split(sums, 2)]
        np.testing.assert_array_equal(score(np.stack(np.split(sums, 2))), one_by_one)


def test_known_scores():
    same, other = "le chat noir dort bien", "un oiseau vert chante fort"
    assert bleu_from_sums(count_matches([same], [same])[0].sum(0)) == pytest.approx(100)
    assert bleu_from_sums(count_matches([other], [same])[0].sum(0)) == 0
    # three of four words, two of three bigrams, one of two trigrams and none of one 4-gram: 1 / (2 · 1)
    counts = count_matches(["le chat noir vole"], ["le chat noir dort"])[0]
    assert counts.sum(0).tolist() == [4, 4, 3, 2, 1, 0, 4, 3, 2, 1]
    assert bleu_from_sums(counts.sum(0)) == pytest.approx(100 * (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25)

"""Trained probes of syntax: scores, gradients, planted heads, control tasks and vectors."""

import numpy as np
import pytest
import torch

from headscope.core.errors import InputError
from headscope.maps.dependencies import read_heads
from headscope.probes.attention import Attention
from headscope.probes.attention_and_words import AttentionAndWords
from headscope.probing import arcs
from headscope.probing.trained import SentenceStream, encode_distances
from headscope.probing.word_vectors import read_vectors, scale_vectors
from tests.models import WORDS
from tests.oracles import probes as oracle
from tests.probes.data import HEADS, LAYERS, make_streams, plant_head

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("kinds", [2, 4])
def test_scores_and_loss_equal_the_literal_version(kinds):
    attention, factors = RANDOM.random((5, 5, 3)), RANDOM.normal(size=(5, kinds, 3))
    scores = arcs.score_arcs(attention, factors)
    np.testing.assert_allclose(scores, oracle.score_arcs(attention, factors), atol=1e-12)
    heads = np.array([1, -1, 4, 0, 2])
    assert arcs.find_loss(scores, heads)[0] == pytest.approx(oracle.find_loss(scores, heads))


@pytest.mark.parametrize("kinds", [2, 4])
def test_the_gradient_is_that_of_finite_differences(kinds):
    attention, factors = RANDOM.random((4, 4, 3)), RANDOM.normal(size=(4, kinds, 3))
    heads = np.array([1, 2, -1, 0])
    slope = arcs.find_loss(arcs.score_arcs(attention, factors), heads)[1]
    gradient = arcs.differentiate_arcs(attention, slope, kinds)
    for cell in np.ndindex(factors.shape):
        moved = [factors.copy(), factors.copy()]
        moved[0][cell] += 1e-6
        moved[1][cell] -= 1e-6
        up, down = (oracle.find_loss(oracle.score_arcs(attention, part), heads) for part in moved)
        assert gradient[cell] == pytest.approx((up - down) / 2e-6, abs=1e-7)


def test_predicted_heads_are_the_best_other_words():
    scores = np.array([[9.0, 1.0, 2.0], [3.0, 9.0, 1.0], [0.0, 0.0, 9.0]])
    assert arcs.predict_heads(scores).tolist() == [2, 0, 0]


def test_sentences_hold_the_attention_and_heads_of_their_words():
    stream = make_streams(4)[0]
    vocabulary = {form: row for row, form in enumerate(WORDS)}
    sentences = list(SentenceStream(stream, ["all"], [read_heads], vocabulary))
    for example, sentence in zip(stream.examples, sentences, strict=True):
        weights = stream.attention[example.id][:, :, 1:-1, 1:-1].flatten(0, 1)  # layer × head
        np.testing.assert_allclose(sentence.attention, weights.permute(1, 2, 0))
        assert tuple(sentence.heads[0]) == read_heads(example)
        assert [WORDS[form] for form in sentence.forms] == list(example.words)
        assert sentence.groups[:, 0].tolist() == [head >= 0 for head in read_heads(example)]


def test_sentences_that_do_not_fit_in_memory_are_read_again_and_are_the_same():
    stream = make_streams(9)[0]
    vocabulary = {form: row for row, form in enumerate(WORDS)}
    whole = SentenceStream(stream, ["all"], [read_heads], vocabulary)
    expected = [sentence.attention for sentence in whole]
    part = SentenceStream(stream, ["all"], [read_heads], vocabulary, max_bytes=sum(a.nbytes for a in expected[:4]))
    stream.passes.clear()
    for _ in range(3):
        for sentence, attention in zip(part, expected, strict=True):
            np.testing.assert_array_equal(sentence.attention, attention)
    assert stream.passes == [0, 1, 1]  # the first batch of three is kept
    list(whole)
    assert stream.passes[3:] == [3]  # nothing is left to read


def test_weights_find_a_planted_head_and_not_the_control_task():
    streams = [plant_head(stream, 1, 2) for stream in make_streams(60, words=8)]
    result = Attention(min_count=1).fit(*streams).sel(relation="all")
    accuracy = result["accuracy"].sel(predictor="probe")
    assert float(accuracy.sel(task="dependency")) == 1
    assert float(accuracy.sel(task="control")) < 0.3  # 1/7 at random
    assert float(result["gain_high"].sel(task="control")) < 0.15
    weight = result["head_weight"].sel(task="dependency", direction="dependent to head")
    assert np.unravel_index(int(weight.values.argmax()), (LAYERS, HEADS)) == (1, 2)
    assert bool(result["converged"].all())


def test_distances_are_one_hot_and_say_which_word_comes_first():
    np.testing.assert_array_equal(encode_distances(25), oracle.encode_distances(25, 20))


def test_the_gain_over_distances_is_nothing_where_attention_tells_only_distances():
    """Every head attends by distance alone, so that attention adds nothing to words and distances."""
    streams = make_streams(60, words=8)
    for stream in streams:
        for example in stream.examples:
            table = stream.attention[example.id]
            apart = np.abs(np.arange(table.shape[-1])[:, None] - np.arange(table.shape[-1]))
            table[:] = torch.tensor(0.5**apart / (0.5**apart).sum(-1, keepdims=True))
    result = AttentionAndWords(min_count=1).fit(*streams).sel(relation="all", task="dependency")
    gain = result.sel(baseline="distances")
    assert float(gain["gain_over_low"]) <= 0 or float(gain["gain_over_p"]) > 0.05
    planted = [plant_head(stream, 1, 2) for stream in make_streams(60, words=8)]
    found = AttentionAndWords(min_count=1).fit(*planted).sel(relation="all", task="dependency")
    assert float(found["gain_over_low"].sel(baseline="distances")) > 0.3
    pair = found["accuracy"].sel(predictor=["probe", "distances"])
    assert float(found["gain_over"].sel(baseline="distances")) == pytest.approx(float(-pair.diff("predictor").item()))


def test_distances_of_a_probe_without_words_are_one_best_distance():
    """Without words every word has the same distribution over distances."""
    result = Attention(min_count=1, iterations=300).fit(*make_streams(30, words=6)).sel(relation="all")
    near = result["accuracy"].sel(predictor=["distances", "fixed_offset"], task="dependency")
    assert abs(float(near.diff("predictor").item())) < 0.15


def test_weights_are_at_the_optimum_that_scipy_finds_of_the_literal_loss():
    from scipy.optimize import minimize

    train = make_streams(6)[0]
    vocabulary = {form: row for row, form in enumerate(WORDS)}
    sentences = list(SentenceStream(train, ["all"], [read_heads], vocabulary))
    ones, count = np.ones((len(WORDS), 1)), sum((part.heads[0] >= 0).sum() for part in sentences)

    def loss(flat):
        weights = flat.reshape(1, 2, -1)
        parts = (np.repeat(weights, len(part.forms), 0) for part in sentences)
        scores = (oracle.score_arcs(s.attention, factors) for s, factors in zip(sentences, parts, strict=True))
        total = sum(oracle.find_loss(score, s.heads[0]) for score, s in zip(scores, sentences, strict=True))
        return total / count + 0.01 / 2 * (flat @ flat)

    weights, converged = arcs.fit_weights(sentences, ones, task=0, factor_kinds=2, l2=0.01, iterations=200)
    assert converged
    expected = minimize(loss, np.zeros(weights.size), method="BFGS")
    assert loss(weights.ravel()) == pytest.approx(expected.fun, abs=1e-5)


def test_words_say_which_head_to_follow():
    """Words of the first half of the vocabulary follow one head, the others another: attention alone cannot know."""
    streams = make_streams(60)
    for stream in streams:
        for example in stream.examples:
            for word, (form, head) in enumerate(zip(example.words, read_heads(example), strict=True)):
                for part, other in enumerate((head, (word + 1) % len(example.words))):
                    chosen = (1, 2) if (WORDS.index(form) < len(WORDS) // 2) == (part == 0) else (0, 0)
                    table = stream.attention[example.id][chosen]
                    table[word + 1] = 0.015
                    table[word + 1, other + 1] = 0.8
    plain, with_words = (
        float(probe.fit(*streams)["accuracy"].sel(task="dependency", predictor="probe", relation="all"))
        for probe in (Attention(min_count=1), AttentionAndWords(min_count=1, l2=1e-3))
    )
    assert with_words > 0.9 > 0.75 > plain


def test_vectors_are_read_from_a_text_file(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("3 2\ncat 1 0\ndog 0 2\nThe 3 3\n", encoding="utf-8")
    vectors, coverage = read_vectors(path, ["cat", "Dog", "The", "bird"])
    assert vectors.tolist() == [[1, 0], [0, 2], [3, 3], [0, 0]]
    assert coverage == 0.75
    scaled = scale_vectors(vectors)
    assert (scaled[:, :-1] ** 2).sum(-1).mean() == pytest.approx(1)
    assert (scaled[:, -1] == 1).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bird 1 2\n", "has none of the words"),
        ("cat 1 0\ndog 1\n", "has vectors of different lengths"),
        ("cat one two\n", "Line 1 of .* is not a word and its numbers: 'cat one two"),
    ],
)
def test_files_that_are_no_vectors_are_explained(tmp_path, text, message):
    (tmp_path / "vectors.txt").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_vectors(tmp_path / "vectors.txt", ["cat", "dog"])


def test_vectors_of_a_file_take_the_place_of_embeddings(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(f"{word} {index % 2} 1" for index, word in enumerate(WORDS[:-1])), encoding="utf-8")
    result = AttentionAndWords(vectors=str(path), min_count=1, iterations=3).fit(*make_streams(6))
    assert 0.5 < float(result["coverage"]) <= 1
    assert not bool(result["converged"].all())


@pytest.mark.parametrize("kind", [Attention, AttentionAndWords])
@pytest.mark.parametrize("parameters", [{"l2": -1.0}, {"iterations": 0}, {"min_count": 0}])
def test_impossible_parameters_are_refused(kind, parameters):
    with pytest.raises(InputError, match="must be at least 0"):
        kind(**parameters)

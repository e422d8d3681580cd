"""Probes of syntax, literally: a loop over sentences, words and candidates."""

import numpy as np


def answer_by_head(weights, *, reverse):
    """The other word with the largest weight from, or to, each word; `weights` are between words, -1 for none."""
    answers = []
    for word in range(len(weights)):
        best, largest = -1, -np.inf
        for other in range(len(weights)):
            query, key = (other, word) if reverse else (word, other)
            if other != word and np.isfinite(weights[query][key]) and weights[query][key] > largest:
                best, largest = other, weights[query][key]
        answers.append(best)
    return answers


def answer_by_offset(length, offset):
    """The word at this offset, or the first or last word of the sentence."""
    return [min(max(word + offset, 0), length - 1) for word in range(length)]


def count_right(example, answers, relation, heads=None):
    """How many words of a relation have the right answer, and how many there are."""
    right = asked = 0
    for word, (head, name) in enumerate(zip(example.columns["heads"], example.columns["relations"], strict=True)):
        if head >= 0 and relation in ("all", name):
            asked += 1
            right += answers[word] == (head if heads is None else heads[word])
    return right, asked


def score_arcs(attention, factors):
    """The score of j as the head of i: a sum over attention heads k."""
    words, _, heads = attention.shape
    scores = np.zeros((words, words))
    for i in range(words):
        for j in range(words):
            for k in range(heads):
                scores[i, j] += attention[i, j, k] * factors[i, 0, k] + attention[j, i, k] * factors[i, 1, k]
                if factors.shape[1] == 4:
                    scores[i, j] += attention[i, j, k] * factors[j, 2, k] + attention[j, i, k] * factors[j, 3, k]
    return scores


def find_loss(scores, heads):
    """The summed negative log-likelihood of the heads among all other words."""
    loss = 0.0
    for word, head in enumerate(heads):
        if head >= 0:
            others = [np.exp(scores[word, other]) for other in range(len(scores)) if other != word]
            loss -= np.log(np.exp(scores[word, head]) / sum(others))
    return loss


def encode_distances(length, longest):
    """One-hot distances from each word to those behind it, as attention of as many heads; longer ones are the last."""
    table = np.zeros((length, length, longest))
    for i in range(length):
        for j in range(i + 1, length):
            table[i, j, min(j - i, longest) - 1] = 1
    return table

"""Maps between words, cell by cell."""

import torch


def word_map(weights, query_words, key_words, how):
    """One map as lists of word numbers say: columns summed, rows averaged or the first; -1 is a unit of its own."""
    asking, asked = units(query_words), units(key_words)
    found = torch.zeros(len(asking), len(asked), dtype=weights.dtype)
    for i, rows in enumerate(asking):
        for j, columns in enumerate(asked):
            sums = [sum(float(weights[row, column]) for column in columns) for row in rows]
            found[i, j] = sums[0] if how == "first" else sum(sums) / len(sums)
    return found


def word_mask(visible, query_words, key_words, how):
    """Whether any token of the one unit sees any of the other."""
    found = []
    for rows in units(query_words):
        rows = rows[:1] if how == "first" else rows
        found.append([any(visible[row, column] for row in rows for column in each) for each in units(key_words)])
    return torch.tensor(found)


def units(words):
    """The places of the tokens of every unit."""
    found = []
    for place, word in enumerate(words):
        for each in found:
            if word >= 0 and words[each[0]] == word:
                each.append(place)
                break
        else:
            found.append([place])
    return found

"""Slow, literal versions of the coreference probe: one mention at a time, with plain Python."""

import torch

TRAITS = {
    "he": ("3", "singular", "masculine"),
    "she": ("3", "singular", "feminine"),
    "it": ("3", "singular", "neuter"),
    "they": ("3", "", ""),
    "we": ("1", "plural", ""),
}


def read_mentions(example):
    """Return (first, last, head, entity, kind) of every mention of a treebank."""
    table = []
    tree, tags = example.columns["heads"], example.columns["tags"]
    for first, last, entity, _ in example.columns["mentions"]:
        head = last
        for word in range(last, first - 1, -1):
            if tree[word] < first or tree[word] > last:
                head = word
        kind = "pronoun" if tags[head] == "PRON" else "proper" if tags[head] == "PROPN" else "nominal"
        table.append((first, last, head, entity, kind))
    return table


def list_questions(example):
    """Return (mention, candidates from the nearest to the farthest, right head words) of every anaphor."""
    mentions = sorted(read_mentions(example), key=lambda mention: (mention[2], mention[0], mention[1]))
    questions = []
    for mention in mentions:
        before = [other for other in mentions if other[2] < mention[2]]
        right = {other[2] for other in before if other[3] == mention[3]}
        if right:
            nearest = sorted(before, key=lambda other: (-other[2], other[0], other[1]))
            questions.append((mention, nearest, right))
    return questions


def answer(example, question, predictor):
    """Return the head word that a baseline picks."""
    mention, candidates, _ = question
    words = [word.lower() for word in example.words]
    if predictor == "rules":
        for other in candidates:
            if words[other[0] : other[1] + 1] == words[mention[0] : mention[1] + 1]:
                return other[2]
    if predictor in ("rules", "head_match"):
        for other in candidates:
            if words[other[2]] == words[mention[2]]:
                return other[2]
    if predictor == "rules":
        for other in candidates:
            if agree(traits(example, mention), traits(example, other)):
                return other[2]
    return candidates[0][2]


def traits(example, mention):
    """Return person, number and gender of the words of these tests."""
    first, last, head = mention[:3]
    word = example.words[head].lower()
    if word in TRAITS:
        return TRAITS[word]
    feature = example.columns["features"][head]
    number = "singular" if "Number=Sing" in feature else "plural" if "Number=Plur" in feature else ""
    titled = "mr." in (word, example.words[first].lower())
    assert "and" not in example.words[first : last + 1]
    return "3", number, "masculine" if titled else ""


def agree(first, second):
    """Return whether no trait contradicts."""
    return not any(one and two and one != two for one, two in zip(first, second, strict=True))


def answer_by_head(question, weights):
    """Return the head word with the largest weight, from the words × words table of one head."""
    mention, candidates, _ = question
    best = candidates[0][2]
    for other in candidates:
        if weights[mention[2], other[2]] > weights[mention[2], best]:
            best = other[2]
    return best


def read_attention(network, tokenizer, example):
    """Return raw attention between the words of an example, layer head word word, from transformers alone."""
    encoding = tokenizer(list(example.words), is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        attentions = network(**encoding, output_attentions=True).attentions
    numbers, count = encoding.word_ids(), len(example.words)
    tokens = [[token for token, number in enumerate(numbers) if number == word] for word in range(count)]
    table = torch.zeros(len(attentions), attentions[0].shape[1], count, count)
    for layer, attention in enumerate(attentions):
        for first, queries in enumerate(tokens):
            for second, keys in enumerate(tokens):
                rows = [sum(attention[0, :, query, key] for key in keys) for query in queries]
                table[layer, :, first, second] = sum(rows) / len(rows)
    return table

"""Batches of maps, from tensors or from a tiny model, for tests of statistics."""

from dataclasses import replace
from functools import cache

import torch

from headscope.core.batch import Batch
from headscope.core.example import Example
from headscope.core.lens import view
from headscope.core.maps import Maps
from headscope.core.tokens import ROLES, Tokens
from headscope.engine.capture import capture
from tests.models import batch as texts_for
from tests.models import tiny

TAGS = ("NOUN", "PRON", "VERB", "PUNCT", "ADJ", "PROPN", "AUX")
ROLE = {"[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "[E]": 4}


def make_tokens(rows, *, width=None, left=False):
    """Build tokens from strings; every token that is not special is a word."""
    width = width or max(map(len, rows))
    real, word = torch.zeros(len(rows), width, dtype=torch.bool), torch.full((len(rows), width), -1)
    role = torch.zeros(len(rows), width, dtype=torch.long)
    for index, row in enumerate(rows):
        start = width - len(row) if left else 0
        stop, plain = start + len(row), [token not in ROLE for token in row]
        real[index, start:stop] = True
        role[index, start:stop] = torch.tensor([ROLE.get(token, 0) for token in row])
        counted = torch.tensor(plain).cumsum(0) - 1
        word[index, start:stop] = torch.where(torch.tensor(plain), counted, -1)
    assert len(ROLES) == len(ROLE) + 1
    return Tokens(rows, real, role > 0, torch.where(real, 0, -1), word, role)


def build_maps(weights, rows, *, lens="raw", signed=False, causal=False, merged=False, width=None, left=False):
    """Build maps from one unpadded [layer, head, query, key] tensor per row of tokens."""
    tokens = make_tokens(rows, width=width, left=left)
    width = tokens.real.shape[1]
    layers, heads = weights[0].shape[:2]
    whole = torch.zeros(len(rows), layers, heads, width, width, dtype=weights[0].dtype)
    visible = torch.zeros(len(rows), width, width, dtype=torch.bool)
    for index, tensor in enumerate(weights):
        columns = tokens.real[index].nonzero()[:, 0]
        seen = torch.ones(tensor.shape[-2:], dtype=torch.bool)
        seen = seen.tril() if causal else seen
        whole[index][..., columns[:, None], columns] = tensor * seen
        visible[index][columns[:, None], columns] = seen
    return Maps(
        parts=list(whole.unbind(1)),
        lens=lens,
        signed=signed,
        merged=merged,
        site="self",
        layers=tuple(range(layers)),
        heads=tuple(range(heads)),
        queries=tokens,
        keys=tokens,
        visible=[visible] * layers,
        examples=tuple(make_example(row, index) for index, row in enumerate(rows)),
        diagnostics=dict.fromkeys(
            ("share", "mixing_ratio", "copying", "copying_shuffled"), (whole**2).sum((-2, -1)).sqrt()
        ),
    )


def make_example(row, index):
    """Build an example whose words are the tokens that are not special, tagged by their first letters."""
    words = tuple(token for token in row if token not in ROLE)
    columns = {"tags": tuple(map(tag_from_name, words)), "word_pairs": pair_words(len(words))}
    columns["marked"] = mark_words(len(words))
    return Example(f"{index:03d}", " ".join(words), words=words, columns=columns)


def pair_words(count):
    """Return pairs of words in different relations, forwards and backwards; one names a word that is not there."""
    pairs = [(word, (3 * word + 1) % count, ("det", "nsubj:pass", "case")[word % 3]) for word in range(count)]
    return (*(pair for pair in pairs if pair[0] != pair[1]), (0, count, "det"))


def mark_words(count):
    """Return every third word, none of two, and one that is not there."""
    return (*range(2, count, 3), count + 1)


def tag_from_name(word):
    """Return the tag in the name of a word of these tests: noun7, pron1."""
    return next((tag for tag in TAGS if word.upper().startswith(tag)), "X")


def one_lens(maps):
    """Return a batch with the maps of one lens."""
    return Batch(maps.examples, {("model", maps.lens): maps}, maps.lens)


def capture_tiny(kind, site, lenses, focus, *, pad_to=None):
    """Return a batch of a tiny model through several lenses; the second model is the same with its layers swapped."""
    maps_by_lens = {("model", lens): view_tiny(kind, site, lens, pad_to) for lens in lenses}
    swapped = {
        ("against", lens): replace(maps, parts=list(maps.parts)[::-1]) for (_, lens), maps in maps_by_lens.items()
    }
    return Batch(maps_by_lens["model", focus].examples, {**maps_by_lens, **swapped}, focus)


@cache
def view_tiny(kind, site, lens, pad_to):
    """Return the full maps of a tiny model; shared between tests, which must not change them."""
    maps = view(trace_tiny(kind, site, pad_to), lens)
    return replace(maps, parts=[maps.layer(label) for label in maps.layers])


@cache
def trace_tiny(kind, site, pad_to):
    keep = ("attention", "values", "output", "residual")
    return capture(tiny(kind), texts_for(kind), site=site, keep=keep, pad_to=pad_to)

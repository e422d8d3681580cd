"""Batches of maps made by hand or seen in a tiny model, for statistics to observe."""

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


def tokens_of(rows, *, width=None, left=False):
    """Tokens from strings, each but the special ones a word of its own, padded on either side."""
    width = width or max(map(len, rows))
    real, word, role = torch.zeros(len(rows), width, dtype=torch.bool), torch.full((len(rows), width), -1), []
    role = torch.zeros(len(rows), width, dtype=torch.long)
    for index, row in enumerate(rows):
        start = width - len(row) if left else 0
        stop, plain = start + len(row), [each not in ROLE for each in row]
        real[index, start:stop] = True
        role[index, start:stop] = torch.tensor([ROLE.get(each, 0) for each in row])
        counted = torch.tensor(plain).cumsum(0) - 1
        word[index, start:stop] = torch.where(torch.tensor(plain), counted, -1)
    assert len(ROLES) == len(ROLE) + 1
    return Tokens(rows, real, role > 0, torch.where(real, 0, -1), word, role)


def maps_of(weights, rows, *, lens="raw", signed=False, causal=False, merged=False, width=None, left=False):
    """Maps from one unpadded [layer, head, query, key] tensor per row of tokens."""
    tokens = tokens_of(rows, width=width, left=left)
    width = tokens.real.shape[1]
    layers, heads = weights[0].shape[:2]
    whole = torch.zeros(len(rows), layers, heads, width, width, dtype=weights[0].dtype)
    visible = torch.zeros(len(rows), width, width, dtype=torch.bool)
    for index, each in enumerate(weights):
        there = tokens.real[index].nonzero()[:, 0]
        seen = torch.ones(each.shape[-2:], dtype=torch.bool)
        seen = seen.tril() if causal else seen
        whole[index][..., there[:, None], there] = each * seen
        visible[index][there[:, None], there] = seen
    return Maps(
        parts=list(whole.unbind(1)), lens=lens, signed=signed, merged=merged, site="self",
        layers=tuple(range(layers)), heads=tuple(range(heads)), queries=tokens, keys=tokens,
        visible=[visible] * layers, examples=tuple(example_of(row, index) for index, row in enumerate(rows)),
        diagnostics={"share": (whole**2).sum((-2, -1)).sqrt()},
    )  # fmt: skip


def example_of(row, place):
    """An example whose words are the tokens that are not special, tagged by their first letters."""
    words = tuple(each for each in row if each not in ROLE)
    return Example(f"{place:03d}", " ".join(words), words=words, columns={"tags": tuple(map(tag_of, words))})


def tag_of(word):
    """The tag that a word of these tests carries in its name: noun7, pron1, ."""
    return next((tag for tag in TAGS if word.upper().startswith(tag)), "X")


def one(maps):
    """A batch of one lens."""
    return Batch(maps.examples, {("model", maps.lens): maps}, maps.lens)


def seen_in(kind, site, lenses, focus, *, pad_to=None):
    """What a tiny model attends to, through several lenses; the second model is the same with its layers swapped."""
    result = {("model", lens): looked_at(kind, site, lens, pad_to) for lens in lenses}
    swapped = {("against", lens): replace(maps, parts=list(maps.parts)[::-1]) for (_, lens), maps in result.items()}
    return Batch(result["model", focus].examples, {**result, **swapped}, focus)


@cache
def looked_at(kind, site, lens, pad_to):
    """Maps of a tiny model, with weights in full; shared between tests, which must not change them."""
    maps = view(traced(kind, site, pad_to), lens)
    return replace(maps, parts=[maps.layer(label) for label in maps.layers])


@cache
def traced(kind, site, pad_to):
    keep = ("attention", "values", "output")
    return capture(tiny(kind), texts_for(kind), site=site, keep=keep, pad_to=pad_to)

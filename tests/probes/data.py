"""Random trees, and streams of random attention between their words."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch

import headscope as hs
from headscope.core.example import Example
from tests.models import WORDS

RELATIONS = ("nsubj", "obj", "det")
LAYERS, HEADS = 2, 3


def make_tree(seed, words=None, document=None):
    """Return a sentence with a random head and relation for every word but the root."""
    random = np.random.default_rng(seed)
    count = words or int(random.integers(3, 12))
    root = int(random.integers(count))
    heads = [int(random.choice([other for other in range(count) if other != word])) for word in range(count)]
    heads[root] = -1
    relations = [str(random.choice(RELATIONS)) for _ in heads]
    relations[root] = "root"
    forms = tuple(str(word) for word in random.choice(WORDS, count))
    columns = {"heads": tuple(heads), "relations": tuple(relations), "document": document or f"d{seed // 3}"}
    return Example(str(seed), " ".join(forms), words=forms, columns=columns)


@dataclass
class MapsStream:
    """Attention between the words of trees, between [CLS] and [SEP], in batches with padding."""

    examples: list
    attention: dict  # by id: layer head word word
    visible: str = "all"
    size: int = 3
    passes: list = field(default_factory=list)  # the first batch of each pass

    def __iter__(self):
        return self.batches(0)

    def batches(self, start):
        self.passes.append(start)
        for first in range(start * self.size, len(self.examples), self.size):
            yield self._make(self.examples[first : first + self.size])

    def _make(self, examples):
        width = 2 + max(len(example.words) for example in examples)
        weights = torch.zeros(LAYERS, len(examples), HEADS, width, width, dtype=torch.float64)
        numbers = torch.full((len(examples), width), -1)
        for row, example in enumerate(examples):
            table = self.attention[example.id]
            weights[:, row, :, : table.shape[-1], : table.shape[-1]] = table
            numbers[row, 1 : 1 + len(example.words)] = torch.arange(len(example.words))
        tokens = [["[CLS]", *example.words, "[SEP]"] for example in examples]
        maps = hs.view(hs.Trace.of(list(weights), tokens, visible=self.visible), "raw")
        words = replace(maps.keys, word=numbers)
        return replace(maps, queries=words, keys=words, examples=tuple(examples))

    def embed(self, words):
        """Return a one-hot vector for each form."""
        return torch.tensor([[float(word == form) for form in WORDS] for word in words])


def make_streams(count=12, *, visible="all", words=None):
    """Return two streams of random attention, of trees of different documents."""
    streams = []
    for start in (0, 3 * count):
        examples = [make_tree(seed, words) for seed in range(start, start + count)]
        streams.append(MapsStream(examples, {e.id: draw_attention(e, causal=visible == "causal") for e in examples}))
        streams[-1].visible = visible
    return streams


def draw_attention(example, *, causal=False):
    width = len(example.words) + 2
    scores = torch.randn(LAYERS, HEADS, width, width, generator=torch.Generator().manual_seed(int(example.id)))
    scores = scores.double().masked_fill(torch.ones(width, width).triu(1).bool() & causal, -torch.inf)
    return scores.softmax(-1)


def plant_head(stream, layer, head, relation=None, *, reverse=False):
    """Let one head attend half from every word of a relation to its head, or from the head to the word."""
    for example in stream.examples:
        table = stream.attention[example.id][layer, head]
        for word, (other, name) in enumerate(zip(*(example.columns[c] for c in ("heads", "relations")), strict=True)):
            if other >= 0 and relation in (None, name):
                query, key = (other + 1, word + 1) if reverse else (word + 1, other + 1)
                table[query] /= 4
                table[query, key] += 0.75
    return stream

"""The attention head that points best from mentions to their antecedents."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.maps import Maps
from headscope.core.probe import Probe, WordStream
from headscope.data.coreference.anaphors import Anaphor, list_anaphors
from headscope.data.coreference.baselines import BASELINES
from headscope.data.coreference.mentions import KINDS, add_gap_mentions, read_words
from headscope.data.coreference.passages import drop_singletons, join_sentences
from headscope.maps.rows import iterate_layers
from headscope.results.accuracies import (
    compare_baselines,
    divide,
    document_name,
    number_documents,
    tabulate_accuracies,
)
from headscope.uncertainty.corrections import LEVEL, correct_p_values
from headscope.uncertainty.paired import permutation_test

TASK = "coreference"
DIFFERENT = "different_word"
GROUPS = ("all", *KINDS, DIFFERENT)
PREDICTORS = ("head", *BASELINES, "chance", "one_head")
HEAD_DIMS = ("task", "kind", "layer", "head")


@dataclass(frozen=True)
class Coreference(Probe):
    """One attention head that finds antecedents (Clark et al., 2019).

    A mention's predicted antecedent is the mention before it whose head word its own head word attends to most; it is
    right if both refer to the same entity. Only mentions with an antecedent in the same text are counted. The attention
    head with the best accuracy is chosen on the training documents and reported on the others: for `all` mentions, and
    for each kind: pronoun, proper noun and other (nominal); `different_word` are those of which no antecedent has the
    same head word, so that a match of words does not help. `one_head` is the head for all mentions, reported for each
    kind, as in the paper. Kinds that one half of the documents has not are left out.

    Baselines: `rules` (the nearest mention with the same words, else with the same head word, else of the same person,
    number and gender, else the nearest), `head_match` (the same head word, else the nearest), `nearest`, and `chance`,
    a mention at random. Consecutive sentences of a document are joined to passages of at most `passage` words.
    `singletons=false` leaves out entities that a document mentions once, which OntoNotes does not mark. GAP and
    Winogender have one pronoun and two candidates.
    """

    passage: int = 100
    singletons: bool = True
    seed: int = 0

    cites = ("clark2019", "lee2011")

    def __post_init__(self) -> None:
        if self.passage < 1:
            raise InputError(f"passage={self.passage} of 'coreference' must be at least 1 word.")

    def prepare(self, examples: Sequence[Example]) -> list[Example]:
        """Return the examples with their mentions, sentences of a document joined to passages."""
        examples = [add_gap_mentions(example) for example in examples]
        return join_sentences(examples if self.singletons else drop_singletons(examples), self.passage)

    def fit(self, train: WordStream, test: WordStream) -> xr.Dataset:
        """Choose heads on `train`, and count right answers in `test`."""
        seen, new = (count_answers(stream, name) for stream, name in ((train, "training"), (test, "test")))
        groups = np.flatnonzero(seen.counts.sum(0) * new.counts.sum(0))
        seen, new = seen.select(groups), new.select(groups)
        layers, heads = choose_heads(seen.head_accuracy)
        best = np.stack([new.by_head[:, group, *head] for group, head in enumerate(zip(layers, heads, strict=True))], 1)
        one = new.by_head[:, :, layers[0], heads[0]]  # document kind
        hits = np.stack([best, *new.by_baseline, one])[None]  # task predictor document kind
        labels = [GROUPS[group] for group in groups]
        names: dict[str, Any] = {"tasks": [TASK], "groups": {"kind": labels}, "seed": self.seed}
        by_half = np.stack([answers.head_accuracy for answers in (seen, new)])[:, None]
        counts, left_out = seen.counts.sum(0) + new.counts.sum(0), seen.left_out + new.left_out
        variables: dict[str, Any] = {
            "count": ("kind", counts, {"long_name": "mentions in all documents"}),
            "left_out": ((), left_out, {"long_name": "mentions of which words were truncated"}),
            "head_accuracy": (("half", *HEAD_DIMS), by_half, {"long_name": "accuracy of one head", "units": ""}),
            "best_layer": (HEAD_DIMS[:2], np.array(new.layers)[layers][None]),
            "best_head": (HEAD_DIMS[:2], np.array(new.heads)[heads][None]),
            "heads_above": (("task", "baseline"), count_better_heads(new, self.seed)[None]),
        }
        result = tabulate_accuracies(hits, new.counts, predictors=PREDICTORS, **names)
        gains = compare_baselines(hits, new.counts, PREDICTORS, list(BASELINES), **names)
        axes = {"half": ["train", "test"], "layer": list(new.layers), "head": list(new.heads)}
        return result.merge(gains).assign_coords(axes).assign(variables)


@dataclass
class Answers:
    """Numbers of right answers and of mentions, by document and kind."""

    by_head: Any  # document kind layer head
    by_baseline: Float[np.ndarray, "predictor document kind"]
    counts: Int[np.ndarray, "document kind"]
    layers: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    pruned: frozenset[tuple[int, int]] = frozenset()
    left_out: int = 0

    def select(self, groups: Int[np.ndarray, " kind"]) -> "Answers":
        """Return the answers for some kinds of mentions."""
        return replace(
            self,
            by_head=self.by_head[:, groups],
            by_baseline=self.by_baseline[:, :, groups],
            counts=self.counts[:, groups],
        )

    @property
    def head_accuracy(self) -> Float[np.ndarray, "kind layer head"]:
        """The accuracy of every head; NaN for pruned ones."""
        accuracy = divide(self.by_head.sum(0), self.counts.sum(0)[:, None, None])
        for layer, head in self.pruned:
            accuracy[:, self.layers.index(layer), self.heads.index(head)] = np.nan
        return accuracy


@dataclass(frozen=True)
class Questions:
    """The anaphors of a batch as tensors: their example, the positions of their head words and of their candidates."""

    example: Int[Tensor, " anaphor"]
    query: Int[Tensor, " anaphor"]
    candidates: Int[Tensor, "anaphor candidate"]  # -1 is padding
    right: Bool[Tensor, "anaphor candidate"]


def count_answers(stream: WordStream, name: str) -> Answers:
    """Return the right answers of every head and baseline on one half of the documents."""
    documents = number_documents(stream.examples)
    shape = len(documents), len(GROUPS)
    answers = Answers(0, np.zeros((len(BASELINES) + 1, *shape)), np.zeros(shape, dtype=np.int64))
    for maps in stream:
        asked, answers.left_out = list_questions(maps, answers.left_out)
        right = answer_by_attention(maps, make_questions(maps, asked))  # anaphor layer head
        if not answers.layers:
            answers.by_head = np.zeros((*shape, *right.shape[1:]), dtype=np.int64)
        answers.layers, answers.heads, answers.pruned = maps.layers, maps.heads, maps.pruned
        for (row, anaphor), right_heads in zip(asked, right.astype(np.int64), strict=True):
            example = maps.examples[row]
            document = documents[document_name(example)]
            baselines = [anaphor.right[pick(example, anaphor)] for pick in BASELINES.values()]
            for group in list_groups(example, anaphor):
                answers.counts[document, group] += 1
                answers.by_head[document, group] += right_heads
                answers.by_baseline[:, document, group] += [*baselines, np.mean(anaphor.right)]
    if not answers.counts.sum():
        raise InputError(
            f"No mention of the {name} documents has an antecedent in the same text, so there is nothing to probe. "
            "Give more documents, or longer passages: coreference:passage=200."
        )
    return answers


def list_groups(example: Example, anaphor: Anaphor) -> list[int]:
    """Return the indices of the groups of a mention."""
    words = read_words(example)
    pairs = zip(anaphor.candidates, anaphor.right, strict=True)
    matches = any(right and words[other.head].lower() == words[anaphor.mention.head].lower() for other, right in pairs)
    return [0, GROUPS.index(anaphor.mention.kind), *([] if matches else [GROUPS.index(DIFFERENT)])]


def choose_heads(accuracy: Float[np.ndarray, "kind layer head"]) -> tuple[Any, Any]:
    """Return the layer and the head with the best accuracy for each kind, as indices; the first of equal ones."""
    filled = np.nan_to_num(accuracy, nan=-1.0).reshape(len(accuracy), -1)
    layers, heads = np.unravel_index(filled.argmax(-1), accuracy.shape[1:])
    return layers, heads


def list_questions(maps: Maps, left_out: int = 0) -> tuple[list[tuple[int, Anaphor]], int]:
    """Return the anaphors of a batch with their examples; add those with truncated words to `left_out`."""
    asked = []
    for row, (example, word_numbers) in enumerate(zip(maps.examples, maps.keys.word.tolist(), strict=True)):
        words = set(word_numbers)
        for anaphor in list_anaphors(example):
            if {mention.head for mention in (anaphor.mention, *anaphor.candidates)} <= words:
                asked.append((row, anaphor))
            else:
                left_out += 1
    return asked, left_out


def make_questions(maps: Maps, asked: Sequence[tuple[int, Anaphor]]) -> Questions:
    """Return the positions of head words in the maps; candidates are padded to the largest number."""
    positions = [{word: at for at, word in enumerate(row) if word >= 0} for row in maps.keys.word.tolist()]
    width = max((len(anaphor.candidates) for _, anaphor in asked), default=0)
    candidates = torch.full((len(asked), width), -1)
    right = torch.zeros(len(asked), width, dtype=torch.bool)
    for index, (row, anaphor) in enumerate(asked):
        heads = [positions[row][candidate.head] for candidate in anaphor.candidates]
        candidates[index, : len(heads)] = torch.tensor(heads)
        right[index, : len(heads)] = torch.tensor(anaphor.right)
    rows = torch.tensor([row for row, _ in asked], dtype=torch.long)
    queries = torch.tensor([positions[row][anaphor.mention.head] for row, anaphor in asked], dtype=torch.long)
    return Questions(rows, queries, candidates, right)


def answer_by_attention(maps: Maps, questions: Questions) -> Bool[np.ndarray, "anaphor layer head"]:
    """Return whether each head attends most to a right candidate; of equal weights, the nearest candidate counts."""
    if not len(questions.query):
        return np.zeros((0, len(maps.layers), len(maps.heads)), dtype=bool)
    layers = []
    for weights, _ in iterate_layers(maps):
        asked, rows = questions.candidates.to(weights.device), questions.example.to(weights.device)
        from_anaphor = weights[rows, :, questions.query.to(weights.device)]  # anaphor head word
        index = asked.clamp(min=0)[:, None].expand(-1, from_anaphor.shape[1], -1)
        scores = from_anaphor.gather(-1, index).masked_fill((asked < 0)[:, None], -torch.inf)
        picked = scores.argmax(-1).cpu()  # anaphor head; the first of equal ones
        layers.append(questions.right.gather(-1, picked))
    return torch.stack(layers, 1).numpy()


def count_better_heads(answers: Answers, seed: int) -> Int[np.ndarray, " baseline"]:
    """Return how many heads have more right answers than each baseline, of all mentions.

    A head counts if the p-value of a paired permutation test of documents is below 0.05 after Holm's correction for the
    number of heads.
    """
    counts = answers.counts[:, :1]  # document 1
    heads = answers.by_head[:, 0].reshape(len(counts), -1)  # document head
    after = np.stack([heads, np.broadcast_to(counts, heads.shape)], -1).astype(float)
    better = []
    for right in answers.by_baseline[: len(BASELINES)]:
        before = np.stack([right[:, 0], counts[:, 0]], -1).astype(float)
        p = correct_p_values(permutation_test(before, after, accuracy_from_sums, seed=seed))
        better.append(int(((p < LEVEL) & (heads.sum(0) > right[:, 0].sum())).sum()))
    return np.array(better)


def accuracy_from_sums(sums: Any) -> Any:
    """Return the accuracy from sums of right answers and of mentions."""
    return divide(sums[..., 0], sums[..., 1])

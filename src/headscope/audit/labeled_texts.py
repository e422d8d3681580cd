"""Labeled examples as texts in which cues are looked for."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from headscope.audit.occurrences import Text
from headscope.audit.words import Integers
from headscope.core.errors import DataWarning, InputError, unknown_name
from headscope.core.example import Example
from headscope.core.prose import count_noun, join_words
from headscope.data.reading.read import read

MAX_CLASSES = 100
PARTS = ("text", "pair", "choices")


@dataclass(frozen=True)
class LabeledTexts:
    """Texts with the group that each belongs to, and the label of every example.

    Of a classification, the group is the example, and `labels` are indices of `classes`. Of a multiple choice, each
    choice is a group of its own: those of example i are `first[i]`, …, `first[i + 1] - 1`, and `labels` are indices of
    the right choices.
    """

    kind: Literal["choice", "classification"]
    examples: Sequence[Example]
    texts: Sequence[Text]
    groups: Integers
    labels: Integers
    classes: tuple[str, ...]
    first: Integers
    parts: tuple[str, ...]
    unlabeled: int


def prepare_texts(data: Any, parts: str | Sequence[str] | None = None) -> LabeledTexts:
    """Read examples, leave out those without a label, and select the parts in which cues are looked for.

    `parts` are "text", "pair", "choices", or names of further columns; by default the choices, or else all texts.
    """
    all_examples = read(data)
    examples = [example for example in all_examples if example.label is not None]
    if not examples:
        raise InputError(
            f"Cues are about labels, but none of {count_noun(len(all_examples), 'example')} has one. Name the column "
            "with the labels: hs.read(…, label='y'), in the shell --label y."
        )
    missing = len(all_examples) - len(examples)
    if missing:
        _warn(f"left out {count_noun(missing, 'example')} of {len(all_examples):,} without a label.")
    names = choose_parts(examples, parts)
    make = _prepare_choices if names == ("choices",) else _prepare_classes
    return make(examples, names, missing)


def prepare_pairs(data: Any, pairs: Sequence[str]) -> tuple[LabeledTexts, LabeledTexts]:
    """Return the examples with the texts of the second of two parts, and with those of the first, which has no choices.

    >>> rows = [{"text": "Rain.", "claim": "Stay.", "choices": ["wet", "dry"], "label": 0}]
    >>> second, first = prepare_pairs(read(rows, choices="choices"), ("claim", "choices"))
    >>> second.kind, second.texts, first.texts
    ('choice', ['wet', 'dry'], ['Stay.'])
    """
    names = (pairs,) if isinstance(pairs, str) else tuple(pairs)
    if len(names) != 2 or len(set(names)) != 2 or names[0] == "choices":
        raise InputError(
            f"pairs are of cues in two parts of an example, but got {join_words(map(repr, names)) or 'none'}. Name "
            "two, the choices last, such as claim and choices, or text and pair."
        )
    second = prepare_texts(data, names[1])
    choose_parts(second.examples, names[0])
    own = [select_texts(example, names[:1]) for example in second.examples]
    groups = np.repeat(np.arange(len(own)), [len(texts) for texts in own])
    second = replace(second, parts=names)
    return second, replace(second, texts=[text for texts in own for text in texts], groups=groups)


def choose_parts(examples: Sequence[Example], parts: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the parts that are asked for, or the choices if there are any, or else the text and the pair."""
    available = ["text"]
    available += ["pair"] if any(example.pair is not None for example in examples) else []
    available += sorted({name for example in examples for name in example.columns} - set(PARTS))
    choice = any("choices" in example.columns for example in examples)
    available += ["choices"] if choice else []
    if parts is None:
        return ("choices",) if choice else tuple(name for name in ("text", "pair") if name in available)
    names = (parts,) if isinstance(parts, str) else tuple(parts)
    for name in names:
        if name not in available:
            raise unknown_name("part of these examples", name, available)
    if not names:
        raise InputError(f"parts is empty. Name at least one of {join_words(available)}.")
    if "choices" in names and len(names) > 1:
        raise InputError(
            f"Cues in choices are compared between the choices of an example, but parts is {join_words(names)}. Give "
            "'choices' alone, or the other parts alone."
        )
    return tuple(dict.fromkeys(names))


def _prepare_choices(examples: Sequence[Example], parts: tuple[str, ...], missing: int) -> LabeledTexts:
    for example in examples:
        count = len(example.columns.get("choices", ()))
        if count < 2:
            raise InputError(f"Example '{example.id}' has {count_noun(count, 'choice')}, but at least 2 are needed.")
        if example.label not in range(count):
            raise InputError(
                f"The label of example '{example.id}' is {example.label}, but it must be the index of one of its "
                f"{count} choices, from 0 to {count - 1}."
            )
    texts = [text for example in examples for text in example.columns["choices"]]
    _warn_empty(texts, "choice")
    _warn_equal(examples)
    counts = [len(example.columns["choices"]) for example in examples]
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    labels = np.array([int(example.label or 0) for example in examples], np.int64)
    return LabeledTexts("choice", examples, texts, np.arange(len(texts)), labels, (), first, parts, missing)


def _prepare_classes(examples: Sequence[Example], parts: tuple[str, ...], missing: int) -> LabeledTexts:
    values = sorted({example.label for example in examples if example.label is not None})
    if any(float(value) % 1 for value in values) or len(values) > MAX_CLASSES:
        raise InputError(
            f"Cues are about classes, but the labels are {count_noun(len(values), 'number')} from {values[0]:g} to "
            f"{values[-1]:g}. Give labels that are classes, such as scores above and below a threshold."
        )
    if len(values) < 2:
        raise InputError(
            f"All {count_noun(len(examples), 'example')} have the same label, {_class_names(examples)[values[0]]}, so "
            "that no cue can tell labels apart. Give examples of at least two classes."
        )
    names, index = _class_names(examples), {value: number for number, value in enumerate(values)}
    labels = np.array([index[example.label] for example in examples if example.label is not None], np.int64)
    texts: list[Text] = []
    groups: list[int] = []
    for number, example in enumerate(examples):
        own = select_texts(example, parts)
        texts += own
        groups += [number] * len(own)
    _warn_empty(texts, "text")
    first = np.arange(len(examples) + 1)
    classes = tuple(names[value] for value in values)
    return LabeledTexts(
        "classification", examples, texts, np.array(groups, np.int64), labels, classes, first, parts, missing
    )


def select_texts(example: Example, parts: Sequence[str]) -> list[Text]:
    """Return the texts of the parts that this example has, as words where it has them."""
    texts: list[Text] = []
    for name in parts:
        value = getattr(example, name) if name in ("text", "pair") else example.columns.get(name)
        if name == "text" and example.words is not None and example.pair is None:
            value = example.words
        if name == "choices":
            texts += value or ()
        elif isinstance(value, str) or (isinstance(value, tuple) and all(isinstance(word, str) for word in value)):
            texts.append(value)
        elif value is not None:
            raise InputError(
                f"The part '{name}' of example '{example.id}' is {value!r}, but a text or words are expected."
            )
    return texts


def _class_names(examples: Sequence[Example]) -> dict[Any, str]:
    """Return the name of each label: that of the column label_name, or else the label itself."""
    names: dict[Any, str] = {}
    for example in examples:
        names.setdefault(example.label, str(example.columns.get("label_name", example.label)))
    return names


def _warn_empty(texts: Sequence[Text], noun: str) -> None:
    empty = sum(not text.strip() if isinstance(text, str) else not text for text in texts)
    if empty:
        verb = "is empty and holds" if empty == 1 else "are empty and hold"
        _warn(f"{count_noun(empty, noun)} of {len(texts):,} {verb} no cue.")


def _warn_equal(examples: Sequence[Example]) -> None:
    equal = 0
    for example in examples:
        choices = [" ".join(text.lower().split()) for text in example.columns["choices"]]
        equal += choices.count(choices[int(example.label or 0)]) > 1
    if equal:
        verb = "has" if equal == 1 else "have"
        _warn(
            f"{count_noun(equal, 'example')} of {len(examples):,} {verb} a second choice equal to the right one, which "
            "no cue can tell apart."
        )


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=7)

"""Number labels: as the user says, and as a model numbers its classes.

A label that the data hold as a name has a number only by convention. So names are compared with those of a model's
classes, and where none is the same, the user says which is which.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import join_words

LABEL_NAME, LABEL_ORDER = "label_name", "label_order"
"""Columns of an example: the name of its label, and how the names were numbered."""

ALPHABETICAL, GIVEN = "alphabetical", "given"
"""Values of LABEL_ORDER: by the reader, or by the user. Without one, the number is that of the data or their format."""


def parse_labels(labels: Any) -> dict[str, int] | None:
    """Return the number of each label from a mapping, from names in order, or from "worst=0,best=1" or "worst,best".

    >>> parse_labels("worst=0,best=1"), parse_labels(["worst", "best"]), parse_labels({1: 0, 2: 1})
    ({'worst': 0, 'best': 1}, {'worst': 0, 'best': 1}, {'1': 0, '2': 1})
    """
    if labels is None:
        return None
    items = labels.split(",") if isinstance(labels, str) else labels
    if isinstance(labels, str) and "=" in labels:
        items = dict(item.rpartition("=")[::2] for item in items)
    if isinstance(items, Mapping):
        pairs = [(str(name).strip(), number) for name, number in items.items()]
    elif isinstance(items, list | tuple):
        pairs = [(str(name).strip(), number) for number, name in enumerate(items)]
    else:
        pairs = []
    names = [name for name, _ in pairs]
    if not names or "" in names or len(set(names)) < len(names) or not all(_is_number(number) for _, number in pairs):
        raise InputError(
            f"labels={labels!r} does not give each label the number of its class. Write "
            "labels={'worst': 0, 'best': 1}, or the names in the order of the classes, labels=['worst', 'best']; in "
            "the shell --labels worst=0,best=1."
        )
    return {name: int(number) for name, number in pairs}


def renumber_examples(examples: Sequence[Example], label_numbers: Mapping[str, int]) -> list[Example]:
    """Return examples whose labels have these numbers, by name or by the label itself."""
    return [
        example
        if example.label is None
        else _renumber(
            example, find_number(label_numbers, str(example.columns.get(LABEL_NAME, example.label)), example.id)
        )
        for example in examples
    ]


def find_number(label_numbers: Mapping[str, int], name: str, example: str) -> int:
    """Return the number of a label; raise InputError for one that has none."""
    if name not in label_numbers:
        raise InputError(
            f"The label of example '{example}' is '{name}', but labels has {join_words(label_numbers)}. Name it there, "
            "too, or leave such examples out."
        )
    return label_numbers[name]


def match_labels(examples: Sequence[Example], classes: Sequence[str], where: str) -> list[Example]:
    """Return the examples with their labels numbered as a model numbers its classes.

    A label with a name belongs to the class of that name, in whatever case if only one class fits. Where the classes
    have no names but numbers (LABEL_0, LABEL_1), the numbers of the data or of their format hold, but not the
    alphabetical ones of names. Numbers that the user gave hold everywhere. Raise InputError for names without a class.

    >>> data = [Example("0", "Good.", label=0, columns={"label_name": "positive", "label_order": "alphabetical"})]
    >>> [example.label for example in match_labels(data, ["NEGATIVE", "POSITIVE"], "the data")]
    [1]
    """
    named = [example for example in examples if _has_open_name(example)]
    names = dict.fromkeys(str(example.columns[LABEL_NAME]) for example in named)
    matched = {name: _find_class(name, classes) for name in names}
    if all(number is None for number in matched.values()) and _are_numbers(classes):
        if any(example.columns.get(LABEL_ORDER) == ALPHABETICAL for example in named):
            raise _ask(list(names), classes, where)
        matched = {}
    if unknown := [name for name, number in matched.items() if number is None]:
        raise _ask(unknown, classes, where)
    _check_distinct(matched, classes, where)
    _check_plain_numbers(examples, classes, where)
    return [_match(example, matched) for example in examples]


def check_not_alphabetical(examples: Iterable[Example], where: str, expected: str) -> None:
    """Raise InputError for labels that are names, where their alphabetical numbers would be taken for `expected`."""
    for example in examples:
        if example.columns.get(LABEL_ORDER) == ALPHABETICAL:
            name = str(example.columns.get(LABEL_NAME))
            raise InputError(
                f"The label of example '{example.id}' of {where} is a name, '{name}', where {expected} is expected. "
                f"Give the number of each one: hs.read(…, labels={{'{name}': …, …}}), in the shell --labels {name}=…,…"
            )


def match_train(examples: Sequence[Example], train: Sequence[Example], where: str) -> list[Example]:
    """Return the examples with their labels numbered as those of the training examples of the same name."""
    label_numbers = name_labels(train)
    if not label_numbers:
        return list(examples)
    names = {number: name for name, number in label_numbers.items()}
    return match_labels(examples, [names.get(number, str(number)) for number in range(max(names) + 1)], where)


def name_labels(examples: Iterable[Example]) -> dict[str, int]:
    """Return the number of each label that has a name, in the order of the numbers.

    >>> name_labels([Example("0", "Good.", label=1, columns={"label_name": "best"})])
    {'best': 1}
    """
    pairs = {
        (int(example.label), str(example.columns[LABEL_NAME]))
        for example in examples
        if example.label is not None and example.columns.get(LABEL_NAME) is not None
    }
    return {name: number for number, name in sorted(pairs)}


def _is_number(number: Any) -> bool:
    if isinstance(number, str):
        return number.strip().isascii() and number.strip().isdigit()
    return hasattr(number, "__index__") and not isinstance(number, bool) and int(number) >= 0


def _renumber(example: Example, number: int) -> Example:
    columns = {LABEL_NAME: str(example.label), **example.columns, LABEL_ORDER: GIVEN}
    return replace(example, label=number, columns=MappingProxyType(columns))


def _has_open_name(example: Example) -> bool:
    """Whether the label of an example has a name, and its number is not the user's own."""
    columns = example.columns
    return example.label is not None and columns.get(LABEL_NAME) is not None and columns.get(LABEL_ORDER) != GIVEN


def _find_class(name: str, classes: Sequence[str]) -> int | None:
    if name in classes:
        return list(classes).index(name)
    lowered = [class_name.lower() for class_name in classes]
    if lowered.count(name.lower()) == 1:
        return lowered.index(name.lower())
    generic_names = [f"LABEL_{number}" for number in range(len(classes))] if _are_numbers(classes) else []
    return generic_names.index(name) if name in generic_names else None


def _are_numbers(classes: Sequence[str]) -> bool:
    """Whether classes have no names of their own: LABEL_0 is the library's default."""
    return all(name in (str(number), f"LABEL_{number}") for number, name in enumerate(classes))


def _check_distinct(matched: Mapping[str, int | None], classes: Sequence[str], where: str) -> None:
    """Raise InputError for two names of one class: the data may tell them apart."""
    seen: dict[int | None, str] = {}
    for name, number in matched.items():
        if (first := seen.setdefault(number, name)) != name:
            assert number is not None
            raise InputError(
                f"The labels '{first}' and '{name}' of {where} both fit the class '{classes[number]}'. "
                f"{_advise([first, name])}"
            )


def _check_plain_numbers(examples: Sequence[Example], classes: Sequence[str], where: str) -> None:
    """Raise InputError for numbers as labels where the model calls its classes by other numbers, such as 1 to 5.

    Of two classes, "false" is called 0 and "true" 1, as truth values are read.
    """
    truth = {"false": "0", "true": "1"} if len(classes) == 2 else {}
    called = [truth.get(name.lower(), name) for name in classes]
    if not any(name.isdigit() and name != str(number) for number, name in enumerate(called)):
        return
    for example in examples:
        if example.label is not None and LABEL_NAME not in example.columns:
            raise InputError(
                f"The label of example '{example.id}' of {where} is {example.label}, but the model's class "
                f"0 is called '{classes[0]}', so that it is not known which is meant. {_advise([str(example.label)])}"
            )


def _match(example: Example, matched: Mapping[str, int | None]) -> Example:
    number = matched.get(str(example.columns.get(LABEL_NAME))) if _has_open_name(example) else None
    return example if number in (None, example.label) else replace(example, label=number)


def _ask(names: Sequence[str], classes: Sequence[str], where: str) -> InputError:
    quoted = [f"'{name}'" for name in names]
    return InputError(
        f"The labels of {where} are names, {join_words(quoted, limit=6)}, but the classes are called "
        f"{join_words(classes, limit=6)}, so that it is not known which is which. {_advise(names)}"
    )


def _advise(names: Sequence[str]) -> str:
    names, more = list(names)[:6], ", …" if len(list(names)) > 6 else ""
    python, shell = ", ".join(f"'{name}': …" for name in names), ",".join(f"{name}=…" for name in names)
    return (
        f"Give the number of each one's class: hs.read(…, labels={{{python}{more}}}), in the shell --labels "
        f"{shell}{more.replace(' ', '')}"
    )

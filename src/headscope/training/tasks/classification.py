"""One of several classes for a text or a pair of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import join_words
from headscope.data.labels import match_labels
from headscope.training.labels import check_labels, check_several_labels, read_class_names
from headscope.training.metrics import Metric, count_confusions, f1, make_accuracy, make_count_metric, matthews
from headscope.training.task import Answers, Task


@dataclass(frozen=True)
class Classification(Task):
    """Integers from 0 as labels; `classes` are their names, by which labels with names are numbered."""

    classes: tuple[str, ...]

    name = "classification"
    head = "AutoModelForSequenceClassification"
    main = "accuracy"

    @classmethod
    def from_examples(cls, train: Sequence[Example]) -> "Classification":
        """Return the task of these training examples, which are checked."""
        check_labels(train, "train", int)
        check_several_labels(train)
        labels = _distinct_labels(train)
        if labels != list(range(len(labels))):
            raise InputError(
                f"The labels of train are {join_words(labels, limit=6)}, where 0 to {len(labels) - 1} are expected, "
                "each at least once. Number the classes from 0 without gaps, or give more examples."
            )
        names = read_class_names(train, "train")
        return cls(tuple(names.get(label, str(label)) for label in labels))

    def check(self, examples: Sequence[Example], where: str) -> None:
        """Raise InputError unless every label is the number of a class of the task."""
        check_labels(examples, where, int)
        unknown = [label for label in _distinct_labels(examples) if label not in range(len(self.classes))]
        if unknown:
            raise InputError(
                f"In {where} there are labels {join_words(unknown, limit=6)}, but the classes are 0 to "
                f"{len(self.classes) - 1} ({', '.join(self.classes)}). Leave such examples out, or train with all "
                "classes."
            )

    def prepare(self, examples: Sequence[Example], where: str) -> list[Example]:
        """Return the examples with the numbers of the task's classes, by name; raise InputError for other labels."""
        check_labels(examples, where, int)
        matched = match_labels(examples, self.classes, where)
        self.check(matched, where)
        return matched

    def reorder(self, classes: Sequence[str]) -> "Classification":
        """Return the task with its classes in the order of a model that has the same ones, or else as it is."""
        lowered = [name.lower() for name in classes]
        same = sorted(lowered) == sorted(name.lower() for name in self.classes) and len(set(lowered)) == len(lowered)
        return Classification(tuple(classes)) if same else self

    def configure(self, config: Any) -> None:
        """Set the number and names of the classes."""
        config.num_labels = len(self.classes)
        config.id2label = dict(enumerate(self.classes))
        config.label2id = {name: label for label, name in enumerate(self.classes)}
        config.problem_type = "single_label_classification"

    def compute_metrics(self, answers: Answers) -> dict[str, Metric]:
        """Return accuracy and Matthews' correlation; F1 of class 1 where there are two classes."""
        counts = count_confusions(answers["label"], answers["prediction"], len(self.classes))
        metrics = {"accuracy": make_accuracy(answers["label"], answers["prediction"])}
        if len(self.classes) == 2:
            metrics["f1"] = make_count_metric(f1, counts)
        return {**metrics, "matthews": make_count_metric(matthews, counts)}


def _distinct_labels(examples: Sequence[Example]) -> list[int]:
    return sorted({int(example.label) for example in examples if example.label is not None})

"""One of several classes for a text or a pair of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.prose import join_words
from headscope.training import metrics
from headscope.training.labels import check_labels, named
from headscope.training.task import Found, Score, Task


@dataclass(frozen=True)
class Classification(Task):
    """Whole numbers from 0 up as labels; `classes` are their names."""

    classes: tuple[str, ...]

    name = "classification"
    head = "AutoModelForSequenceClassification"
    main = "accuracy"

    @classmethod
    def of(cls, train: Sequence[Example]) -> "Classification":
        """The task that these training examples set."""
        check_labels(train, "train", int)
        seen = sorted({int(each.label) for each in train if each.label is not None})
        if len(seen) == 1:
            raise InputError(
                f"All {len(train):,} training examples have the label {seen[0]}, so there is nothing to tell apart. "
                "Give examples of at least two classes."
            )
        if seen != list(range(len(seen))):
            raise InputError(
                f"The labels of train are {join_words(seen, limit=6)}, where 0 to {len(seen) - 1} are expected, each "
                "at least once. Number the classes from 0 without gaps, or give more examples."
            )
        names = named(train, "train")
        return cls(tuple(names.get(label, str(label)) for label in seen))

    def check(self, examples: Sequence[Example], where: str) -> None:
        """Labels are there, known, and mean the same."""
        check_labels(examples, where, int)
        strange = sorted({int(each.label) for each in examples if each.label is not None} - {*range(len(self.classes))})
        if strange:
            raise InputError(
                f"In {where} there are labels {join_words(strange, limit=6)}, but the classes are 0 to "
                f"{len(self.classes) - 1} ({', '.join(self.classes)}). Leave such examples out, or "
                "train with all classes."
            )
        for label, name in named(examples, where).items():
            if name != self.classes[label] and not self.classes[label].isdigit():
                raise InputError(
                    f"The label {label} is '{name}' in {where}, but '{self.classes[label]}' for the model. Number the "
                    "classes alike: labels that are names are numbered in their order in each file."
                )

    def configure(self, config: Any) -> None:
        """The names of the classes."""
        config.num_labels = len(self.classes)
        config.id2label = dict(enumerate(self.classes))
        config.label2id = {name: place for place, name in enumerate(self.classes)}
        config.problem_type = "single_label_classification"

    def answers(self, output: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The class with the largest logit, and by how much the right one leads."""
        return chosen(output.logits, batch["labels"])

    def values(self, found: Found) -> dict[str, float]:
        """Accuracy and Matthews' correlation; F1 of class 1 where there are two."""
        counts = metrics.counted(found["label"], found["prediction"], len(self.classes))
        return {name: float(metric(counts)) for name, metric in self._metrics().items()}

    def scores(self, found: Found) -> dict[str, Score]:
        """Wilson's interval for accuracy, the bootstrap's for the others."""
        counts = metrics.counted(found["label"], found["prediction"], len(self.classes))
        again = metrics.counts_drawn_again(counts)
        scores = {
            name: Score(value, *metrics.middle(self._metrics()[name](again)), "bootstrap")
            for name, value in self.values(found).items()
        }
        return {**scores, "accuracy": share_right(found)}

    def _metrics(self) -> dict[str, Any]:
        two = {"f1": metrics.f1} if len(self.classes) == 2 else {}
        return {"accuracy": metrics.accuracy, **two, "matthews": metrics.matthews}


def chosen(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Which class has the largest logit, and by how much the right one leads the best of the others."""
    right = torch.nn.functional.one_hot(labels, logits.shape[-1]).bool()
    rival = logits.masked_fill(right, -torch.inf).amax(-1)
    own = logits.gather(-1, labels[:, None])[:, 0]
    return {"prediction": logits.argmax(-1), "label": labels, "logits": logits, "margin": own - rival}


def share_right(found: Found) -> Score:
    """Accuracy with Wilson's interval."""
    right = int((found["label"] == found["prediction"]).sum())
    total = len(found["label"])
    return Score(right / total, *metrics.wilson(right, total), "Wilson")

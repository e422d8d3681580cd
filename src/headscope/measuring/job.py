"""One measurement, ready to run: who observes, what, and in which order."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.engine.batch import Inputs, make_batches
from headscope.engine.model import Model
from headscope.measuring.observe import Observer, States
from headscope.measuring.plan import BatchPlan
from headscope.results.stamp import fingerprint


@dataclass(frozen=True)
class MeasureJob:
    """An observer and a plan; every engine gives the states of the plan's batches, in their order."""

    observer: Observer
    plan: BatchPlan
    facts: dict[str, Any]

    def states(self, first: int = 0, last: int | None = None) -> Iterator[States]:
        """The states of the plan's batches from `first` on, in their order."""
        return observed(self.observer, map(self.plan.batch, range(first, last or len(self.plan.batches))))


def observed(observer: Observer, batches: Iterable[tuple[Example, ...]]) -> Iterator[States]:
    """The states of batch after batch."""
    return observer(_pair(observer, examples) for examples in batches)


def _pair(observer: Observer, examples: tuple[Example, ...]) -> tuple[Inputs, Inputs | None]:
    """One batch for each model."""
    cut = (observer.settings.max_length, observer.settings.pad_to)
    inputs = inputs_for(observer.model, examples, *cut)
    if observer.against is None:
        return inputs, None
    other = inputs_for(observer.against, examples, *cut)
    _check_same(inputs, other)
    return inputs, other


def inputs_for(
    model: Model, examples: tuple[Example, ...], max_length: int | None, pad_to: int | None = None
) -> Inputs:
    """One batch for a model; that some texts are cut was said when the plan was made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        (inputs,) = make_batches(model, examples, len(examples), max_length=max_length, pad_to=pad_to)
    return inputs


def plan_name(plan: BatchPlan) -> str:
    """A short name for the order and the batches of a plan."""
    return fingerprint(" ".join(map(str, batch)) for batch in plan.batches)


def _check_same(one: Inputs, other: Inputs) -> None:
    """Heads can be compared only where both models read the same tokens."""
    mine, theirs = (each.tensors["input_ids"].cpu() for each in (one, other))
    if mine.shape != theirs.shape or not bool((mine == theirs).all()):
        example = one.examples[0].id
        raise InputError(
            f"The two models read different tokens, for instance in example '{example}': their tokenizers differ. "
            "Compare models that share a tokenizer."
        )

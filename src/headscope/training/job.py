"""From what a user asks for to a fine-tuning that can run, everything checked before it does."""

import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.data.reading.read import read
from headscope.engine.batch import max_input_length
from headscope.engine.load import find_family, load
from headscope.engine.model import Model
from headscope.results.stamp import fingerprint
from headscope.training.find import find_task
from headscope.training.head import headed, seeded
from headscope.training.labels import majority
from headscope.training.options import TrainingSettings
from headscope.training.rows import EncodedExample, with_padding
from headscope.training.task import Task


@dataclass(frozen=True)
class TrainingJob:
    """A network with its head, the rows it learns from, and the facts that make two runs the same."""

    network: Any
    tokenizer: Any
    task: Task
    settings: TrainingSettings
    train: Sequence[EncodedExample]
    dev: Sequence[EncodedExample]
    facts: dict[str, Any]
    said: str  # what was found, in a sentence


def job_of(model: Any, train: Any, dev: Any, *, task: str, tokenizer: Any, settings: TrainingSettings) -> TrainingJob:
    """Read, check, tokenise, and put a head on the model."""
    learned = chosen(examples_of(train, "train"), settings.limit, settings.seed)
    held = [] if dev is None else examples_of(dev, "dev")
    found, reason = find_task(task, learned)
    if held:
        found.check(held, "dev")
        _warn_of_overlap(learned, held)
    base, settings = base_of(model, tokenizer, settings)
    check_length(base, settings.max_length)
    with seeded(settings.seed):
        network, new = headed(base, found, from_scratch=settings.from_scratch)
    words = with_padding(base.tokenizer, network.config)
    facts = {
        "model": base.spec,
        "weights_hash": None if settings.from_scratch else base.weights_hash,
        "new_weights": "all" if settings.from_scratch else new,
        **found.facts(),
        "guessed": reason or None,
        **settings.described(),
        "train": fingerprint_of(learned),
        "n": len(learned),
        "dev": fingerprint_of(held) if held else None,
        "n_dev": len(held),
        "majority": _majority(found, learned),
    }
    rows = [found.rows(words, each, settings.max_length) if each else [] for each in (learned, held)]
    return TrainingJob(network, words, found, settings, rows[0], rows[1], facts, _said(found, reason, facts))


def base_of(model: Any, tokenizer: Any, settings: TrainingSettings) -> tuple[Model, TrainingSettings]:
    """The model to begin with; a bare config is a model without weights, so it starts from scratch."""
    import transformers

    if isinstance(model, transformers.PreTrainedConfig):
        if tokenizer is None:
            raise InputError(
                "A config was given, which has no tokenizer. Give one: hs.finetune(config, …, tokenizer=…)."
            )
        with seeded(settings.seed):
            network = transformers.AutoModel.from_config(model)
        made = Model(network, tokenizer, find_family(model.model_type), f"a new {model.model_type}")
        return made, replace(settings, from_scratch=True)
    if isinstance(model, Model):
        return (model if tokenizer is None else replace(model, tokenizer=tokenizer)), settings
    if isinstance(model, str) or model is None or hasattr(model, "__fspath__"):
        return load(model, tokenizer=tokenizer, device="cpu"), settings
    return load(model, tokenizer=tokenizer), settings


def examples_of(data: Any, where: str) -> list[Example]:
    """Whatever `hs.read` gives or reads; nothing at all is refused."""
    if isinstance(data, list | tuple) and not data:
        raise InputError(f"There are no examples in {where}: the list is empty. Give at least two.")
    return read(data)


def chosen(examples: Sequence[Example], limit: int | None, seed: int) -> list[Example]:
    """All examples, or `limit` of them at random, in their order."""
    if limit is None or limit >= len(examples):
        return list(examples)
    return [examples[place] for place in sorted(random.Random(seed).sample(range(len(examples)), limit))]


def fingerprint_of(examples: Sequence[Example]) -> str:
    """A short name for exactly these examples: ids, texts, choices and labels."""
    return fingerprint(part for each in examples for part in _parts(each))


def check_length(model: Model, max_length: int | None) -> None:
    """Refuse texts longer than the model has places for."""
    most = max_input_length(model)
    if max_length is not None and most is not None and max_length > most:
        raise InputError(
            f"max_length={max_length} is more than the {most} tokens that {model.spec} can read. Give {most} or less."
        )


def _parts(example: Example) -> Iterator[str]:
    yield from (example.id, example.text, example.pair or "", "\x01".join(example.words or ()))
    yield from (repr(example.label), *map(str, example.columns.get("choices", ())))


def _warn_of_overlap(train: Sequence[Example], dev: Sequence[Example]) -> None:
    def key(each: Example) -> Any:
        return each.text, each.pair, tuple(each.columns.get("choices", ()))

    known = {key(each) for each in train}
    both = [each for each in dev if key(each) in known]
    if both:
        warnings.warn(
            f"{len(both):,} of the {len(dev):,} examples of dev are in train as well, such as '{both[0].id}'. Their "
            "score says nothing about new texts.",
            DataWarning,
            stacklevel=4,
        )


def _majority(task: Task, examples: Sequence[Example]) -> float | None:
    """The share of the most common label, which a model that has learned nothing can reach."""
    if task.name not in ("classification", "choice"):
        return None
    return majority(each.label for each in examples)[1]


def _said(task: Task, reason: str, facts: dict[str, Any]) -> str:
    classes = facts.get("classes")
    parts = [f"Task: {task.name}" + (f", because {reason}" if reason else "")]
    parts += [f"{facts['n']:,} examples to learn from, {facts['n_dev']:,} to score"]
    parts += [f"classes: {', '.join(classes)}"] if classes else []
    parts += [f"the most common is {facts['majority']:.1%} of them"] if facts["majority"] is not None else []
    return "; ".join(parts) + "."

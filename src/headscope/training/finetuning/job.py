"""A fine-tuning that is ready to run: everything is read and checked."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example, sample_examples
from headscope.data.reading.read import read
from headscope.data.tokenizing.encode import EncodedExample
from headscope.engine.batch import check_max_length
from headscope.engine.fingerprint import fingerprint_model
from headscope.engine.images import check_reads_texts
from headscope.engine.load import find_family, load
from headscope.engine.model import Model
from headscope.results.hashes import fingerprint_examples
from headscope.training.encode import require_padding
from headscope.training.find_task import continue_task, find_task
from headscope.training.finetuning.head import build_network, seed_all
from headscope.training.finetuning.new_model import build_config_and_tokenizer
from headscope.training.finetuning.settings import TrainingSettings
from headscope.training.labels import find_majority
from headscope.training.task import Task, describe_task
from headscope.version import __version__


@dataclass(frozen=True)
class TrainingJob:
    """A network with its head, the encoded examples, and the facts of the run."""

    network: Any
    tokenizer: Any
    task: Task
    settings: TrainingSettings
    train: Sequence[EncodedExample]
    dev: Sequence[EncodedExample]
    facts: dict[str, Any]
    summary: str  # one sentence on the task and the data


def prepare_training(
    model: Any, train: Any, dev: Any, *, task: str, tokenizer: Any, settings: TrainingSettings
) -> TrainingJob:
    """Read, check and tokenize the data, and put a head on the model."""
    train = sample_examples(read_examples(train, "train"), settings.limit, settings.seed)
    dev = [] if dev is None else read_examples(dev, "dev")
    task_object, reason = find_task(task, train)
    if dev:
        task_object.prepare(dev, "dev")  # before the model is loaded
        _warn_overlap(train, dev)
    if isinstance(tokenizer, str):
        model, tokenizer = build_config_and_tokenizer(model, tokenizer, train, task=task_object.name)
    base, settings = _load_base(model, tokenizer, settings)
    check_reads_texts(base, "hs.finetune trains on texts")
    task_object = continue_task(task_object, base.network, train)
    train, dev = task_object.prepare(train, "train"), task_object.prepare(dev, "dev") if dev else []
    check_max_length(base, [*train, *dev], settings.max_length)
    with seed_all(settings.seed):
        network, new = build_network(base, task_object, from_scratch=settings.from_scratch)
    tokenizer = require_padding(base.tokenizer, network.config, task_object.padding_side)
    labeled = task_object.name in ("classification", "choice")
    facts = {
        "version": __version__,
        "model": base.spec,
        **fingerprint_model(base),
        **({"weights_hash": None} if settings.from_scratch else {}),
        "new_weights": "all" if settings.from_scratch else new,
        **describe_task(task_object),
        "guessed": reason or None,
        **asdict(settings),
        "training_data": fingerprint_examples(train, labels=True),
        "n": len(train),
        "dev_data": fingerprint_examples(dev, labels=True) if dev else None,
        "n_dev": len(dev),
        "majority": find_majority(example.label for example in train)[1] if labeled else None,
    }
    train_rows, dev_rows = (
        task_object.encode(tokenizer, data, settings.max_length) if data else [] for data in (train, dev)
    )
    return TrainingJob(network, tokenizer, task_object, settings, train_rows, dev_rows, facts, _summarize(facts))


def read_examples(data: Any, where: str) -> list[Example]:
    """Return what `hs.read` reads; raise InputError for an empty list."""
    if isinstance(data, list | tuple) and not data:
        raise InputError(f"There are no examples in {where}: the list is empty. Give at least two.")
    return read(data)


def _load_base(model: Any, tokenizer: Any, settings: TrainingSettings) -> tuple[Model, TrainingSettings]:
    """Return the model to start from; a config has no weights, so it starts from scratch."""
    import transformers

    if isinstance(model, transformers.PreTrainedConfig):
        if tokenizer is None:
            raise InputError(
                "A config was given, which has no tokenizer. Give one: hs.finetune(config, …, tokenizer=…), or "
                "tokenizer='words' for one that is made from the training texts."
            )
        with seed_all(settings.seed):
            network = transformers.AutoModel.from_config(model)
        base = Model(network, tokenizer, find_family(model.model_type), f"a new {model.model_type}")
        return base, replace(settings, from_scratch=True)
    if isinstance(model, Model):
        return (model if tokenizer is None else replace(model, tokenizer=tokenizer)), settings
    from_files = isinstance(model, str) or model is None or hasattr(model, "__fspath__")
    return load(model, tokenizer=tokenizer, device="cpu" if from_files else None), settings


def _warn_overlap(train: Sequence[Example], dev: Sequence[Example]) -> None:
    def key(example: Example) -> Any:
        return example.text, example.pair, tuple(example.columns.get("choices", ()))

    seen = {key(example) for example in train}
    repeated = [example for example in dev if key(example) in seen]
    if repeated:
        warnings.warn(
            f"{len(repeated):,} of the {len(dev):,} examples of dev are in train as well, such as '{repeated[0].id}'. "
            "Their score says nothing about new texts.",
            DataWarning,
            stacklevel=4,
        )


def _summarize(facts: dict[str, Any]) -> str:
    facts_shown = [f"Task: {facts['task']}" + (f", because {facts['guessed']}" if facts["guessed"] else "")]
    facts_shown += [f"{facts['n']:,} training and {facts['n_dev']:,} dev examples"]
    facts_shown += [f"classes: {', '.join(facts['classes'])}"] if facts.get("classes") else []
    facts_shown += [f"majority class: {facts['majority']:.1%}"] if facts["majority"] is not None else []
    return "; ".join(facts_shown) + "."

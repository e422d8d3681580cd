"""Find the task: by name, from the labels, or from a model's head."""

from collections.abc import Sequence
from typing import Any

from headscope.core.errors import InputError, unknown_name
from headscope.core.example import Example
from headscope.data.labels import GIVEN, LABEL_ORDER
from headscope.training.task import Task
from headscope.training.tasks.causal import Causal, check_causal
from headscope.training.tasks.choice import Choice
from headscope.training.tasks.classification import Classification
from headscope.training.tasks.mlm import Mlm
from headscope.training.tasks.regression import Regression
from headscope.training.tasks.translation import Translation

TASKS: dict[str, Any] = {task.name: task for task in (Classification, Regression, Choice, Translation, Mlm, Causal)}


def find_task(name: str, train: Sequence[Example]) -> tuple[Task, str]:
    """Return the task of these examples, and why it was inferred; "" if it was given by name."""
    _check_name(name)
    reason = ""
    if name == "auto":
        name, reason = _infer_task(train)
    task: Task = TASKS[name].from_examples(train)
    return task, reason


def find_task_of_head(name: str, network: Any, examples: Sequence[Example]) -> Task:
    """Return the task of a model's head; raise InputError if `name` is another task."""
    import transformers

    _check_name(name)
    config = network.config
    excluded = "classification" if config.num_labels == 1 or config.problem_type == "regression" else "regression"
    fitting = [
        task
        for task, task_class in TASKS.items()
        if isinstance(network, _head_classes(transformers, task_class.head, config)) and task != excluded
    ]
    if name not in ("auto", *fitting) or not fitting:
        wanted = f"the task '{name}'" if name != "auto" else "any task"
        available = f", only one for '{fitting[0]}'" if fitting else ""
        raise InputError(
            f"The model is a {type(network).__name__}, which has no head for {wanted}{available}. Tune it first: "
            "hs.finetune(model, train, out=…), in the shell headscope finetune."
        )
    task_name = fitting[0] if name == "auto" else name
    if task_name == "classification":
        return Classification(tuple(_read_class_names(config)))
    if task_name == "choice":
        return Choice(len(examples[0].columns.get("choices", ())))
    if task_name == "causal":
        check_causal(network)
    task: Task = TASKS[task_name]()
    return task


def continue_task(task: Task, network: Any, train: Sequence[Example]) -> Task:
    """Return the task of a model that goes on learning: with its own order of the classes, if they are the same.

    Numbers that the user gave hold.
    """
    import transformers

    config = network.config
    if any(example.columns.get(LABEL_ORDER) == GIVEN for example in train):
        return task
    if not isinstance(task, Classification) or not isinstance(network, _head_classes(transformers, task.head, config)):
        return task
    return task.reorder(_read_class_names(config))


def _check_name(name: str) -> None:
    if name not in ("auto", *TASKS):
        raise unknown_name("task", name, ["auto", *TASKS])


def _infer_task(train: Sequence[Example]) -> tuple[str, str]:
    labels = [example.label for example in train]
    if all(example.columns.get("choices") for example in train):
        return "choice", "every example has choices"
    if all(label is None for label in labels):
        raise InputError(
            f"None of the {len(labels):,} training examples has a label, so the task cannot be inferred. Name the "
            "column that holds it: hs.read(…, label=…), in the shell --label. Only language modeling, task='mlm' or "
            "task='causal', and task='translation', which learns to write the second text of a pair, need none."
        )
    if any(isinstance(label, float) for label in labels):
        return "regression", "labels are numbers with a fraction"
    named = any("label_name" in example.columns for example in train)
    return "classification", "labels are names of classes" if named else "labels are whole numbers"


def _head_classes(transformers: Any, auto: str, config: Any) -> tuple[type, ...]:
    """Return the classes with such a head for this type of model."""
    classes = getattr(transformers, auto)._model_mapping.get(type(config), ())
    return classes if isinstance(classes, tuple) else (classes,)


def _read_class_names(config: Any) -> list[str]:
    """Return the names of the classes; LABEL_0 and so on are the library's default."""
    return [
        str(label) if name == f"LABEL_{label}" else name
        for label, name in sorted((int(label), str(name)) for label, name in config.id2label.items())
    ]

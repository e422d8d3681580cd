"""Which task it is: by name, from the labels, or from a model's head."""

from collections.abc import Sequence
from typing import Any

from headscope.core.errors import InputError, unknown_name
from headscope.core.example import Example
from headscope.training.task import Task
from headscope.training.tasks.choice import Choice
from headscope.training.tasks.classification import Classification
from headscope.training.tasks.mlm import Mlm
from headscope.training.tasks.regression import Regression

TASKS: dict[str, Any] = {each.name: each for each in (Classification, Regression, Choice, Mlm)}


def find_task(name: str, train: Sequence[Example]) -> tuple[Task, str]:
    """The task that these examples set, and why it is this one; "" if that was said by name."""
    reason = ""
    if name == "auto":
        name, reason = _guessed(train)
    if name not in TASKS:
        raise unknown_name("task", name, ["auto", *TASKS])
    task: Task = TASKS[name].of(train)
    return task, reason


def task_of_head(name: str, network: Any, examples: Sequence[Example]) -> Task:
    """The task that a model's head is for; a head for another one is refused."""
    import transformers

    if name != "auto" and name not in TASKS:
        raise unknown_name("task", name, ["auto", *TASKS])
    kind, config = type(network), network.config
    fitting = [each for each in TASKS if isinstance(network, _heads(transformers, TASKS[each].head, config))]
    if config.num_labels == 1 or config.problem_type == "regression":
        fitting = [each for each in fitting if each != "classification"]
    else:
        fitting = [each for each in fitting if each != "regression"]
    if name not in ("auto", *fitting) or not fitting:
        wanted = f"the task '{name}'" if name != "auto" else "any task"
        held = f", only one for '{fitting[0]}'" if fitting else ""
        raise InputError(
            f"The model is a {kind.__name__}, which has no head for {wanted}{held}. Tune it first: "
            "hs.finetune(model, train, out=…), in the shell headscope finetune."
        )
    chosen = fitting[0] if name == "auto" else name
    if chosen == "classification":
        return Classification(tuple(_names(config)))
    if chosen == "choice":
        return Choice(len(examples[0].columns.get("choices", ())))
    made: Task = TASKS[chosen]()
    return made


def _guessed(train: Sequence[Example]) -> tuple[str, str]:
    labels = [each.label for each in train]
    if all(each.columns.get("choices") for each in train):
        return "choice", "every example has choices"
    if all(label is None for label in labels):
        raise InputError(
            f"None of the {len(labels):,} training examples has a label, so the task cannot be guessed. Name the "
            "column that holds it: hs.read(…, label=…), in the shell --label. Only fine-tuning for masked words, "
            "task='mlm', needs none."
        )
    if any(isinstance(label, float) for label in labels):
        return "regression", "labels are numbers with a fraction"
    named = any("label_name" in each.columns for each in train)
    return "classification", "labels are names of classes" if named else "labels are whole numbers"


def _heads(transformers: Any, auto: str, config: Any) -> tuple[type, ...]:
    """The classes with such a head, for this kind of model."""
    mapping = getattr(transformers, auto)._model_mapping
    found = mapping.get(type(config), ())
    return found if isinstance(found, tuple) else (found,)


def _names(config: Any) -> list[str]:
    """The classes by name; LABEL_0 and so on are no names."""
    return [
        str(place) if name == f"LABEL_{place}" else name
        for place, name in sorted((int(place), str(name)) for place, name in config.id2label.items())
    ]

"""A network with the head that a task needs, in float32, from pretrained weights or from none."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from headscope.core.errors import InputError, LoadError
from headscope.engine.load import default_folder
from headscope.engine.model import Model
from headscope.training.task import Task


def headed(model: Model, task: Task, *, from_scratch: bool) -> tuple[Any, list[str]]:
    """The network and the names of those of its weights that are new, and so random.

    Where the model comes from a folder or a hub, the head is looked for there too, and the pooler, which a model
    loaded for another task does not have.
    """
    import transformers

    auto, config = getattr(transformers, task.head), deepcopy(model.network.config)
    if type(config) not in auto._model_mapping:
        raise InputError(
            f"Models of type '{config.model_type}' have no head for the task '{task.name}' in transformers. Choose "
            "another model, such as a BERT."
        )
    task.configure(config)
    if from_scratch:
        network = auto.from_config(config)
        return network.float(), [name for name, _ in network.named_parameters()]
    if model.source is None:
        network = auto.from_config(config)
        new = {name for name, _ in network.named_parameters()}
    else:
        network, new = _pretrained(auto, model.source or default_folder(), config)
    network = network.float()
    taken = _take(network, model.network)
    return network, sorted(new - taken)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Chance as this seed has it, for as long as the block lasts; afterwards it goes on as if nothing had been."""
    kept = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])


def _pretrained(auto: Any, place: str, config: Any) -> tuple[Any, set[str]]:
    try:
        network, report = auto.from_pretrained(
            place, config=config, dtype=torch.float32, ignore_mismatched_sizes=True, output_loading_info=True
        )
    except (OSError, ValueError) as error:
        raise LoadError(
            f"The weights of {place} could not be read again: {error}. Is the folder still there?"
        ) from None
    return network, {*report["missing_keys"], *(each[0] for each in report["mismatched_keys"])}


def _take(network: Any, old: Any) -> set[str]:
    """Take over the weights that a model has now, which may differ from those it was loaded with; their names."""
    same = type(network) is type(old) and all(
        network.state_dict()[name].shape == each.shape for name, each in old.state_dict().items()
    )
    into, given = (network, old) if same else (network.base_model, old.base_model)
    lacking, _ = into.load_state_dict(given.state_dict(), strict=False)
    strange = [name for name in lacking if "pooler" not in name]
    if strange:
        raise InputError(
            f"The model in hand does not hold the weights of a {type(into).__name__}: it lacks {strange[0]}"
            f"{' and others' if len(strange) > 1 else ''}. Is it wrapped (PEFT, quantised)? Merge it first, or save it "
            "to a folder and give that."
        )
    inside = {id(each) for name, each in into.named_parameters(remove_duplicate=False) if name not in lacking}
    return {name for name, each in network.named_parameters(remove_duplicate=False) if id(each) in inside}

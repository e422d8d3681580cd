"""Build a network with the head of a task, in float32, from pretrained or random weights."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from headscope.core.errors import InputError, LoadError
from headscope.engine.default_model import default_folder
from headscope.engine.model import Model
from headscope.engine.pruning.prune import make_pruned_class
from headscope.engine.pruning.pruned_config import pruned_heads
from headscope.training.task import Task


def build_network(model: Model, task: Task, *, from_scratch: bool) -> tuple[Any, list[str]]:
    """Return the network, and the names of its new, randomly initialized weights.

    Where the model comes from a folder or a hub, the head and the pooler are loaded from there if present.
    """
    import transformers
    from transformers.models.auto.auto_factory import _get_model_class

    auto, config = getattr(transformers, task.head), deepcopy(model.network.config)
    if type(config) not in auto._model_mapping:
        raise InputError(
            f"Models of type '{config.model_type}' have no head for the task '{task.name}' in transformers. Choose "
            "another model, such as a BERT."
        )
    task.configure(config)
    if heads := pruned_heads(config):
        auto = make_pruned_class(_get_model_class(config, auto._model_mapping), model.family, heads)
    if from_scratch or model.source is None:
        network = auto._from_config(config) if heads else auto.from_config(config)
        new = {name for name, _ in network.named_parameters()}
    else:
        network, new = _load_pretrained(auto, model.source or default_folder(), config)
    network = network.float()
    if from_scratch:
        return network, [name for name, _ in network.named_parameters()]
    return network, sorted(new - _copy_weights(network, model.network))


@contextmanager
def seed_all(seed: int) -> Iterator[None]:
    """Seed all random generators in this block; restore them on exit."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)


def _load_pretrained(auto: Any, source: str, config: Any) -> tuple[Any, set[str]]:
    try:
        network, report = auto.from_pretrained(
            source, config=config, dtype=torch.float32, ignore_mismatched_sizes=True, output_loading_info=True
        )
    except (OSError, ValueError) as error:
        raise LoadError(
            f"The weights of {source} could not be read again: {error}. Is the folder still there?"
        ) from None
    return network, {*report["missing_keys"], *(key[0] for key in report["mismatched_keys"])}


def _copy_weights(network: Any, source: Any) -> set[str]:
    """Copy the current weights of a model, which may differ from those it was loaded with; return their names."""
    same = type(network) is type(source) and all(
        network.state_dict()[name].shape == weights.shape for name, weights in source.state_dict().items()
    )
    target, source = (network, source) if same else (network.base_model, source.base_model)
    missing, _ = target.load_state_dict(source.state_dict(), strict=False)
    unexpected = [name for name in missing if "pooler" not in name]
    if unexpected:
        raise InputError(
            f"The model does not hold the weights of a {type(target).__name__}: it lacks {unexpected[0]}"
            f"{' and others' if len(unexpected) > 1 else ''}. Is it wrapped (PEFT, quantised)? Merge it first, or save "
            "it to a folder and give that."
        )
    copied = {id(weights) for name, weights in target.named_parameters(remove_duplicate=False) if name not in missing}
    return {name for name, weights in network.named_parameters(remove_duplicate=False) if id(weights) in copied}

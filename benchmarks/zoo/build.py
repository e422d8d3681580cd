"""A tiny network of every type, with random weights and inputs that it runs on."""

import copy
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from benchmarks.zoo.inputs import add_image_tokens, make_inputs
from benchmarks.zoo.limit import TookLongError
from benchmarks.zoo.observe import Plain, run_plainly
from benchmarks.zoo.sizes import shrink

MAX_WEIGHTS = 40_000_000
KEPT = (
    "head_dim image_size patch_size window_size num_heads",
    "num_key_value_heads num_attention_heads head_dim hidden_size",
    "hidden_size num_attention_heads head_dim image_size patch_size",
    "hidden_sizes embed_dims depths num_heads embed_dim encoder_hidden_dim d_model",
)
"""Names of sizes that are left as they are, by attempt."""


class NoModelError(Exception):
    """A configuration that is only a part of others has no class of models."""


class NoInputsError(Exception):
    """Nothing is known that a model would read."""


@dataclass
class Specimen:
    """A network, inputs that it reads, and what a plain pass shows."""

    network: Any
    inputs: Mapping[str, Any]
    plain: Plain


def list_types() -> list[str]:
    """Return all model types of the installed library."""
    return sorted(CONFIG_MAPPING.keys())


def find_class(kind: type, tables: tuple[str, ...] = ()) -> Any:
    """Return the class of a configuration's model: of its body if there is one, else with a head."""
    every = [name for name in vars(modeling_auto) if name.startswith("MODEL_FOR_") and name.endswith("_NAMES")]
    for table in tables or ("MODEL_MAPPING_NAMES", "MODEL_FOR_PRETRAINING_MAPPING_NAMES", *every):
        name = getattr(modeling_auto, table).get(kind.model_type)  # type: ignore[attr-defined]
        if name is not None:
            found = getattr(transformers, name if isinstance(name, str) else name[0], None)
            if found is not None:
                return found
    raise NoModelError


def build(model_type: str) -> Specimen:
    """Return a tiny network of a type with random weights, and inputs that it runs on; raise what hinders it."""
    kind = CONFIG_MAPPING[model_type]
    architecture = find_class(kind)
    importlib.import_module("torch._dynamo")  # which a limit of time would leave half imported
    attempts: list[Callable[[], Any]] = [
        lambda: shrink(kind),
        lambda: shrink(kind, fill=True),
        *(lambda names=names: shrink(kind, frozenset(names.split())) for names in KEPT),  # type: ignore[misc]
        kind,
    ]
    errors: list[str] = []
    for attempt in attempts:
        try:
            network = make_network(architecture, attempt())
            return _find_inputs(network)
        except (TookLongError, NoModelError, NoInputsError):
            raise
        except Exception as error:
            errors.append(f"{type(error).__name__}: {str(error)[:160]}")
            if isinstance(error, ImportError):
                break
    raise RuntimeError(errors[0])


def make_network(architecture: Any, config: Any) -> Any:
    """Return a network with random weights whose attention is far from uniform."""
    with torch.device("meta"):
        weights = sum(weight.numel() for weight in architecture._from_config(copy.deepcopy(config)).parameters())
    if weights > MAX_WEIGHTS:
        raise RuntimeError(f"{weights:,} weights although its sizes are small")
    torch.manual_seed(0)
    network = architecture._from_config(copy.deepcopy(config))
    for name, weight in network.named_parameters():
        if weight.ndim > 1 and "embed" not in name.lower() and weight.is_floating_point():
            weight.data.mul_(4)
            if not weight.any():  # some begin as zeros, so that their heads write nothing
                weight.data.normal_(0, 0.1)
    return network.eval()


def _find_inputs(network: Any) -> Specimen:
    """Return the network with the first of several kinds of inputs that it runs on."""
    errors: list[Exception] = []
    candidates = list(make_inputs(network))
    while candidates:
        inputs = candidates.pop(0)
        try:
            return Specimen(network, inputs, run_plainly(network, inputs))
        except TookLongError:
            raise
        except Exception as error:
            errors.append(error)
            candidates = [*add_image_tokens(network, inputs, str(error)), *candidates]
    raise errors[-1] if errors else NoInputsError(f"reads {network.main_input_name}")

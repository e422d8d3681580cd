"""The part of the output projection that belongs to each head."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.core.errors import CaptureError
from headscope.engine.model import Model


def output_slices(model: Model, module: str, heads: Sequence[int], every: int) -> Float[Tensor, "head value hidden"]:
    """W_O cut by heads: what each head's context is multiplied with before the heads are summed."""
    weight: Tensor = projection(model, module).weight.detach()
    if not weight.is_floating_point():
        raise CaptureError(
            f"The output projection of {module} is quantised ({weight.dtype}). Load the model unquantised, or capture "
            "with keep=('attention', 'values')."
        )
    transposed = type(projection(model, module)).__name__ == "Conv1D"  # GPT-2 keeps it as input × output
    into = weight if transposed else weight.mT
    slices = into.reshape(every, -1, into.shape[-1])
    return slices if len(heads) == every else slices[torch.tensor(heads, device=slices.device)]


def projection(model: Model, module: str) -> Any:
    """The output projection that stands where the model's family says."""
    kind = model.network.config.model_type
    if model.family.projection is None:
        raise CaptureError(
            f"No family says where the output projection of model type '{kind}' stands. A family is one file; "
            "families/bert.py is the shortest example. Or capture with keep=('attention', 'values')."
        )
    path = module.split(".")
    for part in model.family.projection.split("/"):
        path = path[:-1] if part == ".." else [*path, part]
    return model.network.get_submodule(".".join(path))

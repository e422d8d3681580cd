"""How much memory there is, and how much maps take."""

import psutil
import torch

from headscope.engine.model import Model, read_size


def device_memory(model: Model) -> int:
    """Return the memory of a model's device, in bytes."""
    if model.device.type == "cpu":
        return int(psutil.virtual_memory().total)
    return int(torch.cuda.get_device_properties(model.device).total_memory)


def free_memory(model: Model) -> int:
    """Return how much memory of a model's device is free, in bytes."""
    if model.device.type == "cpu":
        return int(psutil.virtual_memory().available)
    return int(torch.cuda.mem_get_info(model.device)[0])


def count_map_bytes(model: Model, tokens: int, *, batch: int = 1, layers: int | None = None, copies: int = 1) -> int:
    """Return the memory of maps in float32: of this number of layers, by default all, and of copies of them."""
    config = model.network.config.get_text_config()
    depth = read_size(config, "num_hidden_layers") if layers is None else layers
    return 4 * batch * depth * read_size(config, "num_attention_heads") * tokens**2 * copies

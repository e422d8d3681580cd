"""The transformers model inside what others wrapped around it."""

from typing import Any

from torch import nn

from headscope.core.errors import LoadError


def unwrapped(network: Any) -> Any:
    """The model that torch.compile or PEFT wrapped, adapters and all; a wrapper that changes tokens is refused."""
    network = getattr(network, "_orig_mod", network)  # what torch.compile wrapped
    if isinstance(network, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise LoadError(
            f"{type(network).__name__} runs copies of a model, and a trace holds one. Give the model inside: "
            "hs.load(network.module)."
        )
    if hasattr(network, "peft_config") and hasattr(network, "get_base_model"):
        for each in network.peft_config.values():
            if each.is_prompt_learning or each.is_adaption_prompt:
                raise LoadError(
                    f"This PEFT model ({each.peft_type.value}) puts learned tokens before the text, without a name. "
                    "Without them it can be captured: hs.load(network.get_base_model())."
                )
        network = network.get_base_model()  # LoRA and its like live in its layers
    if (
        isinstance(network, nn.Module)
        and all(each.is_meta for each in network.parameters())
        and not _offloaded(network)
    ):
        raise LoadError(
            f"This {type(network).__name__} is on the meta device: it has shapes, but no weights. Load it with "
            "from_pretrained, or fill it first."
        )
    return network


def _offloaded(network: nn.Module) -> bool:
    """Whether accelerate keeps the weights elsewhere and brings them when they are needed."""
    return any(hasattr(each, "_hf_hook") for each in network.modules())

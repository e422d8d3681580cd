"""A model, its tokenizer, and what headscope knows of its kind."""

import hashlib
from dataclasses import dataclass
from typing import Any

import torch

from headscope.core.errors import InputError
from headscope.core.family import Family


@dataclass(frozen=True)
class Model:
    """A transformers network with its tokenizer; made by `hs.load`, and never a subclass of either."""

    network: Any
    tokenizer: Any
    family: Family
    spec: str
    processor: Any = None  # makes pixel values of pictures, for models that read those
    source: str | None = None  # what hs.load can load it from again, "" for the default; None for one in hand

    def __repr__(self) -> str:
        return f"Model({self.spec}: {type(self.network).__name__}, family {type(self.family).__name__.lower()})"

    @property
    def device(self) -> torch.device:
        """Where its inputs go; accelerate brings weights that it keeps elsewhere there when they are needed."""
        found: torch.device = self.network.device
        hooks = (getattr(each, "_hf_hook", None) for each in self.network.modules())
        places = (getattr(hook, "execution_device", None) for hook in hooks)
        return (
            next((torch.device(each) for each in places if each is not None), found) if found.type == "meta" else found
        )

    @property
    def weights_hash(self) -> str:
        """A fingerprint of the weights as they are now, whatever file or device they came from."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.network.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()


def check_model(model: Any) -> None:
    """Refuse what `hs.load` did not make."""
    if not isinstance(model, Model):
        raise InputError(
            f"Expected a model made by hs.load, but got {type(model).__name__}. "
            "Wrap what you have: hs.load(network, tokenizer=tokenizer)."
        )

"""A model, its tokenizer, and what headscope knows of its kind."""

import hashlib
from dataclasses import dataclass
from typing import Any

import torch

from headscope.core.family import Family


@dataclass(frozen=True)
class Model:
    """A transformers network with its tokenizer; made by `hs.load`, and never a subclass of either."""

    network: Any
    tokenizer: Any
    family: Family
    spec: str

    def __repr__(self) -> str:
        return f"Model({self.spec}: {type(self.network).__name__}, family {type(self.family).__name__.lower()})"

    @property
    def weights_hash(self) -> str:
        """A fingerprint of the weights as they are now, whatever file or device they came from."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.network.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()

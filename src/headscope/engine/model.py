"""A loaded model: a transformers network, its tokenizer and its family."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headscope.core.catalog import HasCard
from headscope.core.errors import InputError
from headscope.core.family import Family
from headscope.engine.offloaded import find_hook_device, read_weights
from headscope.results.disk import raise_os_errors

SOUND_INPUTS = ("input_features", "input_values")
"""What models of sounds call samples and spectrograms."""


@dataclass(frozen=True)
class Model(HasCard):
    """A transformers network with its tokenizer, as loaded by `hs.load`.

    >>> model.family.kinds, model.device.type in ("cpu", "cuda")
    (('bert', 'electra'), True)
    """

    network: Any
    tokenizer: Any
    family: Family
    spec: str
    processor: Any = None  # the image processor of a vision model, the feature extractor of a model of sounds
    source: str | None = None  # what hs.load can load again, "" for the default; None for a network given in memory

    def __repr__(self) -> str:
        return f"Model({self.spec}: {type(self.network).__name__}, family {type(self.family).__name__.lower()})"

    @property
    def device(self) -> torch.device:
        """The device of the inputs; for offloaded weights the device that accelerate executes them on."""
        device: torch.device = self.network.device
        if device.type == "meta":
            devices = map(find_hook_device, self.network.modules())
            return next((target for target in devices if target is not None), device)
        return device

    def write_folder(self, folder: Path) -> None:
        """Write network, tokenizer and processor to a folder that `hs.load` reads; for `hs.save`.

        Parameters
        ----------
        folder
            A folder that exists.
        """
        from headscope.engine.load import silence_transformers

        with silence_transformers(), raise_os_errors():
            for component in (self.network, self.tokenizer, self.processor):
                if component is not None:
                    component.save_pretrained(folder)

    @property
    def weights_hash(self) -> str:
        """A fingerprint of the current weights; the same for every file and device they come from."""
        digest = hashlib.sha256()
        for name, tensor in read_weights(self.network):
            digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
            values: Any = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
            digest.update(values)
        return digest.hexdigest()


def read_size(config: Any, name: str) -> int:
    """Return a size from a config, the largest of several (Swin has heads for each stage); 12 where it has none."""
    size = getattr(config, name, None) or 12
    return int(max(size) if isinstance(size, list | tuple) else size)


def check_model(model: Any) -> None:
    """Raise InputError for anything that `hs.load` did not return."""
    if not isinstance(model, Model):
        raise InputError(
            f"Expected a model made by hs.load, but got {type(model).__name__}. "
            "Wrap what you have: hs.load(network, tokenizer=tokenizer)."
        )


def name_modules(network: Any) -> dict[Any, str]:
    """Return the name of every module, as `network.named_modules()` does, but faster: every capture needs it.

    >>> list(name_modules(torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()), torch.nn.ReLU())).values())
    ['', '0', '0.0', '1']
    """
    names: dict[Any, str] = {}

    def walk(module: Any, name: str) -> None:
        names[module] = name
        prefix = f"{name}." if name else ""
        for child_name, child in module._modules.items():
            if child is not None and child not in names:
                walk(child, prefix + child_name)

    walk(network, "")
    return names


def find_word_embeddings(network: Any) -> tuple[str, Any] | None:
    """Return the layer that embeds the words, and its name; None if the model reads no words.

    `network.get_input_embeddings()` fails for some models with several towers (CLIP), or returns those of images. Some
    have a few more rows than the config says (Mllama); those are found by their name.
    """
    config = network.config.get_text_config()
    rows = getattr(config, "vocab_size", None)
    layers = [(name, module) for module, name in name_modules(network).items() if "position" not in name]
    layers = [(name, module) for name, module in layers if rows and getattr(module, "num_embeddings", 0) >= rows]
    exact = (named_layer for named_layer in layers if named_layer[1].num_embeddings == rows)
    by_name = (named_layer for named_layer in layers if named_layer[0].endswith("embed_tokens"))
    return next(exact, None) or next(by_name, None)

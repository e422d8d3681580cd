"""A small convolutional classifier of patterns: eight convolutions with ReLU, after Kovaleva et al. (2019)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from headscope.core.checksum import PLACEHOLDER, DamagedFile, guard_reading, seal, verify
from headscope.core.errors import InputError
from headscope.patterns import CLASSES
from headscope.patterns.classify.normalize import NormalizedMaps
from headscope.patterns.classify.profiles import compute_profiles
from headscope.patterns.classify.resize import CHANNELS, resize_maps
from headscope.patterns.classify.rules import compute_scores
from headscope.results.atomic import atomic_path

SCORES = 4
BUNDLED = Path(__file__).with_name("cnn.safetensors")
BUNDLED_SHA256 = "8b47eacb648e4ac2965dff13408440eba595e8b15db1ea052e25e2a9ce42eb57"
CHECKSUM = "checksum"
MAX_SIDE = 1024  # pixels, far beyond any use
DAMAGED = "it is not a pattern classifier written by headscope, or it is damaged. Train one: headscope patterns train."


@dataclass(frozen=True)
class CnnSettings:
    """Hyperparameters of the networks and their training; none was chosen on test maps.

    The names of the fields are part of the file format.
    """

    side: int = 32  # pixels of an image
    widths: tuple[int, ...] = (16, 24, 24, 24, 32, 32, 32, 32)
    strides: tuple[int, ...] = (2, 1, 2, 1, 1, 2, 1, 1)
    middle: int = 32  # hidden features between convolutions and classes
    nets: int = 2  # networks in the ensemble; they differ in their initial weights
    epochs: int = 30
    batch: int = 64
    rate: float = 1e-2  # maximum learning rate
    decay: float = 0.02  # weight decay
    memory: float = 0.98  # decay of the exponential moving average of weights
    dropout: float = 0.2
    smoothing: float = 0.05  # label smoothing
    balance: float = 0.5  # classes are weighted by frequency ** −balance
    power: float = 0.2  # augmentation: weights are raised to a power between exp(−power) and exp(power)
    jitter: float = 0.2  # augmentation: largest standard deviation of multiplicative noise, in logarithms
    mixed: float = 0.1  # augmentation: largest share of random rows mixed in
    cut: float = 0.2  # augmentation: largest share of the tokens cut out
    hand_built: int = 300  # synthetic maps added to the training set
    hand_built_weight: float = 0.3  # sample weight of a synthetic map; that of a labelled one is 1
    folds: int = 5


DEFAULT_SETTINGS = CnnSettings()


class PatternNet(nn.Module):
    """Logits of the classes from images of maps and the four scores of the rules.

    With `batch_norm`, for training, each convolution is normalised; `fuse_batch_norm` folds that into its weights.
    """

    def __init__(self, settings: CnnSettings = DEFAULT_SETTINGS, *, batch_norm: bool = False) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = len(CHANNELS)
        for width, stride in zip(settings.widths, settings.strides, strict=True):
            layers += [nn.Conv2d(channels, width, 3, stride, 1), *[nn.BatchNorm2d(width)] * batch_norm, nn.ReLU()]
            channels = width
        self.layers = nn.Sequential(*layers)
        self.dropout = nn.Dropout(settings.dropout)
        self.middle = nn.Linear(2 * channels + SCORES, settings.middle)
        self.last = nn.Linear(settings.middle, len(CLASSES))

    def forward(
        self, images: Float[Tensor, "map channel side side"], scores: Float[Tensor, "map score"]
    ) -> Float[Tensor, "map pattern"]:
        """Return the logits, from the mean and the maximum of every feature."""
        features = self.layers(images).flatten(2)
        pooled = self.dropout(torch.cat([features.mean(-1), features.amax(-1)], dim=-1))
        logits: Tensor = self.last(torch.relu(self.middle(torch.cat([pooled, scores], dim=-1))))
        return logits


def make_inputs(maps: NormalizedMaps, side: int) -> tuple[Tensor, Tensor]:
    """Return the images of maps, and their scores scaled to about −1 to 3."""
    profiles = compute_profiles(maps)
    images = resize_maps(maps, side, profiles).contiguous(memory_format=torch.channels_last)
    return images, 4 * compute_scores(maps, profiles) - 1


def fuse_batch_norm(net: PatternNet, settings: CnnSettings) -> PatternNet:
    """Return an equal network without batch normalisation, ready for inference."""
    convolutions = [
        fuse_conv_bn_eval(conv, norm)
        for conv, norm in pairwise(net.eval().layers)
        if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
    ]
    fused = PatternNet(settings)
    fused.layers = nn.Sequential(*(layer for conv in convolutions for layer in (conv, nn.ReLU())))
    fused.middle, fused.last = net.middle, net.last
    return _prepare_inference(fused, torch.device("cpu"))


def _prepare_inference(net: PatternNet, device: torch.device) -> PatternNet:
    frozen = cast(Any, net.eval().requires_grad_(False))
    return cast(PatternNet, frozen.to(device, non_blocking=True, memory_format=torch.channels_last))


@dataclass(frozen=True, eq=False)
class CnnEnsemble:
    """Networks whose mean logits decide, with their metadata."""

    nets: tuple[PatternNet, ...]
    side: int
    temperature: float
    metadata: Mapping[str, Any]

    def __call__(self, maps: NormalizedMaps) -> Float[Tensor, "map pattern"]:
        """Return class probabilities; NaN for maps that cannot have a pattern."""
        return (self.logits(maps) / self.temperature).softmax(-1).masked_fill(~maps.valid[:, None], torch.nan)

    def logits(self, maps: NormalizedMaps) -> Float[Tensor, "map pattern"]:
        """Return the mean logits of the networks."""
        with torch.inference_mode():
            inputs = make_inputs(maps, self.side)
            return torch.stack([net(*inputs) for net in self.nets]).mean(0)


def read_cnn(path: Path, device: torch.device) -> CnnEnsemble:
    """Read the networks of a file, once for each device."""
    modified = path.stat().st_mtime_ns if path.is_file() else 0
    return _read(path.resolve(), modified, device)


@cache
def _read(path: Path, modified: int, device: torch.device) -> CnnEnsemble:  # noqa: ARG001  (part of the cache key)
    _require_file(path)
    with guard_reading(path, DAMAGED):
        metadata, tensors = _parse(path)
        values: dict[str, Any] = metadata["settings"]
        settings = CnnSettings(**values | {name: tuple(values[name]) for name in ("widths", "strides")})
        if not _is_sound(settings):
            raise DamagedFile("Its settings are out of range.")
        nets = [_build_net(settings, _select(tensors, index)) for index in range(settings.nets)]
        temperature = float(metadata["temperature"])
        if len(tensors) != sum(len(net.state_dict()) for net in nets) or not 0 < temperature < inf:
            raise DamagedFile("Its networks and its metadata do not fit together.")
        return CnnEnsemble(tuple(_prepare_inference(net, device) for net in nets), settings.side, temperature, metadata)


def _is_sound(settings: CnnSettings) -> bool:
    """Return whether the settings that no weight depends on are possible."""
    sizes = (settings.side, settings.nets, *settings.strides)
    return all(type(size) is int for size in sizes) and min(sizes) >= 1 and max(sizes) <= MAX_SIDE


def _select(tensors: Mapping[str, Tensor], index: int) -> dict[str, Tensor]:
    prefix = f"{index}."
    return {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}


def _build_net(settings: CnnSettings, tensors: Mapping[str, Tensor]) -> PatternNet:
    """Return a network with these weights; no memory is allocated for settings that they do not fit."""
    with torch.device("meta"):
        net = PatternNet(settings)
    expected = {key: (tensor.shape, tensor.dtype) for key, tensor in net.state_dict().items()}
    if expected != {key: (tensor.shape, tensor.dtype) for key, tensor in tensors.items()}:
        raise DamagedFile("Its weights do not have the shapes of its settings.")
    net.load_state_dict(tensors, assign=True)
    return net


def write_cnn(cnn: CnnEnsemble, path: Path) -> None:
    """Write the networks to one safetensors file, with their metadata as JSON."""
    tensors = {
        f"{index}.{key}": tensor.detach().cpu().contiguous()
        for index, net in enumerate(cnn.nets)
        for key, tensor in net.state_dict().items()
    }
    metadata = json.dumps({**cnn.metadata, CHECKSUM: PLACEHOLDER}, sort_keys=True)
    content = seal(save(tensors, {"headscope": metadata}))  # safetensors writes several entries in any order
    with atomic_path(path) as part:  # safetensors.save_file would make the file readable by its owner only
        part.write_bytes(content)


def read_metadata(path: Path = BUNDLED) -> dict[str, Any]:
    """Read the metadata of a file: seed, settings, labels, temperature and confusion matrices."""
    _require_file(path)
    with guard_reading(path, DAMAGED):
        return _parse(path)[0]


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(
            f"There is no classifier of patterns at {path}. Name 'cnn', 'rules' or 'both', or train one: "
            "headscope patterns train --labels FOLDER -o my.safetensors."
        )


def _parse(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the metadata and the weights of a file, and verify its checksum; any error may be raised."""
    content = path.read_bytes()
    sealed = verify(content)
    if path.resolve() == BUNDLED.resolve() and hashlib.sha256(content).hexdigest() != BUNDLED_SHA256:
        raise DamagedFile("It is not the file that headscope comes with.")
    with safe_open(path, "pt") as file:
        metadata: dict[str, Any] = dict(json.loads((file.metadata() or {})["headscope"]))
        if (metadata.pop(CHECKSUM, None) is not None) != sealed:
            raise DamagedFile("It lost its checksum.")
        return metadata, {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  (no dict)

"""A small network that tells patterns apart: eight convolutions with ReLU, after Kovaleva et al. (2019)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from headscope.core.errors import InputError
from headscope.patterns.classes import CLASSES
from headscope.patterns.classify.profiles import profiles_of
from headscope.patterns.classify.resize import CHANNELS, pictures
from headscope.patterns.classify.row_weights import Sizes
from headscope.patterns.classify.rules import scores_of
from headscope.patterns.classify.settings import USUAL, CnnSettings
from headscope.results.atomic import atomic_path

SCORES = 4
BUNDLED = Path(__file__).with_name("cnn.safetensors")


class Net(nn.Module):
    """From pictures, and the four scores that rules go by, to a score for each class.

    While it is trained, its convolutions are normalised over a batch; `fused` puts that into their weights.
    """

    def __init__(self, settings: CnnSettings = USUAL, *, normalised: bool = False) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = len(CHANNELS)
        for width, stride in zip(settings.widths, settings.strides, strict=True):
            layers += [nn.Conv2d(before, width, 3, stride, 1), *[nn.BatchNorm2d(width)] * normalised, nn.ReLU()]
            before = width
        self.layers = nn.Sequential(*layers)
        self.dropout = nn.Dropout(settings.dropout)
        self.middle = nn.Linear(2 * before + SCORES, settings.middle)
        self.last = nn.Linear(settings.middle, len(CLASSES))

    def forward(
        self, seen: Float[Tensor, "map channel side side"], scores: Float[Tensor, "map score"]
    ) -> Float[Tensor, "map pattern"]:
        """The scores, from the mean and the largest value of every feature."""
        found = self.layers(seen).flatten(2)
        features = self.dropout(torch.cat([found.mean(-1), found.amax(-1)], dim=-1))
        decided: Tensor = self.last(torch.relu(self.middle(torch.cat([features, scores], dim=-1))))
        return decided


def seen_by_net(sizes: Sizes, side: int) -> tuple[Tensor, Tensor]:
    """The pictures of maps, and their scores, spread to about −1 to 3."""
    profiles = profiles_of(sizes)
    found = scores_of(sizes, profiles)
    scores = torch.stack([found.column, found.band, found.uniform, found.blocks], dim=-1)
    return pictures(sizes, side, profiles).contiguous(memory_format=torch.channels_last), 4 * scores - 1


def fused(net: Net, settings: CnnSettings) -> Net:
    """The same network without normalisation, ready for use."""
    plain, parts = Net(settings), list(net.eval().layers)
    pairs = [(one, other) for one, other in pairwise(parts) if isinstance(one, nn.Conv2d)]
    whole = [fuse_conv_bn_eval(conv, norm) for conv, norm in pairs if isinstance(norm, nn.BatchNorm2d)]
    plain.layers = nn.Sequential(*(each for conv in whole for each in (conv, nn.ReLU())))
    plain.middle, plain.last = net.middle, net.last
    return ready(plain, torch.device("cpu"))


def ready(net: Net, device: torch.device) -> Net:
    """A network that only answers."""
    found: Net = cast(Any, net.eval().requires_grad_(False)).to(
        device, non_blocking=True, memory_format=torch.channels_last
    )
    return found


@dataclass(frozen=True, eq=False)
class Cnn:
    """Some networks whose mean decides, and what is known of how they were made."""

    nets: tuple[Net, ...]
    side: int
    temperature: float
    about: Mapping[str, Any]

    def __call__(self, sizes: Sizes) -> Float[Tensor, "map pattern"]:
        """How likely each class is; NaN for maps that can have no pattern."""
        return (self.scores(sizes) / self.temperature).softmax(-1).masked_fill(~sizes.known[:, None], torch.nan)

    def scores(self, sizes: Sizes) -> Float[Tensor, "map pattern"]:
        """The mean of the networks' scores."""
        with torch.inference_mode():
            seen = seen_by_net(sizes, self.side)
            return torch.stack([net(*seen) for net in self.nets]).mean(0)


def read_cnn(path: Path, device: torch.device) -> Cnn:
    """The networks of a file, read once for each device."""
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    return _read(path.resolve(), changed, device)


@cache
def _read(path: Path, changed: int, device: torch.device) -> Cnn:  # noqa: ARG001  (a new file is read anew)
    about, tensors = _opened(path)
    settings = CnnSettings(**{name: _plain(each) for name, each in about["settings"].items()})
    nets = []
    for place in range(settings.nets):
        net = Net(settings)
        start = f"{place}."
        net.load_state_dict({key.removeprefix(start): each for key, each in tensors.items() if key.startswith(start)})
        nets.append(ready(net, device))
    return Cnn(tuple(nets), settings.side, about["temperature"], about)


def write_cnn(cnn: Cnn, path: Path) -> None:
    """The networks in one file; what is known of them is its one line of metadata."""
    tensors = {f"{place}.{key}": each for place, net in enumerate(cnn.nets) for key, each in net.state_dict().items()}
    whole = {key: each.detach().cpu().contiguous() for key, each in tensors.items()}
    with atomic_path(path) as part:  # as bytes: what safetensors itself writes, only its owner may read
        part.write_bytes(save(whole, {"headscope": json.dumps(dict(cnn.about), sort_keys=True)}))


def about_cnn(path: Path = BUNDLED) -> dict[str, Any]:
    """What a file of networks says of itself: seed, settings, labels, temperature, and how it erred."""
    return _opened(path)[0]


def _opened(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not path.is_file():
        raise InputError(
            f"There is no classifier of patterns at {path}. Name 'cnn', 'rules' or 'both', or train one: "
            "headscope patterns train --labels FOLDER -o my.safetensors."
        )
    try:
        with safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {})["headscope"])
            return about, {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  (no dict)
    except (SafetensorError, KeyError) as error:
        raise InputError(
            f"{path} is no classifier of patterns that headscope wrote. Train one: headscope patterns train."
        ) from error


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value

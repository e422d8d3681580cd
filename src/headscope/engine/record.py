"""What a model's attention modules compute during one forward pass."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.core.errors import CaptureError, InputError
from headscope.core.family import Family
from headscope.engine.hooks import hooked
from headscope.engine.interface import Listener, listening
from headscope.engine.model import Model


@dataclass(frozen=True)
class Call:
    """One layer's attention, as its module computed it."""

    module: str
    attention: Float[Tensor, "batch head query key"]
    values: Float[Tensor, "batch head key value"]  # shared value heads repeated
    context: Float[Tensor, "batch head query value"]
    mask: Tensor | None
    group: int = 1  # consecutive heads that share their values

    def seen(self) -> Bool[Tensor, "#batch #query key"] | None:
        """Which keys each query may see, from the mask that the module got; None means all."""
        if self.mask is None:
            return None
        mask = self.mask[..., : self.attention.shape[-1]]
        seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        if seen.shape[1] > 1 and not torch.equal(seen, seen[:, :1].expand_as(seen)):
            raise CaptureError(f"In {self.module} heads differ in the keys they see, which a trace cannot hold.")
        return seen[:, 0]


def repeated(values: Float[Tensor, "batch _ key value"], heads: int) -> Float[Tensor, "batch {heads} key value"]:
    """The values for each head, where several share them (grouped queries)."""
    groups = heads // values.shape[1]
    return values.repeat_interleave(groups, dim=1) if groups > 1 else values


@dataclass
class Recorder:
    """Notes the calls at one site, in their order, and counts them at every site.

    The order of calls numbers the layers: a module may serve all of them (ALBERT), and some know no number.
    """

    names: dict[int, str]  # attention modules of the model, by identity
    family: Family
    site: str
    calls: list[Call] = field(default_factory=list)
    sites: dict[str, int] = field(default_factory=dict)

    def knows(self, module: Any) -> bool:
        """Whether the module belongs to the model that is being captured."""
        return id(module) in self.names

    def note(self, module: Any, attention: Tensor, values: Tensor, context: Tensor, mask: Tensor | None) -> None:
        """Keep one call, if it is at the site that was asked for."""
        name = self.names[id(module)]
        site = self.family.site(name)
        self.sites[site] = self.sites.get(site, 0) + 1
        if site == self.site:
            every, group = repeated(values, attention.shape[1]).detach(), attention.shape[1] // values.shape[1]
            self.calls.append(Call(name, attention.detach(), every, context.detach(), mask, group))


def record(model: Model, tensors: Mapping[str, Any], site: str) -> Recorder:
    """Run the model once and note its attention at one site."""
    recorder = recorder_for(model, site)
    with torch.no_grad(), hearing(model, recorder):
        model.network(**tensors)
    check_heard(model, recorder)
    return recorder


def hearing(model: Model, listener: Listener) -> AbstractContextManager[None]:
    """Listen as the model's kind needs it: at the library's attention interface, or with hooks."""
    family = model.family
    if family.hooks:
        return hooked(model.network, family.hooks, family.projection, listener)
    return listening(model.network, listener)


def recorder_for(model: Model, site: str) -> Recorder:
    """A recorder that knows the model's modules and has heard nothing yet."""
    names = {id(module): name for name, module in model.network.named_modules()}
    return Recorder(names, model.family, site)


def check_heard(model: Model, recorder: Recorder) -> None:
    """Refuse a recording that misses its site, or that is not what the heads computed."""
    kind, site = model.network.config.model_type, recorder.site
    if not recorder.sites:
        raise CaptureError(
            f"Models of type '{kind}' compute attention without the library's attention interface, so nothing was "
            f"captured. Add a file families/{kind.replace('-', '_')}.py that says where their attention and values "
            "are; families/gptj.py is the shortest example."
        )
    if site not in recorder.sites:
        raise InputError(f"This model has no attention site '{site}'. Its sites: {', '.join(sorted(recorder.sites))}.")
    if model.family.hooks or not model.family.kinds:
        for call in recorder.calls:
            _check_reconstruction(call, kind)


def _check_reconstruction(call: Call, kind: str) -> None:
    """For a kind that no family describes or that hooks listen to: what was heard must be what the head computed."""
    rebuilt = (call.attention.float() @ call.values.float()).to(call.context.dtype)
    loose = 1e-4 if call.context.dtype in (torch.float32, torch.float64) else 2e-2
    if call.context.shape != rebuilt.shape or not torch.allclose(rebuilt, call.context, rtol=loose, atol=loose):
        raise CaptureError(
            f"In {call.module} attention times values is not what the head computed, so models of type '{kind}' need a "
            f"file families/{kind.replace('-', '_')}.py that says what else happens there."
        )

"""Which outputs of linear layers each head depends on, found by data flow: gradients of what the heads compute.

Packed projections, rotary positions, normalization by head and shared keys need no description: an output of a layer
belongs to the heads whose context changes with it.
"""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.engine.capture import record_calls
from headscope.engine.model import Model, name_modules
from headscope.engine.pruning.cut_layers import is_linear
from headscope.engine.recording.output_projection import find_projection, has_projection, search_projections
from headscope.engine.recording.recorder import check_recording, find_module
from headscope.engine.recording.sites import find_sites


@dataclass(frozen=True)
class AttentionLayer:
    """The attention of one layer: a call of a module, which may compute attention in several places."""

    module: str
    heads: int
    projections: list[tuple[str, int]] = field(default_factory=list)
    """The layers that read the heads side by side, and what a head writes there; none if something comes between."""


@dataclass
class HeadRows:
    """The attention layers of a model by site and number, in the order of calls, and what their heads depend on."""

    layers: dict[str, dict[int, AttentionLayer]] = field(default_factory=lambda: defaultdict(dict))
    users: dict[str, dict[tuple[str, int, int], Bool[Tensor, " row"]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """By linear layer, and by site, layer and head: which outputs of the linear layer that head depends on."""

    def find_removable(self, layer: str, removed: set[tuple[str, int, int]]) -> Bool[Tensor, " row"]:
        """Return which outputs of a linear layer only removed heads depend on."""
        users = self.users[layer]
        needed = [rows for head, rows in users.items() if head not in removed]
        used = torch.stack(list(users.values())).any(0)
        return used & ~torch.stack(needed).any(0) if needed else used

    def find_sharing(self, removed: set[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
        """Return the heads of the same layers that share outputs with removed ones, without those that all share."""
        sharing: set[tuple[str, int, int]] = set()
        for users in self.users.values():
            for site, layer, head in removed & users.keys():
                peers = [other for other in users if other[:2] == (site, layer)]
                same = {other for other in peers if bool((users[other] & users[site, layer, head]).any())}
                sharing |= same if len(same) < len(peers) else set()
        return sharing - removed

    def find_unread(self, removed: set[tuple[str, int, int]]) -> dict[str, Bool[Tensor, " column"]]:
        """Return, by output projection, which of its inputs only removed heads write."""
        unread: dict[str, Tensor] = {}
        for site, layers in self.layers.items():
            for number, layer in layers.items():
                gone = torch.tensor([(site, number, head) in removed for head in range(layer.heads)])
                for projection, size in layer.projections:
                    columns = gone.repeat_interleave(size)
                    unread[projection] = unread.get(projection, columns) & columns  # ALBERT: by all layers
        return {name: columns for name, columns in unread.items() if bool(columns.any())}


def find_head_rows(model: Model, inputs: Mapping[str, Any]) -> HeadRows:
    """Run a model on an example, and return which outputs of its linear layers its heads depend on."""
    names, sites = name_modules(model.network), find_sites(model)
    found = HeadRows()
    outputs: list[tuple[str, Tensor]] = []  # of linear layers, where the graphs begin

    def begin_graph(layer: Any, _: Any, output: Any) -> Any:
        if not isinstance(output, Tensor):  # of a router
            return output
        leaf = output.detach().requires_grad_()
        outputs.append((names[layer], leaf))
        return leaf.clone()  # which the model may change in place

    def note(computation: str, context: Tensor) -> None:
        module = find_module(computation)
        layers = found.layers[sites.find(module)]
        if module == computation:
            layers[sites.number(module, len(layers))] = AttentionLayer(module, context.shape[1])
        number = sites.number(module, len(layers) - 1)
        if (projection := _name_projection(model, names, computation)) is not None:
            layers[number].projections.append((projection, context.shape[-1]))
        if outputs and context.requires_grad:
            _note_users(found, (sites.find(module), number), context, outputs)

    with (
        torch.random.fork_rng(),
        torch.no_grad(),
        record_calls(model, "") as recorder,
        search_projections(model, recorder),
    ):
        model.network(**inputs)
    if not recorder.modules:
        check_recording(model, recorder)  # which says that there is no attention
    with torch.random.fork_rng(), torch.enable_grad(), record_calls(model, "") as recorder, ExitStack() as stack:
        recorder.on_context = note
        for layer in filter(is_linear, names):
            stack.enter_context(layer.register_forward_hook(begin_graph))
        model.network(**inputs)
    return found


def _name_projection(model: Model, names: Mapping[Any, str], module: str) -> str | None:
    """Return the name of a module's output projection, if that is a linear layer."""
    layer = find_projection(model, module) if has_projection(model, module) else None
    return names[layer] if is_linear(layer) else None


def _note_users(found: HeadRows, layer: tuple[str, int], context: Tensor, outputs: list[tuple[str, Tensor]]) -> None:
    """Note on which outputs the heads of a context depend: those with a gradient."""
    leaves = [leaf for _, leaf in outputs]
    direction = torch.randn(context.shape, generator=torch.Generator().manual_seed(0)).to(context)
    for head in range(context.shape[1]):
        score = (context[:, head] * direction[:, head]).sum()
        gradients = torch.autograd.grad(score, leaves, retain_graph=True, allow_unused=True)
        for (name, _), gradient in zip(outputs, gradients, strict=True):
            if gradient is not None and bool((rows := gradient.flatten(0, -2).ne(0).any(0).cpu()).any()):
                known = found.users[name].get((*layer, head))
                found.users[name][(*layer, head)] = rows if known is None else rows | known

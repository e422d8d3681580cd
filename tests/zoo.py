"""Every model type of the installed transformers, built tiny, and what a capture of it gives.

PYTHONPATH=src:. python -m tests.zoo [TYPE …] [--out FILE.json]

Configurations are those of the library with all sizes made small, by the names of their attributes. Each capture is
compared with what the modules of the same network return in a plain pass with eager attention.
"""

import argparse
import copy
import inspect
import json
import random
import re
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from headscope.core.errors import DataWarning, HeadscopeError
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.engine.load import load
from headscope.engine.model import name_modules
from headscope.engine.recording.sites import _remove_numbers, find_sites
from tests.models import VOCAB, tokenizer

SECONDS = 60
"""The time limit of one type."""

MAX_WEIGHTS = 20_000_000
LIMIT = 1e-5  # float32 softmax over a few keys

SIZES: list[tuple[tuple[str, ...], int]] = [
    (
        (
            "num_hidden_layers",
            "num_layers",
            "n_layer",
            "n_layers",
            "depth",
            "num_blocks",
            "encoder_layers",
            "decoder_layers",
            "num_encoder_layers",
            "num_decoder_layers",
            "num_hidden_groups",
            "num_block_layers",
        ),
        2,
    ),
    (("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"), 2),
    (
        (
            "num_attention_heads",
            "num_heads",
            "n_head",
            "n_heads",
            "attention_heads",
            "linear_num_value_heads",
            "linear_num_key_heads",
            "index_n_heads",
            "num_query_heads",
            "mamba_n_heads",
        ),
        4,
    ),
    (
        (
            "head_dim",
            "d_kv",
            "kv_channels",
            "qk_rope_head_dim",
            "qk_nope_head_dim",
            "v_head_dim",
            "qk_head_dim",
            "attention_head_dim",
            "linear_key_head_dim",
            "linear_value_head_dim",
            "index_head_dim",
            "head_size",
            "rotary_dim",
            "kv_lora_rank",
            "q_lora_rank",
            "lora_rank",
            "q_rank",
            "o_lora_rank",
            "mamba_d_head",
        ),
        8,
    ),
    (
        (
            "hidden_size",
            "d_model",
            "n_embd",
            "dim",
            "embed_dim",
            "width",
            "hidden_dim",
            "projection_dim",
            "emb_dim",
            "embedding_size",
            "text_embed_dim",
            "model_dim",
            "encoder_hidden_size",
            "decoder_hidden_size",
            "out_hidden_size",
            "output_dim",
            "projector_hidden_size",
            "mamba_d_ssm",
            "encoder_embed_dim",
            "decoder_embed_dim",
            "d_embed",
            "output_channels",
        ),
        32,
    ),
    (
        (
            "intermediate_size",
            "ffn_dim",
            "d_ff",
            "n_inner",
            "d_inner",
            "mlp_dim",
            "ffn_hidden_size",
            "feed_forward",
            "moe_intermediate_size",
            "shared_expert_intermediate_size",
            "dense_intermediate_size",
            "feedforward_dim",
            "shared_intermediate_size",
            "encoder_ffn_dim",
            "decoder_ffn_dim",
            "dim_feedforward",
            "expert_dim",
        ),
        48,
    ),
    (
        (
            "max_position_embeddings",
            "n_positions",
            "max_seq_len",
            "max_source_positions",
            "max_target_positions",
            "max_sequence_length",
            "original_max_position_embeddings",
            "max_length",
            "seq_length",
            "n_ctx",
        ),
        70,
    ),
    (("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_experts_total"), 4),
    (
        (
            "num_experts_per_tok",
            "num_experts_per_token",
            "moe_k",
            "top_k_experts",
            "moe_topk",
            "n_group",
            "topk_group",
            "index_topk",
            "index_block_size",
            "hc_mult",
        ),
        2,
    ),
    (("index_topk_blocks", "index_local_blocks"), 1),  # fewer than a text has, so that keys are left out
    (("vocab_size", "n_vocab", "text_vocab_size", "vocab_size_per_layer_input", "audio_vocab_size"), 64),
    (("sliding_window", "window_size", "local_attention", "attention_window"), 4),
    (("image_size", "img_size", "input_size"), 32),
    (("patch_size",), 4),
    (("num_pos_feats",), 16),
    (("num_mel_bins", "feature_size", "num_queries", "num_query_tokens", "image_seq_length", "mm_tokens_per_image"), 8),
]
EXACT = {name: size for names, size in SIZES for name in names}
CHANGES = {
    # its defaults leave out what is special about it
    "minimax_m3_vl_text": {"layer_types": ["minimax_m3_sparse", "minimax_m3_sparse"], "index_n_heads": 2},
}
NO_ATTENTION = {
    "ovis2": r"vision_tower",  # which word of a vocabulary of pictures
    "switch_transformers": r".*\.router",  # which expert
    "zaya": r".*\.gate",  # which expert
}
"""Modules whose softmax was read and found to choose among other things than tokens."""

ENDINGS = [(f"_{name}", size) for names, size in SIZES for name in names if name not in ("dim", "width", "depth")]


@dataclass
class Outcome:
    """What became of one model type."""

    model_type: str
    status: str  # "part of another type", "other input", "not built", "captured", "refused", "raw error" or "wrong"
    reason: str = ""
    sites: dict[str, float | None] = field(default_factory=dict)  # largest difference from eager; None: none returned
    product: float = 0.0  # largest difference between A·V and the context
    unseen: list[str] = field(default_factory=list)  # modules whose attention no site holds
    warned: bool = False  # whether a warning said so
    restored: bool = True


def shrink(kind: type, keep: frozenset[str] = frozenset()) -> Any:
    """Return a configuration of a class with small sizes, also in the configurations inside it."""
    default = kind()
    changes: dict[str, Any] = {}
    for name, value in vars(default).items():
        if name.startswith("_") or name in keep or name not in _parameters(kind):
            continue
        if name in default.sub_configs:
            changes[name] = None if value is None else shrink(type(value), keep).to_dict()
        elif (small := _shrink_value(name, value)) is not None:
            changes[name] = small
        elif isinstance(value, list) and name.endswith("_types"):
            changes[name] = value[:2] if name == "indexer_types" else value[-2:]  # the first indexes for the others
        elif isinstance(value, dict) and "mrope_section" in value:
            changes[name] = {**value, "mrope_section": [2, 1, 1]}  # half of a head
    for values, heads in (("num_key_value_heads", "num_attention_heads"), ("num_kv_heads", "num_heads")):
        if values in changes and getattr(default, values) == getattr(default, heads, None):
            changes[values] = changes.get(heads, getattr(default, heads))  # no groups, as before
    return kind(**changes | CHANGES.get(default.model_type, {}))


def _parameters(kind: Any) -> set[str]:
    names = {name for base in kind.__mro__ if base is not object for name in getattr(base, "__annotations__", {})}
    return names | set(inspect.signature(kind.__init__).parameters)


def _shrink_value(name: str, value: Any) -> Any:
    """Return a smaller value of an attribute of a configuration; None to leave it."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        if name.endswith(("_token_id", "_token_index")) or name in ("image_token", "video_token"):
            return value if value < len(VOCAB) else 40 + sum(map(ord, name)) % 20
        size = EXACT.get(name) or next((size for ending, size in ENDINGS if name.endswith(ending)), None)
        return None if size is None else min(size, value) if value > 0 else None
    if isinstance(value, list | tuple) and value and all(isinstance(item, int) for item in value):
        if name in ("depths", "num_layers", "layers"):
            return type(value)([1] * len(value))
        if name in ("hidden_sizes", "embed_dims", "embed_dim", "dims", "conv_dim"):
            return type(value)([32] * len(value)) if name == "conv_dim" else type(value)(32 for _ in value)
        if name in ("image_size", "img_size", "input_size"):
            return type(value)([32] * len(value))
    return None


def build(model_type: str) -> "Specimen":
    """Return a tiny network of a type with random weights, and inputs that it runs on; raise what hinders it."""
    kind = CONFIG_MAPPING[model_type]
    attempts: list[Callable[[], Any]] = [
        lambda: shrink(kind),
        lambda: shrink(kind, frozenset({"head_dim", "image_size", "patch_size", "window_size", "num_heads"})),
        lambda: shrink(kind, frozenset({"num_key_value_heads", "num_attention_heads", "head_dim", "hidden_size"})),
        lambda: shrink(kind, frozenset({"hidden_size", "num_attention_heads", "head_dim", "image_size", "patch_size"})),
        kind,
    ]
    errors: list[str] = []
    for attempt in attempts:
        try:
            network = _build(attempt())
            return _find_inputs(network)
        except (TookLongError, NoModelError, NoInputsError):
            raise
        except Exception as error:
            errors.append(f"{type(error).__name__}: {str(error)[:160]}")
    raise RuntimeError(errors[0])


@dataclass
class Specimen:
    """A network, inputs that it reads, and the attention that it returns of them with eager attention."""

    network: Any
    inputs: Mapping[str, Any]
    weights: list[tuple[str, torch.Tensor]]  # that modules return, with their names
    returned: list[list[torch.Tensor]]  # that the network returns, by field
    softmaxes: list[list[str]]  # the modules that run when there is a softmax, outermost first


def _find_inputs(network: Any) -> Specimen:
    """Return the network with the first of several kinds of inputs that it runs on."""
    errors: list[Exception] = []
    candidates = list(make_inputs(network))
    while candidates:
        inputs = candidates.pop(0)
        try:
            return Specimen(network, inputs, *_run_eager(network, inputs))
        except TookLongError:
            raise
        except Exception as error:
            errors.append(error)
            candidates = [*_add_image_tokens(network, inputs, str(error)), *candidates]
    raise errors[0] if errors else NoInputsError(f"reads {network.main_input_name}")


def _add_image_tokens(network: Any, inputs: Mapping[str, Any], message: str) -> list[dict[str, Any]]:
    """Return inputs with as many tokens for images as a model says that it needs."""
    config = network.config
    token = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
    numbers = re.search(r"tokens: *(\d+),.*features:? *(\d+)", message)
    if numbers is None or token is None or "input_ids" not in inputs or token in inputs["input_ids"]:
        return []
    ids = torch.cat([torch.full((2, int(numbers[2]) // 2), token), inputs["input_ids"]], dim=1)
    mask = torch.cat([torch.ones(2, int(numbers[2]) // 2, dtype=torch.long), inputs["attention_mask"]], dim=1)
    return [{**inputs, "input_ids": ids, "attention_mask": mask}]


def _build(config: Any) -> Any:
    with torch.device("meta"):
        weights = sum(weight.numel() for weight in _find_class(config)._from_config(config).parameters())
    if weights > MAX_WEIGHTS:
        raise RuntimeError(f"{weights:,} weights although its sizes are small")
    torch.manual_seed(0)
    network = _find_class(config)._from_config(copy.deepcopy(config))
    for name, weight in network.named_parameters():
        if weight.ndim > 1 and "embed" not in name.lower() and weight.is_floating_point():
            weight.data.mul_(4)  # so that attention is far from uniform
    return network.eval()


def _find_class(config: Any) -> Any:
    """Return the class of a configuration's model: of its body if there is one, else with a head."""
    from transformers.models.auto import modeling_auto

    tables = [name for name in vars(modeling_auto) if name.startswith("MODEL_FOR_") and name.endswith("_NAMES")]
    for table in ("MODEL_MAPPING_NAMES", "MODEL_FOR_PRETRAINING_MAPPING_NAMES", *tables):
        name = getattr(modeling_auto, table).get(config.model_type)
        if name is not None:
            return getattr(transformers, name if isinstance(name, str) else name[0])
    raise NoModelError


def make_inputs(network: Any) -> Iterator[dict[str, Any]]:
    """Yield inputs that a network may read: two texts, one with padding, pictures, or both."""
    config, main = network.config, network.main_input_name
    names = set(inspect.signature(network.forward).parameters)
    ids = torch.randint(5, 38, (2, 9), generator=torch.Generator().manual_seed(1))
    text = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    text["attention_mask"][1, -3:] = 0
    if config.is_encoder_decoder:
        text["decoder_input_ids"] = ids[:, :6]
    vision = getattr(config, "vision_config", None) or config
    size = getattr(vision, "image_size", None) or 32
    height, width = (size, size) if isinstance(size, int) else size
    channels = getattr(vision, "num_channels", 3) or 3
    noise = torch.randn(2, channels, height, width, generator=torch.Generator().manual_seed(2))
    if "pixel_values" in names and "input_ids" in names and not config.is_encoder_decoder:
        yield {**text, "pixel_values": noise}
    if main == "input_ids" or "input_ids" in names:
        yield text
    if main == "pixel_values" or "pixel_values" in names:
        yield {"pixel_values": noise}


def examine(model_type: str) -> Outcome:
    """Build a type, capture it at all its sites, and compare with plain eager attention."""
    random.seed(0)
    try:
        with _time_limit(SECONDS), _silence():
            specimen = build(model_type)
    except NoModelError:
        return Outcome(model_type, "part of another type")
    except NoInputsError as error:
        return Outcome(model_type, "other input", str(error))
    except Exception as error:
        return Outcome(model_type, "not built", f"{type(error).__name__}: {str(error)[:200]}")
    network = specimen.network
    with torch.no_grad(), _silence():
        network(**specimen.inputs)  # some change their own config when they run
    before = _describe_state(network)
    try:
        with _time_limit(SECONDS), _silence() as messages:
            outcome = _capture_all(model_type, specimen)
    except HeadscopeError as error:
        outcome = Outcome(model_type, "refused", str(error))
    except Exception as error:
        outcome = Outcome(model_type, "raw error", f"{type(error).__name__}: {str(error)[:200]}")
    else:
        outcome.warned = any("also computes attention in" in str(message.message) for message in messages)
        outcome.reason = " | ".join(
            str(message.message) for message in messages if issubclass(message.category, DataWarning)
        )
    outcome.restored = _same_state(before, _describe_state(network))
    return outcome


def _capture_all(model_type: str, specimen: Specimen) -> Outcome:
    inputs, plain = specimen.inputs, specimen.weights
    model = load(specimen.network, tokenizer=tokenizer())
    sites = find_sites(model)
    torch.manual_seed(0)
    first = capture(model, inputs)
    outcome = Outcome(model_type, "captured")
    for site in first.sites:
        try:
            torch.manual_seed(0)
            trace = first if site == first.site else capture(model, inputs, site=site)
        except HeadscopeError as error:
            outcome.sites[f"{site} (refused: {str(error)[:80]})"] = None
            continue
        outcome.product = max(outcome.product, _product_difference(trace))
        theirs = [weights for name, weights in plain if sites.find(name) == site]
        references = [*specimen.returned, theirs]  # some modules return weights whose axes are in another order
        differences = [difference for weights in references if (difference := _difference(trace, weights)) is not None]
        outcome.sites[site] = min(differences, default=torch.inf if theirs else None)
    modules = {name for name in name_modules(specimen.network).values() if _remove_numbers(name) in sites.table}
    held = {name for name in modules if sites.find(name) in first.sites}
    innermost = {running[-1] for running in specimen.softmaxes if not held & set(running)}
    innermost -= {name for name in innermost if re.fullmatch(NO_ATTENTION.get(model_type, r"(?!)"), name)}
    outcome.unseen = sorted(innermost | {name for name, _ in plain if name not in held})
    wrong = [site for site, difference in outcome.sites.items() if difference is not None and difference > LIMIT]
    if wrong or outcome.product > 1e-4:
        outcome.status = "wrong"
        outcome.reason = f"at {', '.join(wrong)}"
    return outcome


class _SoftmaxLog(TorchDispatchMode):
    """Notes which modules run when a softmax over more than two axes is computed, whoever calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[str] = []
        self.softmaxes: list[list[str]] = []

    def __torch_dispatch__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(function)
        if "scaled_dot_product" in name or ("softmax" in name and "log" not in name and args[0].ndim > 2):
            self.softmaxes.append(list(self.running))
        return function(*args, **(kwargs or {}))


def _run_eager(network: Any, inputs: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return what a plain pass with eager attention shows: the fields of a Specimen after its inputs."""
    eager = copy.deepcopy(network)
    try:
        eager.set_attn_implementation("eager")
    except Exception:
        eager.config._attn_implementation = "eager"
    torch.manual_seed(0)  # some models draw random numbers
    names, weights, log = name_modules(eager), dict[int, tuple[str, torch.Tensor]](), _SoftmaxLog()
    held: list[torch.Tensor] = []  # so that no memory is used again

    def begin(module: Any, _: Any) -> None:
        log.running.append(names[module])

    def end(module: Any, _: Any, output: Any) -> None:
        log.running.pop()
        for part in output if isinstance(output, list | tuple) else ():
            if _is_attention(part):
                weights.setdefault(part.data_ptr(), (names[module], part.clone()))
                held.append(part)

    for module in names:
        module.register_forward_pre_hook(begin)
        module.register_forward_hook(end, always_call=True)

    def run(**options: Any) -> Any:
        weights.clear()
        log.running.clear()
        log.softmaxes.clear()
        with torch.no_grad(), log:
            return eager(**inputs, **options)

    try:
        output = run(output_attentions=True)
    except (TypeError, ValueError):
        output = run()
    fields = output.items() if isinstance(output, Mapping) else ()
    returned = [list(value) for name, value in fields if name.endswith("attentions") and isinstance(value, tuple)]
    returned = [layers for layers in returned if all(map(torch.is_tensor, layers))]
    return list(weights.values()), returned, log.softmaxes


def _is_attention(part: Any) -> bool:
    if not isinstance(part, torch.Tensor) or part.ndim != 4 or not part.is_floating_point() or not part.numel():
        return False
    sums = part.sum(-1)
    return bool((part >= 0).all() and (sums <= 1 + 1e-4).all() and sums.max() > 0.2 and part.shape[-1] > 1)


def _difference(trace: Trace, theirs: list[torch.Tensor]) -> float | None:
    """Return the largest difference between a trace and weights of the same shapes; None for those of others."""
    if [layer.shape for layer in theirs] != [layer.shape for layer in trace.attention]:
        return None
    real = trace.queries.real[:, None, :, None]
    pairs = zip(trace.attention, theirs, strict=True)
    return max((_largest(ours - plain.masked_fill(~real, 0)) for ours, plain in pairs), default=None)


def _product_difference(trace: Trace) -> float:
    """Return how far A·V, in float64, is from what the heads computed, as a share of its largest number."""
    assert trace.values is not None
    assert trace.context is not None
    layers = zip(trace.attention, trace.values, trace.context, strict=True)
    return max(_largest(a.double() @ v.double() - c.double()) / max(_largest(c), 1e-9) for a, v, c in layers)


def _largest(tensor: torch.Tensor) -> float:
    """Return the largest magnitude; NaN is infinite, because no comparison with NaN would fail."""
    return float(tensor.abs().nan_to_num(torch.inf).max())


def _describe_state(network: Any) -> list[Any]:
    configs = {id(module.config): module.config for module in network.modules() if hasattr(module, "config")}
    return [
        [(config._attn_implementation, config.to_dict()) for config in configs.values()],
        [(module.training, len(module._forward_hooks), len(module._forward_pre_hooks)) for module in network.modules()],
        [vars(transformers.PreTrainedConfig)["_attn_implementation"], transformers.AttentionInterface.get_interface],
        {name: tensor.clone() for name, tensor in network.state_dict().items()},
    ]


def _same_state(before: list[Any], after: list[Any]) -> bool:
    *facts, weights = before
    *facts_after, weights_after = after
    same = (torch.equal(tensor.nan_to_num(), weights_after[name].nan_to_num()) for name, tensor in weights.items())
    return str(facts) == str(facts_after) and all(same)


class TookLongError(Exception):
    """A model took longer than it may."""


class NoModelError(Exception):
    """A configuration that is only a part of others has no class of models."""


class NoInputsError(Exception):
    """A model reads neither texts nor pictures."""


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TookLongError(f"took longer than {seconds} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def _silence() -> Iterator[list[warnings.WarningMessage]]:
    transformers.logging.set_verbosity(60)
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        yield messages


def silently_wrong(outcome: Outcome) -> bool:
    """Return True if a capture was wrong, left the model changed, or lacked attention, without a word."""
    return outcome.status == "wrong" or not outcome.restored or bool(outcome.unseen and not outcome.warned)


def main() -> None:
    """Examine types, print a line for each, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*", help="model types; all by default")
    parser.add_argument("--out", type=Path, help="where to write the outcomes")
    args = parser.parse_args()
    torch.set_num_threads(1)
    outcomes = []
    for model_type in args.types or list_types():
        outcome = examine(model_type)
        outcomes.append(outcome)
        print(outcome, flush=True)  # noqa: T201
        if args.out:
            args.out.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    print(count(outcomes))  # noqa: T201


def list_types() -> list[str]:
    """Return all model types of the installed library."""
    return sorted(CONFIG_MAPPING.keys())


def count(outcomes: list[Outcome]) -> dict[str, int]:
    """Return the number of outcomes of each status."""
    captured = [outcome for outcome in outcomes if outcome.status == "captured"]
    return {
        "types": len(outcomes),
        **Counter(outcome.status for outcome in outcomes),
        "captured and equal to eager": sum(any(v is not None for v in outcome.sites.values()) for outcome in captured),
        "not restored": sum(not outcome.restored for outcome in outcomes),
        "warned of other attention": sum(outcome.warned for outcome in outcomes),
        "silently wrong": sum(map(silently_wrong, outcomes)),
    }


if __name__ == "__main__":
    main()

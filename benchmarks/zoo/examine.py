"""What headscope does with one type: each verb is right, refused with a sentence, wrong, or ends in a raw error."""

import copy
import random
import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from benchmarks.zoo.build import NoInputsError, NoModelError, Specimen, build, find_class, make_network
from benchmarks.zoo.category import find_category
from benchmarks.zoo.limit import TookLongError, silence, time_limit
from headscope.core.errors import DataWarning, HeadscopeError
from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.engine.capture import capture
from headscope.engine.edited import edited
from headscope.engine.generate import generate
from headscope.engine.load import load
from headscope.engine.main_input import takes_decoder_ids
from headscope.engine.model import Model, name_modules
from headscope.engine.pruning.prune import prune
from headscope.engine.recording.sites import _remove_numbers, find_sites
from tests.models import tokenizer

SECONDS = 60
"""The time limit of one type."""

LIMIT = 1e-5  # float32 softmax over a few keys
EPS = torch.finfo(torch.float32).eps
SPECIAL = 5  # ids of the tokenizer that are no words; a model may treat its own pad id as padding in one pass
TEXT = "the cat sat on a mat"
UNREAD = "no linear layer reads the context as it is, so that A·V·W_O is compared with nothing"
VERBS = ("capture", "effective", "norm", "edit", "generate", "prune")

NO_ATTENTION = {
    "deepseek_v4": r".*\.(attn_hc|ffn_hc)",  # how much of each of several streams of a token
    "granite_speech5_ctc": r".*\bout_mid",  # which word of the vocabulary is heard
    "granite_speech5_encoder": r".*\bout_mid",  # the same
    "d_fine": r".*\.encoder_attn",  # how much of each sampled point of a picture
    "rt_detr_v2": r".*\.encoder_attn",  # the same
    "groupvit": r".*\.downsample\.assign",  # which group a segment joins
    "ovis2": r"vision_tower|visual_embeddings_table",  # which word of a vocabulary of pictures
    "switch_transformers": r".*\.router",  # which expert
    "zaya": r".*\.gate",  # which expert
}
"""Modules whose softmax was read and found to choose among other things than tokens."""


RETURN_OTHERS = {
    "granite_swa": "weights before the sink takes its share, which is taken from their sum over values",
    "granitemoe_swa": "the same",
    "prophetnet": "scores before the softmax",
    "wavlm": "the mean over heads, repeated",
}
"""Kinds whose modules return something else than the weights that they use; these are held to A·V only."""


class WrongError(Exception):
    """A verb gave another result than it should, without a word."""


@dataclass
class Cell:
    """What one verb did: "yes", "in part", "refused", "wrong", "raw error", or "none" where there is nothing to try."""

    status: str
    reason: str = ""


@dataclass
class Outcome:
    """What became of one model type."""

    model_type: str
    status: str  # of the build: "part of another type", "not built" or "built"
    reason: str = ""
    category: str = ""
    attention: bool = False  # whether a plain pass shows any
    cells: dict[str, Cell] = field(default_factory=dict)  # by verb
    sites: dict[str, float | None] = field(default_factory=dict)  # largest difference from eager; None: none returned
    product: float = 0.0  # largest difference between A·V and the context
    unseen: list[str] = field(default_factory=list)  # modules whose attention no site holds
    warned: bool = False  # whether a warning said so
    restored: bool = True
    seconds: float = 0.0

    @property
    def captured(self) -> bool:
        """Whether the main site was captured."""
        return "capture" in self.cells and self.cells["capture"].status in ("yes", "in part")


def examine(model_type: str, verbs: tuple[str, ...] = VERBS, seconds: float = SECONDS) -> Outcome:
    """Build a type, and try each verb on it."""
    random.seed(0)
    began = time.monotonic()
    outcome = Outcome(model_type, "built", category=_categorize(model_type))
    try:
        with time_limit(seconds), silence():
            specimen = build(model_type)
        with torch.no_grad(), silence():
            specimen.network(**specimen.inputs)  # some change their own config when they run
    except NoModelError:
        outcome.status, outcome.category = "part of another type", ""
    except (Exception, TookLongError) as error:
        known = isinstance(error, NoInputsError)
        reason = str(error) if known else f"{type(error).__name__}: {str(error)[:200]}"
        outcome.status, outcome.reason = "not built", reason
    else:
        outcome.attention = specimen.plain.has_attention
        _try_all(outcome, specimen, verbs, seconds)
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


def _categorize(model_type: str) -> str:
    kind = CONFIG_MAPPING[model_type]
    try:
        return find_category(find_class(kind), kind())
    except Exception:
        return ""


def _try_all(outcome: Outcome, specimen: Specimen, verbs: tuple[str, ...], seconds: float) -> None:
    network = specimen.network
    before = describe_state(network)
    trace: list[Trace] = []
    steps: dict[str, Callable[[], Cell]] = {
        "capture": lambda: _try_capture(outcome, specimen, trace),
        "effective": lambda: _try_each_shape(_try_effective, trace[0]),
        "norm": lambda: _try_each_shape(lambda part: _try_norm(specimen, part), trace[0]),
        "edit": lambda: _try_edit(specimen, trace[0]),
        "generate": lambda: _try_generate(specimen),
        "prune": lambda: _try_prune(specimen, trace[0]),
    }
    for verb in verbs:
        if verb != "capture" and not trace:
            outcome.cells[verb] = Cell(outcome.cells["capture"].status, "not captured")
            continue
        outcome.cells[verb] = _attempt(steps[verb], seconds)
        if verb in ("capture", "edit") and not same_state(before, describe_state(network)):
            outcome.restored = False


def _attempt(step: Callable[[], Cell], seconds: float) -> Cell:
    try:
        with time_limit(seconds), silence():
            return step()
    except HeadscopeError as error:
        return Cell("refused", str(error))
    except WrongError as error:
        return Cell("wrong", str(error))
    except (Exception, TookLongError) as error:
        return Cell("raw error", f"{type(error).__name__}: {str(error)[:200]}")


def _try_capture(outcome: Outcome, specimen: Specimen, kept: list[Trace]) -> Cell:
    """Compare the captures of all sites with the weights that modules return, and A·V with the context."""
    inputs, plain = specimen.inputs, specimen.plain
    model = load(specimen.network, tokenizer=_find_tokenizer(specimen.network))
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        torch.manual_seed(0)
        first = capture(model, inputs)
        traces = {first.site: first}
        for site in set(first.sites) - {first.site}:
            try:
                torch.manual_seed(0)
                traces[site] = capture(model, inputs, site=site)
            except HeadscopeError as error:
                outcome.sites[f"{site} (refused: {str(error)[:80]})"] = None
    kept.append(first)
    sites = find_sites(model)
    returned = [*plain.returned, *_join_keys(plain.returned)]
    apart = {site: [_difference(trace, layers) for layers in returned] for site, trace in traces.items()}
    for site, trace in traces.items():
        outcome.product = max(outcome.product, product_difference(trace))
        theirs = [weights for name, weights in plain.weights if sites.find(name) == site]
        # some modules return weights whose axes are in another order; a field may be that of another site
        others = [found for other, found in apart.items() if other != site]
        found = [
            difference
            for index, difference in enumerate(apart[site])
            if difference is not None
            and not any((other[index] or 0) <= LIMIT for other in others if other[index] is not None)
        ]
        found += [] if (own := _difference(trace, theirs, some=True)) is None else [own]
        expected = theirs and outcome.model_type not in RETURN_OTHERS
        outcome.sites[site] = min(found, default=torch.inf if expected else None)
        if outcome.model_type in RETURN_OTHERS:
            outcome.sites[site] = None
    outcome.unseen = _find_unseen(specimen, sites, first)
    data = [str(message.message) for message in messages if issubclass(message.category, DataWarning)]
    outcome.warned = any("also computes attention in" in message for message in data)
    wrong = [site for site, difference in outcome.sites.items() if difference is not None and difference > LIMIT]
    if wrong or outcome.product > 1e-4:
        raise WrongError(f"at {', '.join(wrong)}")
    if outcome.unseen and not outcome.warned:
        raise WrongError(f"without a word about {', '.join(outcome.unseen)}")
    in_part = outcome.unseen or any("(refused: " in site for site in outcome.sites)
    return Cell("in part" if in_part else "yes", " | ".join(data))


def _join_keys(returned: list[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
    """Return pairs of fields as one map over the keys of both, as where a decoder attends to two texts at once."""
    pairs = [(first, second) for first in returned for second in returned if first is not second]
    alike = [
        pair
        for pair in pairs
        if [layer.shape[:3] for layer in pair[0]] == [layer.shape[:3] for layer in pair[1]] and pair[0]
    ]
    return [[torch.cat(layers, dim=-1) for layers in zip(*pair, strict=True)] for pair in alike]


def _find_tokenizer(network: Any) -> Any:
    return tokenizer() if network.main_input_name == "input_ids" else None


def _find_unseen(specimen: Specimen, sites: Any, trace: Trace) -> list[str]:
    """Return modules that compute attention which no site of the model holds."""
    modules = {name for name in name_modules(specimen.network).values() if _remove_numbers(name) in sites.table}
    held = {name for name in modules if sites.find(name) in trace.sites}
    innermost = {running[-1] for running in specimen.plain.products if running and not held & set(running)}
    pattern = NO_ATTENTION.get(specimen.network.config.model_type, r"(?!)")
    around = {name[:end] for name in held for end in range(len(name) + 1) if name[end : end + 1] in ("", ".")}
    unseen = innermost | {name for name, _ in specimen.plain.weights}
    unseen = {name for name in unseen if name not in around and not any(name.startswith(f"{other}.") for other in held)}
    return sorted(name for name in unseen if not re.fullmatch(pattern, name))


def _try_each_shape(step: Callable[[Trace], Cell], trace: Trace) -> Cell:
    """Try a verb on the layers of each shape."""
    cells = [step(part) for part in list_shapes(trace)]
    return Cell("yes", next((cell.reason for cell in cells if cell.reason), ""))


def list_shapes(trace: Trace) -> list[Trace]:
    """Return the traces of all layers, those of each shape together."""
    return [trace, *trace.other_layers]


def _try_effective(trace: Trace) -> Cell:
    """Compare effective attention with a projection of single rows by a float64 decomposition."""
    maps = view(trace, "effective")
    assert trace.values is not None
    weights = maps.weights
    for layer in {0, len(trace.attention) - 1}:
        attention, values, seen = trace.attention[layer].double(), trace.values[layer].double(), trace.visible[layer]
        for row, head in ((0, 0), (len(attention) - 1, attention.shape[1] - 1)):
            for query in {0, attention.shape[2] // 2, attention.shape[2] - 1}:
                keys = seen[row if len(seen) > 1 else 0, query]
                if not keys.any():
                    continue
                theirs = _project(attention[row, head, query, keys], values[row, head, keys])
                difference = largest(weights[row, layer, head, query, keys].double() - theirs)
                if difference > 1e-4:
                    raise WrongError(f"layer {layer}, head {head}, query {query} differs by {difference:.0e}")
    return Cell("yes")


def _project(row: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    left, sizes, _ = torch.linalg.svd(values, full_matrices=False)
    basis = left[:, sizes > sizes.max() * max(values.shape) * EPS]
    return basis @ (basis.T @ row)


def _try_norm(specimen: Specimen, trace: Trace) -> Cell:
    """View norms, and compare Σ A·V·W_O with what a linear layer makes of the same context, where there is one."""
    model = load(specimen.network, tokenizer=_find_tokenizer(specimen.network))
    if trace.output is None:
        torch.manual_seed(0)
        trace = capture(model, specimen.inputs, layers=trace.layers, keep=("attention", "values", "output"))
    view(trace, "norm")
    assert trace.output is not None
    assert trace.context is not None
    written = torch.einsum("bhqv,hvx->bqx", trace.context[0].double(), trace.output[0].double())
    reader = find_reader(specimen, trace)
    if reader is None:
        return Cell("yes", UNREAD)
    written_by_model = read_linear(specimen, reader, trace)
    found = _largest_real(written - written_by_model.double(), trace)
    if found > 1e-3 * max(1.0, largest(written_by_model)):
        raise WrongError(f"A·V·W_O differs from what {reader} makes of the context by {found:.0e}")
    return Cell("yes")


def find_reader(specimen: Specimen, trace: Trace) -> str | None:
    """Return the linear layer that reads the context of the first layer as it is, if there is one."""
    assert trace.context is not None
    context = trace.context[0].transpose(1, 2).flatten(2)
    if not context.isfinite().all():  # NaN is like any number
        return None
    found: list[str] = []

    def look(module: Any, inputs: Any, _: Any) -> None:
        (given,) = inputs[:1] or (None,)
        fits = isinstance(given, torch.Tensor) and given.numel() == context.numel()
        if fits and given.shape[-1] == context.shape[-1]:
            apart = _largest_real(given.reshape(context.shape) - context, trace)
            found.extend([names[module]] if apart < 1e-4 * largest(context) else [])

    names = {module: name for module, name in name_modules(specimen.network).items() if _is_linear(module)}
    handles = [module.register_forward_hook(look) for module in names]
    try:
        run(specimen.network, specimen.inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


def read_linear(specimen: Specimen, name: str, trace: Trace) -> torch.Tensor:
    """Return what a linear layer makes of the context in a pass, without its bias; it may be called several times."""
    assert trace.context is not None
    context = trace.context[0].transpose(1, 2).flatten(2)
    seen: list[tuple[float, torch.Tensor]] = []  # how far what the layer reads is from the context, and what it writes

    def look(module: Any, inputs: Any, output: Any) -> None:
        if inputs[0].numel() == context.numel():
            apart = _largest_real(inputs[0].reshape(context.shape) - context, trace)
            seen.append((apart, output if module.bias is None else output - module.bias))

    handle = specimen.network.get_submodule(name).register_forward_hook(look)
    try:
        run(specimen.network, specimen.inputs)
    finally:
        handle.remove()
    _, written = min(seen, key=lambda call: call[0])
    return written.reshape(trace.attention[0].shape[0], trace.attention[0].shape[2], -1)


def apply_linear(specimen: Specimen, name: str, context: torch.Tensor) -> torch.Tensor:
    """Return what a linear layer makes of a context, without its bias."""
    module = specimen.network.get_submodule(name)
    weight = module.weight.detach() if type(module).__name__ == "Conv1D" else module.weight.detach().T
    return context @ weight


def _is_linear(module: Any) -> bool:
    return type(module).__name__ in ("Linear", "Conv1D")


def _largest_real(tensor: torch.Tensor, trace: Trace) -> float:
    """Return the largest magnitude at queries that are not padding.

    Where nothing says which are, those are that see a key and that any query sees.
    """
    seen = trace.visible[0]
    rows = trace.queries.real & seen.any(-1)
    if trace.queries.real.all() and seen.shape[1] == seen.shape[2] and not seen.any(1).all():
        rows &= seen.any(1)
    return largest(tensor[rows])


def _try_edit(specimen: Specimen, trace: Trace) -> Cell:
    """Switch one head off: what it wrote is zero and the other heads are as before; afterwards, so is all."""
    model = load(specimen.network, tokenizer=_find_tokenizer(specimen.network))
    before = run(specimen.network, specimen.inputs)
    reader = find_reader(specimen, trace)
    with edited(model, f"zero_heads:heads={_name_head(model, trace)}"):
        changed = run(specimen.network, specimen.inputs)
        written = None if reader is None else read_linear(specimen, reader, trace)
    if difference(before, run(specimen.network, specimen.inputs)) > 0:
        raise WrongError("after the block, the output is not what it was before")
    if written is None:
        if difference(before, changed) == 0:
            raise WrongError("the output does not change")
        return Cell("yes", UNREAD)
    assert trace.context is not None
    others = trace.context[0].clone()
    others[:, 0] = 0
    expected = apply_linear(specimen, str(reader), others.transpose(1, 2).flatten(2))
    apart = _largest_real(written - expected, trace)
    if apart > 1e-4 * max(1.0, largest(expected)):
        raise WrongError(f"{reader} writes something else than the other heads do: they differ by {apart:.0e}")
    return Cell("yes")


def _name_head(model: Model, trace: Trace) -> str:
    head = f"L{trace.layers[0]}H0"
    return head if len(find_sites(model).table) == 1 else f"{trace.site}.{head}"


def _try_prune(specimen: Specimen, trace: Trace) -> Cell:
    """Prune one head: the output equals that of the whole model without the head, with eager attention in both."""
    model = load(specimen.network, tokenizer=_find_tokenizer(specimen.network))
    head, inputs = _name_head(model, trace), specimen.inputs
    try:
        smaller = prune(model, [head], example=inputs)
    except HeadscopeError as error:
        if "give an example without any" not in str(error):  # of padding
            raise
        inputs = {name: value[:1] if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}
        smaller = prune(model, [head], example=inputs)
    with edited(model, f"zero_heads:heads={head}"):
        expected = run(specimen.network, inputs)
    smaller.network.set_attn_implementation("eager")
    masks = [tensor.bool() for name, tensor in inputs.items() if name.endswith("mask") and tensor.ndim == 2]
    found = difference(expected, run(smaller.network, inputs), masks)
    if found > 1e-4:
        raise WrongError(f"the output differs by {found:.0e} from that under zero_heads")
    return Cell("yes")


def _try_generate(specimen: Specimen) -> Cell:
    """Generate text, and compare the trace with a capture of the same tokens."""
    config = specimen.network.config
    tables = ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES")
    tables += ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES")
    tables += ("MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",)
    try:
        architecture = find_class(type(config), tables)
    except NoModelError:
        return Cell("none", "has no class that generates")
    if not architecture.can_generate():
        return Cell("none", "has no class that generates")
    if hasattr(config, "is_decoder") and not config.is_encoder_decoder:
        config = type(config).from_dict({**config.to_dict(), "is_decoder": True})
    if hasattr(getattr(config, "decoder", None), "is_decoder"):  # as from_encoder_decoder_configs does
        config = copy.deepcopy(config)
        config.decoder.is_decoder = config.decoder.add_cross_attention = True
    try:
        network = make_network(architecture, config)
    except Exception as error:
        return Cell("none", f"{architecture.__name__} is not built: {str(error)[:100]}")
    network.generation_config.forced_eos_token_id = None  # which is among those that are suppressed
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        network.config.decoder_start_token_id = SPECIAL  # which checkpoints have
    model = load(network, tokenizer=tokenizer())
    words = range(SPECIAL, len(model.tokenizer))
    rest = [number for number in range(_count_ids(config, len(model.tokenizer))) if number not in words]
    options = {"max_new_tokens": 3, "min_new_tokens": 3, "suppress_tokens": rest}
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        trace = generate(model, TEXT, **options)
    ids = torch.tensor([model.tokenizer.convert_tokens_to_ids(trace.queries.text[0])])
    given: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if takes_decoder_ids(model):
        read = model.tokenizer(TEXT, return_tensors="pt")
        given = {name: read[name] for name in ("input_ids", "attention_mask")} | {"decoder_input_ids": ids}
    whole = capture(model, given, site=trace.site)
    pairs = zip(trace.attention, whole.attention, strict=True)
    found = max(largest(ours - theirs) for ours, theirs in pairs)
    if found < 1e-4:
        return Cell("yes")
    said = [str(message.message) for message in messages if "differs from a forward pass" in str(message.message)]
    if said:
        return Cell("in part", said[0])
    own = _compare_with_own(model, trace, options)
    if own is None or own > 1e-4:
        raise WrongError(f"attention differs by {found:.0e} from that of one pass")
    return Cell("yes", f"the model's own generate differs by {found:.0e} from one pass")


def _compare_with_own(model: Model, trace: Trace, options: Mapping[str, Any]) -> float | None:
    """Return how far a trace is from the attention that the model's own generate returns; None if it returns none."""
    network = copy.deepcopy(model.network)
    network.set_attn_implementation("eager")
    prompt = model.tokenizer(TEXT, return_tensors="pt")
    given = {name: prompt[name] for name in ("input_ids", "attention_mask")}
    result = network.generate(**given, **options, do_sample=False, output_attentions=True, return_dict_in_generate=True)
    found, end = None, 0
    for step in getattr(result, "attentions", None) or ():
        start, end = end, end + step[0].shape[2]
        for ours, theirs in zip(trace.attention, step, strict=True):
            rows = ours[:, :, start:end, end - theirs.shape[-1] : end]  # a sliding window has dropped the first keys
            found = max(found or 0.0, largest(rows - theirs) if rows.shape == theirs.shape else torch.inf)
    return found


def _count_ids(config: Any, known: int) -> int:
    return int(getattr(config.get_text_config(), "vocab_size", None) or known)


def run(network: Any, inputs: Mapping[str, Any]) -> Any:
    """Return the output of a plain pass, always from the same random state."""
    torch.manual_seed(0)
    with torch.no_grad():
        return network(**inputs)


def difference(first: Any, second: Any, masks: Sequence[torch.Tensor] = ()) -> float:
    """Return the largest difference between the tensors of two outputs, as a share of the largest number.

    `masks` say which tokens are not padding; what becomes of padding differs between implementations of attention.
    """
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        if first.shape != second.shape or not first.is_floating_point():
            return 0.0
        mask = next((mask for mask in masks if first.shape[:2] == mask.shape), torch.tensor(True))
        first, second = first[mask], second[mask]
        finite = first.isfinite() & second.isfinite()
        return largest((first - second)[finite]) / max(largest(first[finite]), 1e-9) if finite.any() else 0.0
    if isinstance(first, Mapping):
        return max((difference(first[name], second[name], masks) for name in first if name in second), default=0.0)
    if isinstance(first, list | tuple):
        return max((difference(*pair, masks) for pair in zip(first, second, strict=False)), default=0.0)
    return 0.0


def _list_masks(specimen: Specimen) -> list[torch.Tensor]:
    return [tensor.bool() for name, tensor in specimen.inputs.items() if name.endswith("mask") and tensor.ndim == 2]


def _difference(trace: Trace, theirs: list[torch.Tensor], *, some: bool = False) -> float | None:
    """Return the largest difference between a trace and weights of the same shapes; None for those of others.

    With `some`, the weights may be those of some layers: each is compared with the layer that is most like it.
    """
    layers = {
        label: (attention, (part.queries.real & seen.any(-1))[:, None, :, None])
        for part in list_shapes(trace)
        for label, attention, seen in zip(part.layers, part.attention, part.visible, strict=True)
    }
    pairs = [layers[label] for label in sorted(layers)]
    if [layer.shape for layer in theirs] == [attention.shape for attention, _ in pairs]:
        return max(map(_difference_of_layer, pairs, theirs))
    if not some or not 0 < len(theirs) < len(pairs):
        return None
    alike = [[pair for pair in pairs if pair[0].shape == plain.shape] for plain in theirs]
    if not all(alike):
        return None
    return max(
        min(_difference_of_layer(pair, plain) for pair in found) for found, plain in zip(alike, theirs, strict=True)
    )


def _difference_of_layer(layer: tuple[torch.Tensor, torch.Tensor], plain: torch.Tensor) -> float:
    attention, real = layer
    return largest((attention - plain).masked_fill(~real, 0))


def product_difference(trace: Trace) -> float:
    """Return how far A·V, in float64, is from what the heads computed, as a share of its largest number."""
    layers = [
        layer
        for part in list_shapes(trace)
        for layer in zip(part.attention, part.values or [], part.context or [], strict=True)
    ]
    return max(largest(a.double() @ v.double() - c.double()) / max(largest(c), 1e-9) for a, v, c in layers)


def largest(tensor: torch.Tensor) -> float:
    """Return the largest magnitude; NaN is infinite, because no comparison with NaN would fail."""
    return float(tensor.abs().nan_to_num(torch.inf).max()) if tensor.numel() else 0.0


def describe_state(network: Any) -> list[Any]:
    """Return what a capture or an edit must leave as it was."""
    found = (getattr(module, "config", None) for module in network.modules())
    configs = {id(config): config for config in found if isinstance(config, transformers.PreTrainedConfig)}
    return [
        [(config._attn_implementation, config.to_dict()) for config in configs.values()],
        [(module.training, len(module._forward_hooks), len(module._forward_pre_hooks)) for module in network.modules()],
        [vars(transformers.PreTrainedConfig)["_attn_implementation"], transformers.AttentionInterface.get_interface],
        {name: tensor.clone() for name, tensor in network.state_dict().items()},
    ]


def same_state(before: list[Any], after: list[Any]) -> bool:
    """Whether two descriptions are the same."""
    *facts, weights = before
    *facts_after, weights_after = after
    same = (torch.equal(tensor.nan_to_num(), weights_after[name].nan_to_num()) for name, tensor in weights.items())
    return str(facts) == str(facts_after) and all(same)


def silently_wrong(outcome: Outcome) -> bool:
    """Return True if a verb was wrong, left the model changed, or lacked attention, without a word."""
    wrong = any(cell.status == "wrong" for cell in outcome.cells.values())
    return wrong or not outcome.restored or bool(outcome.unseen and not outcome.warned)

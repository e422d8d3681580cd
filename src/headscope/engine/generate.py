"""Capture attention while a model generates text: every step in one trace."""

import copy
import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.errors import CaptureError, DataWarning, HeadscopeError, InputError
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace
from headscope.core.trace.nan_attention import warn_about_nan
from headscope.data.reading.read import read_texts
from headscope.data.tokenizing.encode import Encoded, encode, pad_sequences
from headscope.engine.batch import (
    Inputs,
    copy_ids_to_host,
    decoder_start_id,
    forward_arguments,
    max_input_length,
    tokens_from_ids,
)
from headscope.engine.capture import CAPTURABLE, make_request, record, record_calls
from headscope.engine.images import check_reads_texts
from headscope.engine.main_input import takes_decoder_ids
from headscope.engine.model import Model
from headscope.engine.recording.interface import is_editing
from headscope.engine.recording.make_trace import make_trace
from headscope.engine.recording.recorder import AttentionCall, Recorder, check_recording
from headscope.engine.recording.sites import find_sites
from headscope.engine.recording.verify import verify_first

SAME = 1e-3
"""Weights of two passes that are called the same differ by less."""

_compared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""By network: the sites at which generated rows were compared with those of a forward pass."""


def generate(
    model: Model,
    text: Any,
    *,
    max_new_tokens: int = 20,
    chat: bool = False,
    site: str | None = None,
    layers: Sequence[int] | int | None = None,
    heads: Sequence[int] | int | None = None,
    keep: Sequence[str] = (),
    **generate_options: Any,
) -> Trace:
    """Let the model continue a text, or each of a list, and return what it attended to.

    The trace is one square map over prompt and new tokens, the same as one forward pass over all of them. New tokens
    have segment 1, and each example's `columns["generated"]` is the generated text. The last token is never an input
    during generation; one more step reads it, so that every token has its row.

    A model with an encoder and a decoder reads the text and writes another. Its site "cross", the default, is what
    each written token attended to in the text, and "decoder" what it attended to in what was written before.

    Parameters
    ----------
    model
        A model that generates text, as `hs.load` returns it.
    text
        A text, or anything that `hs.read` reads.
    max_new_tokens
        The maximum number of tokens to generate; a text that ends earlier is padded.
    chat
        Apply the tokenizer's chat template to each text, as a user's message.
    site, layers, heads, keep
        As for `hs.capture`.
    generate_options
        For the network's own `generate`: `do_sample=True, temperature=0.7`, `repetition_penalty=1.2`, … The default
        is greedy search. Beam search and assisted decoding are not supported.

    >>> import transformers
    >>> small = {"vocab_size": 30522, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 101, "eos_token_id": 102}
    >>> writer = hs.load(transformers.GPT2LMHeadModel(transformers.GPT2Config(**small)), tokenizer=model.tokenizer)
    >>> hs.generate(writer, "The cat sat", min_new_tokens=3, max_new_tokens=3).keys.counts.item()
    8
    """
    check_reads_texts(model, "hs.generate continues texts")
    writes_another = takes_decoder_ids(model)
    written_sites = [name for name in ("cross", "decoder") if name in find_sites(model).table.values()]
    default = written_sites[0] if writes_another and written_sites else None
    request = make_request(model, site or default, layers, heads, keep, CAPTURABLE)
    if request.site == "encoder" and writes_another:
        raise InputError(
            "The encoder reads a text before anything is generated: hs.capture(model, text) is its attention. "
            "hs.generate has the sites 'cross' and 'decoder'."
        )
    plan = _plan(model, max_new_tokens, generate_options)
    examples = read_texts(text)
    encoded, fill = _encode_prompts(model, examples, chat), {"input_ids": plan.settings.pad_token_id}
    prompt, prompt_tokens = pad_sequences(encoded, fill, device=model.device, left=not writes_another)
    _check_prompts(model, prompt_tokens, plan, max_new_tokens)
    first = _first_inputs(model, prompt, plan)
    with _say_what_is_missing(model):
        verify_first(model, first, lambda: record(model, first, request.site))
        recorder, ids, real, start = _generate(model, request.site, prompt, plan)
    check_recording(model, recorder)
    _compare_with_forward(model, request.site, recorder, prompt, ids, real)
    if writes_another:
        target = _new_tokens(model, ids, real, start)
        inputs = Inputs(prompt, _add_generated_text(model, examples, target, ids), prompt_tokens, target)
    else:
        tokens = _all_tokens(model, prompt_tokens, ids, real)
        inputs = Inputs(prompt, _add_generated_text(model, examples, tokens, ids), tokens)
    trace = make_trace(model, inputs, request, recorder)
    warn_about_nan(trace)
    return trace


@dataclass(frozen=True)
class _Plan:
    """A generation config, and the other arguments of the network's `generate`."""

    settings: Any
    options: Mapping[str, Any]

    @property
    def end_ids(self) -> list[int]:
        """The ids of the tokens that end a text."""
        ids = self.settings.eos_token_id
        return [] if ids is None else [ids] if isinstance(ids, int) else list(ids)


def _plan(model: Model, max_new_tokens: int, options: Mapping[str, Any]) -> _Plan:
    network = model.network
    if not getattr(network, "can_generate", lambda: False)():
        raise InputError(
            f"{type(network).__name__} cannot generate text. Load the class of its kind that can, such as "
            "AutoModelForCausalLM.from_pretrained(…), and give it to hs.load."
        )
    if max_new_tokens < 1:
        raise InputError(f"max_new_tokens must be at least 1, but got {max_new_tokens}.")
    settings = copy.deepcopy(options.get("generation_config") or network.generation_config)
    overrides = {name: value for name, value in options.items() if name != "generation_config"}
    fixed = {"max_new_tokens": max_new_tokens, "return_dict_in_generate": True}
    greedy = {} if "generation_config" in options else {"num_beams": 1}  # checkpoints for summaries ask for beams
    other_options = settings.update(**{"do_sample": False, "use_cache": True, **greedy, **overrides, **fixed})
    plan = _Plan(settings, other_options)
    _check_plan(plan)
    if takes_decoder_ids(model) and settings.decoder_start_token_id is None:
        settings.decoder_start_token_id = decoder_start_id(model)
    if settings.pad_token_id is None:
        pad = getattr(model.tokenizer, "pad_token_id", None)
        settings.pad_token_id = pad if pad is not None else [*plan.end_ids, 0][0]
    return plan


SUPPORTED = {
    "num_return_sequences": (None, 1),
    "use_cache": (True,),
    "cache_implementation": (None, "dynamic", "hybrid"),
    "guidance_scale": (None, 1),
}
OWN = ("custom_generate", "input_ids", "inputs", "inputs_embeds", "attention_mask", "position_ids", "past_key_values")


def _check_plan(plan: _Plan) -> None:
    """Raise InputError unless each step adds one token to one row per text; rows would be named wrongly."""
    mode = plan.settings.get_generation_mode(plan.options.get("assistant_model")).value
    if mode not in ("greedy_search", "sample"):
        raise InputError(
            f"hs.generate follows greedy search and sampling, but these options ask for {mode.replace('_', ' ')}, "
            "which reorders or drops what was computed. Leave out assistant_model and the like, and let num_beams be 1."
        )
    for name, supported in SUPPORTED.items():
        if getattr(plan.settings, name, None) not in supported:
            raise InputError(
                f"hs.generate cannot follow {name}={getattr(plan.settings, name)!r}: it needs the growing cache and "
                f"one row for each text. Leave {name} out."
            )
    if own := [name for name in OWN if name in plan.options]:
        raise InputError(f"hs.generate makes {', '.join(own)} from the text itself. Leave it out.")


def _encode_prompts(model: Model, examples: Sequence[Example], chat: bool) -> list[Encoded]:
    if not chat:
        return encode(model.tokenizer, examples)
    if not getattr(model.tokenizer, "chat_template", None):
        raise InputError(
            "chat=True needs a tokenizer with a chat template, but this one has none. Leave chat out, or set "
            "tokenizer.chat_template."
        )
    if paired := [example for example in examples if example.pair is not None]:
        raise InputError(
            f"chat=True sends one text as the user's message, but example '{paired[0].id}' is a pair of texts. Join "
            "them, or leave chat out."
        )
    messages = ([{"role": "user", "content": example.text}] for example in examples)
    options = {"tokenize": False, "add_generation_prompt": True}
    texts = [model.tokenizer.apply_chat_template(message, **options) for message in messages]
    chats = [Example(example.id, text) for example, text in zip(examples, texts, strict=True)]
    return encode(model.tokenizer, chats, add_special=False)


def _check_prompts(model: Model, prompts: Tokens, plan: _Plan, max_new_tokens: int) -> None:
    limit, width = max_input_length(model), prompts.real.shape[1]
    if limit is not None and width + max_new_tokens > limit and not takes_decoder_ids(model):
        raise InputError(
            f"The longest prompt has {width} tokens, and max_new_tokens={max_new_tokens} may follow, but this model "
            f"reads {limit} at most. Shorten the prompt, or lower max_new_tokens."
        )
    stops = {"stop_strings": plan.settings.stop_strings, "stopping_criteria": plan.options.get("stopping_criteria")}
    if len(prompts.real) > 1 and (used := [name for name, value in stops.items() if value]):
        raise InputError(f"With {used[0]}, nothing says where each text of a batch ended. Give the texts one by one.")


def _first_inputs(model: Model, prompt: Mapping[str, Tensor], plan: _Plan) -> Mapping[str, Tensor]:
    """Return the inputs of a forward pass over the prompt: a decoder reads its start token."""
    if not takes_decoder_ids(model):
        return prompt
    shape, start = (len(prompt["input_ids"]), 1), plan.settings.decoder_start_token_id
    return {**prompt, "decoder_input_ids": torch.full(shape, start, device=model.device)}


def _generate(
    model: Model, site: str, prompt: Mapping[str, Tensor], plan: _Plan
) -> tuple[Recorder, Int[Tensor, "batch token"], Bool[Tensor, "batch token"], int]:
    """Return one recorded call for each layer, the ids of all tokens, which are not padding, and where new ones begin.

    A decoder that reads another text has only tokens of its own.
    """
    network, steps = model.network, list[list[_Step]]()
    prompt_ids, prompt_mask = prompt["input_ids"], prompt["attention_mask"]
    writes_another, arguments = takes_decoder_ids(model), dict[str, Any]()

    def note_arguments(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        arguments.clear()
        arguments.update(inspect.signature(network.forward).bind(*args, **kwargs).arguments)

    def collect_step(*_: Any) -> None:
        steps.append([_make_step(call, is_cross=site == "cross") for call in recorder.calls])
        recorder.calls = []

    with (
        torch.no_grad(),
        record_calls(model, site) as recorder,
        network.register_forward_pre_hook(note_arguments, with_kwargs=True),
        network.register_forward_hook(collect_step),
    ):
        result = network.generate(
            input_ids=prompt_ids, attention_mask=prompt_mask, generation_config=plan.settings, **plan.options
        )
        ids = result.sequences
        _check_steps(network, steps, ids)
        network(**_next_arguments(arguments, ids, len(steps), writes_another=writes_another))
    if steps[-1][0].attention.shape[2] == ids.shape[1] > 1:  # without a cache, each step reads all tokens again
        steps = steps[-1:]
    read = sum(layers[0].attention.shape[2] for layers in steps)
    if read != ids.shape[1]:
        raise CaptureError(
            f"While this model of type '{network.config.model_type}' generated {ids.shape[1]} tokens it computed "
            f"attention for {read}: it adds tokens of its own, and headscope would name them wrongly."
        )
    join = _join_cross_steps if site == "cross" else _join_steps
    recorder.calls = [join(layer, ids.shape[1]) for layer in zip(*steps, strict=True)]
    start = steps[0][0].attention.shape[2] if writes_another else prompt_ids.shape[1]
    new = ids[:, start:]
    ends = torch.isin(new, torch.tensor(plan.end_ids, device=new.device)).long()
    real = ends.cumsum(-1) - ends == 0  # what follows the first end token is padding
    before = torch.ones_like(ids[:, :start], dtype=torch.bool) if writes_another else prompt_mask.bool()
    return recorder, ids, torch.cat([before, real], dim=1), start


def _check_steps(network: Any, steps: Sequence[Sequence["_Step"]], ids: Int[Tensor, "batch token"]) -> None:
    """Raise CaptureError unless the steps read each token but the last once, or all of them again in each step."""
    counts = [layers[0].attention.shape[2] for layers in steps]
    if ids.shape[1] - 1 not in (sum(counts), counts[-1]):
        raise CaptureError(
            f"While this model of type '{network.config.model_type}' generated {ids.shape[1]} tokens it computed "
            f"attention for {sum(counts)} before the last: it adds tokens of its own, and headscope would name them "
            "wrongly."
        )


@contextmanager
def _say_what_is_missing(model: Model) -> Iterator[None]:
    """Say in a sentence why a model does not read a text alone: it may also need a picture, or a language."""
    try:
        yield
    except HeadscopeError:
        raise
    except (AssertionError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise InputError(
            f"{type(model.network).__name__} did not generate from a text alone: {str(error) or type(error).__name__}"
        ) from error


def _next_arguments(last: Mapping[str, Any], ids: Tensor, step_count: int, *, writes_another: bool) -> dict[str, Any]:
    """Return the arguments of the step that reads the last token, from those of the step before it.

    Positions go on from where the model let them be: some count from 1. Without a cache a step reads all tokens.
    """
    side = "decoder_" if writes_another else ""
    arguments = {**last.get("kwargs", {}), **{name: value for name, value in last.items() if name != "kwargs"}}
    before = arguments.get(f"{side}input_ids")
    reads_all = before is not None and before.shape[1] == ids.shape[1] - 1
    if reads_all and (step_count > 1 or arguments.get("past_key_values") is None):
        kept = {name: value for name, value in arguments.items() if "position" not in name and "token_type" not in name}
        return {**_extend_mask(kept, side), f"{side}input_ids": ids}
    arguments[f"{side}input_ids"] = ids[:, -1:]
    for name in (f"{side}position_ids", "cache_position"):
        if isinstance(positions := arguments.get(name), Tensor):
            arguments[name] = positions[..., -1:] + 1
    if isinstance(types := arguments.get("token_type_ids"), Tensor):
        arguments["token_type_ids"] = types[..., -1:]
    return _extend_mask(arguments, side)


def _extend_mask(arguments: Mapping[str, Any], side: str) -> dict[str, Any]:
    """Return the arguments with a mask of one more token, if they have one by token."""
    mask = arguments.get(f"{side}attention_mask")
    if not isinstance(mask, Tensor) or mask.ndim != 2:
        return dict(arguments)
    return {**arguments, f"{side}attention_mask": torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)}


def _compare_with_forward(
    model: Model,
    site: str,
    recorder: Recorder,
    prompt: Mapping[str, Tensor],
    ids: Int[Tensor, "batch token"],
    real: Bool[Tensor, "batch token"],
) -> None:
    """Compare the joined steps with a forward pass over all tokens, at the first generation of a network and site.

    Raise CaptureError for an encoder, in which tokens see those after them; warn of other differences.
    """
    if is_editing() or site in _compared.setdefault(model.network, set()):
        return
    row = int(prompt["attention_mask"].sum(1).argmax())  # has no padding before its tokens
    length, inputs = int(real[row].sum()), {"input_ids": ids[row : row + 1]}
    inputs = {name: tensor[:, :length] for name, tensor in inputs.items()}
    if takes_decoder_ids(model):
        source = {name: tensor[row : row + 1] for name, tensor in prompt.items()}
        inputs = {**source, "decoder_input_ids": inputs["input_ids"]}
    whole = record(model, forward_arguments(model, inputs), site)
    model_type = model.network.config.model_type
    same = SAME if model.network.dtype in (torch.float32, torch.float64) else 20 * SAME
    largest = 0.0
    for joined, forward in zip(recorder.calls, whole.calls, strict=True):
        keys = joined.attention.shape[-1] if site == "cross" else length
        difference = joined.attention[row, :, :length, :keys] - forward.attention[0]
        difference = difference.float().nan_to_num().abs()
        later = difference.triu(1) if site != "cross" else difference.new_zeros(1)
        if float(later.max()) > same:
            raise CaptureError(
                f"In a forward pass of this model of type '{model_type}' tokens see those after them, which do not "
                "exist yet while it generates: it is an encoder. Load it as a decoder, with is_decoder=True in its "
                "config."
            )
        largest = max(largest, float(difference.max()))
    if largest > same:
        warnings.warn(
            f"What this model of type '{model_type}' attended to while it generated differs from a forward pass over "
            f"the same tokens by up to {largest:.2g}. The trace holds what it did while it generated.",
            DataWarning,
            stacklevel=3,
        )
    _compared[model.network].add(site)


@dataclass(frozen=True)
class _Step:
    """What one layer computed in one forward pass; `values` are without the cached ones."""

    name: str
    attention: Float[Tensor, "batch head new key"]
    visible: Bool[Tensor, "#batch #new key"] | None
    values: Float[Tensor, "batch head _ value"]  # _ is new, or all keys of another text
    context: Float[Tensor, "batch head new value"]
    missing: tuple[int, ...]  # heads that were pruned


def _make_step(call: AttentionCall, *, is_cross: bool) -> _Step:
    values = call.values if is_cross else call.values[:, :, -call.attention.shape[2] :].clone()
    return _Step(call.name, call.attention, call.visible(), values, call.context, call.missing)


def _join_steps(steps: Sequence[_Step], width: int) -> AttentionCall:
    """Join one layer's steps into one call; the keys of a step end with its own, a sliding window drops the first."""
    first = steps[0].attention
    attention = first.new_zeros(*first.shape[:2], width, width)
    visible = torch.zeros(len(first), 1, width, width, dtype=torch.bool, device=first.device)
    end = 0
    for step in steps:
        start, end = end, end + step.attention.shape[2]
        if step.attention.shape[3] > end:
            raise CaptureError(
                f"In {step.name} a token attends to {step.attention.shape[3]} keys while there are {end} tokens: those "
                "of another text are among them, and headscope would name them wrongly."
            )
        keys = slice(end - step.attention.shape[3], end)
        attention[:, :, start:end, keys] = step.attention
        visible[:, 0, start:end, keys] = True if step.visible is None else step.visible
    values, context = (torch.cat([getattr(step, name) for step in steps], dim=2) for name in ("values", "context"))
    return AttentionCall(steps[0].name, attention, values, context, visible, missing=steps[0].missing)


def _join_cross_steps(steps: Sequence[_Step], _: int) -> AttentionCall:
    """Join one layer's steps into one call; all steps attend to the same keys."""
    attention, context = (
        torch.cat([getattr(step, name) for step in steps], dim=2) for name in ("attention", "context")
    )
    batch, keys = len(attention), attention.shape[3]
    masks = [
        torch.ones(batch, step.attention.shape[2], keys, dtype=torch.bool, device=attention.device)
        if step.visible is None
        else step.visible.expand(batch, step.attention.shape[2], keys)
        for step in steps
    ]
    visible = torch.cat(masks, dim=1)[:, None]
    return AttentionCall(steps[0].name, attention, steps[0].values, context, visible, missing=steps[0].missing)


def _new_tokens(model: Model, ids: Tensor, real: Tensor, start: int) -> Tokens:
    """Return the tokens that a decoder wrote, which have segment 1, after those that it started with."""
    inputs = {"decoder_input_ids": ids, "decoder_attention_mask": real}
    tokens = tokens_from_ids(model, copy_ids_to_host(inputs), "decoder_")
    segment = torch.where(tokens.real, (torch.arange(ids.shape[1]) >= start).long(), -1)
    return replace(tokens, segment=segment)


def _all_tokens(model: Model, prompt: Tokens, ids: Tensor, real: Tensor) -> Tokens:
    """Return the tokens of the prompt and the new ones, which have segment 1 and no word."""
    tokens = tokens_from_ids(model, copy_ids_to_host({"input_ids": ids, "attention_mask": real}))
    new = tokens.real[:, prompt.real.shape[1] :]
    segment = torch.cat([prompt.segment, torch.where(new, 1, -1)], dim=1)
    word = torch.cat([prompt.word, torch.full(new.shape, -1)], dim=1)
    return replace(tokens, segment=segment, word=word)


def _add_generated_text(model: Model, examples: Sequence[Example], tokens: Tokens, ids: Tensor) -> tuple[Example, ...]:
    rows = [row[segment == 1] for row, segment in zip(ids.cpu(), tokens.segment, strict=True)]
    texts = [model.tokenizer.decode(row, skip_special_tokens=True) for row in rows]
    return tuple(
        replace(example, columns={**example.columns, "generated": text})
        for example, text in zip(examples, texts, strict=True)
    )

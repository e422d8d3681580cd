"""Capture attention while a model generates text: every step in one trace."""

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace
from headscope.core.trace.nan_attention import warn_about_nan
from headscope.data.reading.read import read_texts
from headscope.data.tokenizing.encode import Encoded, encode, pad_sequences
from headscope.engine.batch import Inputs, copy_ids_to_host, max_input_length, tokens_from_ids
from headscope.engine.capture import make_request, record, record_calls
from headscope.engine.images import check_reads_texts
from headscope.engine.model import Model
from headscope.engine.recording.make_trace import make_trace
from headscope.engine.recording.recorder import AttentionCall, Recorder, check_recording
from headscope.engine.recording.verify import verify_first


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
    request = make_request(model, site, layers, heads, keep)
    check_reads_texts(model, "hs.generate continues texts")
    plan = _plan(model, max_new_tokens, generate_options)
    examples = read_texts(text)
    encoded, fill = _encode_prompts(model, examples, chat), {"input_ids": plan.settings.pad_token_id}
    prompt, prompt_tokens = pad_sequences(encoded, fill, device=model.device, left=True)
    _check_prompts(model, prompt_tokens, plan, max_new_tokens)
    verify_first(model, prompt, lambda: record(model, prompt, request.site))
    recorder, ids, real = _generate(model, request.site, prompt, plan)
    check_recording(model, recorder)
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
    if network.config.is_encoder_decoder:
        raise InputError(
            f"hs.generate follows models that go on with their prompt, but '{network.config.model_type}' reads one "
            "text and writes another. Capture both: hs.capture(model, text, written, site='cross')."
        )
    if max_new_tokens < 1:
        raise InputError(f"max_new_tokens must be at least 1, but got {max_new_tokens}.")
    settings = copy.deepcopy(options.get("generation_config") or network.generation_config)
    overrides = {name: value for name, value in options.items() if name != "generation_config"}
    fixed = {"max_new_tokens": max_new_tokens, "return_dict_in_generate": True}
    other_options = settings.update(**{"do_sample": False, "use_cache": True, **overrides, **fixed})
    plan = _Plan(settings, other_options)
    _check_plan(plan)
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
            "which reorders or drops what was computed. Leave out num_beams, assistant_model and the like."
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
    if limit is not None and width + max_new_tokens > limit:
        raise InputError(
            f"The longest prompt has {width} tokens, and max_new_tokens={max_new_tokens} may follow, but this model "
            f"reads {limit} at most. Shorten the prompt, or lower max_new_tokens."
        )
    stops = {"stop_strings": plan.settings.stop_strings, "stopping_criteria": plan.options.get("stopping_criteria")}
    if len(prompts.real) > 1 and (used := [name for name, value in stops.items() if value]):
        raise InputError(f"With {used[0]}, nothing says where each text of a batch ended. Give the texts one by one.")


def _generate(
    model: Model, site: str, prompt: Mapping[str, Tensor], plan: _Plan
) -> tuple[Recorder, Int[Tensor, "batch token"], Bool[Tensor, "batch token"]]:
    """Return one recorded call for each layer, the ids of prompt and new tokens, and which are not padding."""
    network, steps = model.network, list[list[_Step]]()
    prompt_ids, prompt_mask = prompt["input_ids"], prompt["attention_mask"]

    def collect_step(*_: Any) -> None:
        steps.append([_make_step(call) for call in recorder.calls])
        recorder.calls = []

    with torch.no_grad(), record_calls(model, site) as recorder, network.register_forward_hook(collect_step):
        result = network.generate(
            input_ids=prompt_ids, attention_mask=prompt_mask, generation_config=plan.settings, **plan.options
        )
        ids = result.sequences
        new = ids[:, prompt_ids.shape[1] :]
        mask = torch.cat([prompt_mask, torch.ones_like(new)], dim=1)
        takes_positions = "position_ids" in inspect.signature(network.forward).parameters
        positions = {"position_ids": mask.sum(-1, keepdim=True) - 1} if takes_positions else {}
        network(ids[:, -1:], attention_mask=mask, past_key_values=result.past_key_values, use_cache=True, **positions)
    recorder.calls = [_join_steps(layer, ids.shape[1]) for layer in zip(*steps, strict=True)]
    ends = torch.isin(new, torch.tensor(plan.end_ids, device=new.device)).long()
    real = ends.cumsum(-1) - ends == 0  # what follows the first end token is padding
    return recorder, ids, torch.cat([prompt_mask.bool(), real], dim=1)


@dataclass(frozen=True)
class _Step:
    """What one layer computed in one forward pass; `values` are those of the new tokens, without the cached ones."""

    name: str
    attention: Float[Tensor, "batch head new key"]
    visible: Bool[Tensor, "#batch #new key"] | None
    values: Float[Tensor, "batch head new value"]
    context: Float[Tensor, "batch head new value"]
    missing: tuple[int, ...]  # heads that were pruned


def _make_step(call: AttentionCall) -> _Step:
    values = call.values[:, :, -call.attention.shape[2] :].clone()
    return _Step(call.name, call.attention, call.visible(), values, call.context, call.missing)


def _join_steps(steps: Sequence[_Step], width: int) -> AttentionCall:
    """Join one layer's steps into one call; the keys of a step end with its own, a sliding window drops the first."""
    first = steps[0].attention
    attention = first.new_zeros(*first.shape[:2], width, width)
    visible = torch.zeros(len(first), 1, width, width, dtype=torch.bool, device=first.device)
    end = 0
    for step in steps:
        start, end = end, end + step.attention.shape[2]
        keys = slice(end - step.attention.shape[3], end)
        attention[:, :, start:end, keys] = step.attention
        visible[:, 0, start:end, keys] = True if step.visible is None else step.visible
    values, context = (torch.cat([getattr(step, name) for step in steps], dim=2) for name in ("values", "context"))
    return AttentionCall(steps[0].name, attention, values, context, visible, missing=steps[0].missing)


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

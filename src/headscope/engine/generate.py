"""Attention while a model writes: every step of its own generation, in one trace."""

import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.core.errors import InputError
from headscope.core.example import Example
from headscope.core.tokens import Tokens
from headscope.core.trace import Trace
from headscope.data.tokenizing.encode import Encoded, encode, pad_sequences, to_examples
from headscope.engine.batch import Inputs, copy_ids_to_host, max_input_length, tokens_from_ids
from headscope.engine.capture import make_request, make_trace
from headscope.engine.model import Model
from headscope.engine.record import Call, Recorder, check_heard, hearing, recorder_for


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
    """Let the model go on with a text, or with each of a list, and hold what it attended to while it wrote.

    The trace is one square map over prompt and new tokens, the same as one forward pass over all of them. New tokens
    have segment 1, and each example's `columns["generated"]` is what was written. The last token was chosen but never
    read while the model wrote; it is read in one more step, so that every token has its row.

    Parameters
    ----------
    max_new_tokens
        How many tokens to write at most; a text that ends earlier is padded from there on.
    chat
        Put each text through the tokenizer's chat template, as what a user says.
    generate_options
        For the network's own `generate`: `do_sample=True, temperature=0.7`, `repetition_penalty=1.2`, … Without them
        it is greedy. Beam search and assisted decoding are refused.

    `site`, `layers`, `heads` and `keep` are those of `capture`.
    """
    request = make_request(model, site or "self", layers, heads, keep)
    plan = _plan(model, max_new_tokens, generate_options)
    examples = to_examples(text)
    prompt, reads = pad_sequences(
        _prompts(model, examples, chat),
        {"input_ids": plan.settings.pad_token_id},
        device=model.device,
        left=True,
    )
    _check_room(model, reads, plan, max_new_tokens)
    recorder = recorder_for(model, request.site)
    ids, mask = _written(model, recorder, prompt, plan)
    check_heard(model, recorder)
    tokens = _tokens(model, reads, ids, mask)
    inputs = Inputs(prompt, _answered(model, examples, tokens, ids), tokens)
    return make_trace(model, inputs, request, recorder)


@dataclass(frozen=True)
class _Plan:
    """How the network is to generate: its settings, and what goes to `generate` besides."""

    settings: Any
    options: Mapping[str, Any]

    @property
    def ends(self) -> list[int]:
        """The tokens that end a text."""
        found = self.settings.eos_token_id
        return [] if found is None else [found] if isinstance(found, int) else list(found)


def _plan(model: Model, most: int, options: Mapping[str, Any]) -> _Plan:
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
    if most < 1:
        raise InputError(f"max_new_tokens must be at least 1, but got {most}.")
    settings = copy.deepcopy(options.get("generation_config") or network.generation_config)
    own = {"max_new_tokens": most, "return_dict_in_generate": True}
    others = {name: each for name, each in options.items() if name != "generation_config"}
    rest = settings.update(**{"do_sample": False, "use_cache": True, **others, **own})
    plan = _Plan(settings, rest)
    _check_plan(plan)
    if settings.pad_token_id is None:
        known = getattr(model.tokenizer, "pad_token_id", None)
        settings.pad_token_id = known if known is not None else [*plan.ends, 0][0]
    return plan


PLAIN = {"num_return_sequences": (None, 1), "use_cache": (True,), "cache_implementation": (None, "dynamic", "hybrid"),
         "guidance_scale": (None, 1)}  # fmt: skip
OURS = ("custom_generate", "input_ids", "inputs", "inputs_embeds", "attention_mask", "position_ids", "past_key_values")


def _check_plan(plan: _Plan) -> None:
    """One token after the other, one row of the batch for each text: anything else would name rows wrongly."""
    mode = plan.settings.get_generation_mode(plan.options.get("assistant_model")).value
    if mode not in ("greedy_search", "sample"):
        raise InputError(
            f"hs.generate follows greedy search and sampling, but these options ask for {mode.replace('_', ' ')}, "
            "which reorders or drops what was computed. Leave out num_beams, assistant_model and the like."
        )
    for name, plain in PLAIN.items():
        if getattr(plan.settings, name, None) not in plain:
            raise InputError(
                f"hs.generate cannot follow {name}={getattr(plan.settings, name)!r}: it needs the growing cache and "
                f"one row for each text. Leave {name} out."
            )
    if ours := [name for name in OURS if name in plan.options]:
        raise InputError(f"hs.generate makes {', '.join(ours)} from the text itself. Leave it out.")


def _prompts(model: Model, examples: Sequence[Example], chat: bool) -> list[Encoded]:
    if not chat:
        return encode(model.tokenizer, examples)
    if not getattr(model.tokenizer, "chat_template", None):
        raise InputError(
            "chat=True needs a tokenizer with a chat template, but this one has none. Leave chat out, or set "
            "tokenizer.chat_template."
        )
    said = [
        model.tokenizer.apply_chat_template(
            [{"role": "user", "content": each.text}], tokenize=False, add_generation_prompt=True
        )
        for each in examples
    ]
    return encode(
        model.tokenizer, [Example(each.id, text) for each, text in zip(examples, said, strict=True)], framed=False
    )


def _check_room(model: Model, reads: Tokens, plan: _Plan, most: int) -> None:
    room, width = max_input_length(model), reads.real.shape[1]
    if room is not None and width + most > room:
        raise InputError(
            f"The longest prompt has {width} tokens, and max_new_tokens={most} may follow, but this model reads {room} "
            "at most. Shorten the prompt, or lower max_new_tokens."
        )
    own = {"stop_strings": plan.settings.stop_strings, "stopping_criteria": plan.options.get("stopping_criteria")}
    if len(reads.text) > 1 and (given := [name for name, each in own.items() if each]):
        raise InputError(f"With {given[0]}, nothing says where each text of a batch ended. Give the texts one by one.")


def _written(
    model: Model, recorder: Recorder, prompt: Mapping[str, Tensor], plan: _Plan
) -> tuple[Int[Tensor, "batch token"], Bool[Tensor, "batch token"]]:
    """The ids of prompt and new tokens, and which are real; the recorder then holds one call for each layer."""
    network, steps = model.network, list[list[_Step]]()
    given = {name: prompt[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad(), hearing(model, recorder), _stepwise(network, recorder, steps):
        made = network.generate(**given, generation_config=plan.settings, **plan.options)
        ids = made.sequences
        new = ids[:, given["input_ids"].shape[1] :]
        mask = torch.cat([given["attention_mask"], torch.ones_like(new)], dim=1)
        takes = "position_ids" in inspect.signature(network.forward).parameters
        place = {"position_ids": mask.sum(-1, keepdim=True) - 1} if takes else {}
        network(ids[:, -1:], attention_mask=mask, past_key_values=made.past_key_values, use_cache=True, **place)
    recorder.calls = [_joined(calls, ids.shape[1]) for calls in zip(*steps, strict=True)]
    over = torch.isin(new, torch.tensor(plan.ends, device=new.device)).long()
    going = over.cumsum(-1) - over == 0  # what comes after the first end is padding
    return ids, torch.cat([given["attention_mask"].bool(), going], dim=1)


@dataclass(frozen=True)
class _Step:
    """What one layer computed in one forward pass. The cache gives all values each time; the new ones are held."""

    module: str
    attention: Float[Tensor, "batch head new key"]
    seen: Bool[Tensor, "#batch #new key"] | None
    values: Float[Tensor, "batch head new value"]
    context: Float[Tensor, "batch head new value"]


@contextmanager
def _stepwise(network: Any, recorder: Recorder, steps: list[list[_Step]]) -> Iterator[None]:
    """After each forward pass, put aside what the recorder heard."""

    def put_aside(*_: Any) -> None:
        steps.append([_step(call) for call in recorder.calls])
        recorder.calls = []

    hook = network.register_forward_hook(put_aside)
    try:
        yield
    finally:
        hook.remove()


def _step(call: Call) -> _Step:
    new = call.values[:, :, -call.attention.shape[2] :].clone()
    return _Step(call.module, call.attention, call.seen(), new, call.context)


def _joined(steps: Sequence[_Step], width: int) -> Call:
    """One layer's steps as one call; the keys of a step end with its own, and a sliding window lacks the first."""
    first = steps[0].attention
    attention = first.new_zeros(*first.shape[:2], width, width)
    seen = torch.zeros(len(first), 1, width, width, dtype=torch.bool, device=first.device)
    end = 0
    for step in steps:
        start, end = end, end + step.attention.shape[2]
        keys = slice(end - step.attention.shape[3], end)
        attention[:, :, start:end, keys] = step.attention
        seen[:, 0, start:end, keys] = True if step.seen is None else step.seen
    values, context = (torch.cat([getattr(step, name) for step in steps], dim=2) for name in ("values", "context"))
    return Call(steps[0].module, attention, values, context, seen)


def _tokens(model: Model, reads: Tokens, ids: Tensor, real: Tensor) -> Tokens:
    """The prompt's tokens and the new ones, which are segment 1 and belong to no word."""
    real = real.cpu()
    every = tokens_from_ids(model, copy_ids_to_host({"input_ids": ids, "attention_mask": real}))
    new = real[:, reads.real.shape[1] :]
    segment = torch.cat([reads.segment, torch.where(new, 1, -1)], dim=1)
    return replace(
        every, segment=segment, word=torch.cat([reads.word, torch.full_like(segment[:, : new.shape[1]], -1)], 1)
    )


def _answered(model: Model, examples: Sequence[Example], tokens: Tokens, ids: Tensor) -> tuple[Example, ...]:
    """The examples, each with what was written."""
    rows = [row[segment == 1] for row, segment in zip(ids.cpu(), tokens.segment, strict=True)]
    texts = [model.tokenizer.decode(row, skip_special_tokens=True) for row in rows]
    return tuple(
        replace(each, columns={**each.columns, "generated": text}) for each, text in zip(examples, texts, strict=True)
    )
